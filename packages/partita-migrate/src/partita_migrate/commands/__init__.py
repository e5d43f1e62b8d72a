"""The commands of `partita migrate`, one for each stage. They only parse; a stage is one
function."""

from partita_migrate.commands.command_group import PROGRESS, migrate

# Each module adds its commands to the group, in the order in which a migration runs them.
from partita_migrate.commands import design_commands, move_commands  # isort: skip

__all__ = ["PROGRESS", "design_commands", "migrate", "move_commands"]
