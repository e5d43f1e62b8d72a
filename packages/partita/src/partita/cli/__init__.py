"""The command line. Parsing only: each command calls one function of a room below."""

from partita.cli.commands import main

__all__ = ["main"]
