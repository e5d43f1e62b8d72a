"""`partita migrate`: one command for each stage. Parsing only; a stage is one function."""

from partita_migrate.commands.group import PROGRESS, migrate

# Each adds its commands to the group, in the order in which a migration runs them.
from partita_migrate.commands import designing, moving  # isort: skip

__all__ = ["PROGRESS", "designing", "migrate", "moving"]
