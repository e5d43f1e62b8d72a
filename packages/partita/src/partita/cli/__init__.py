"""The command line. Parsing only: each command calls one function of a room below."""

from partita.cli.command_groups import main

__all__ = ["main"]
