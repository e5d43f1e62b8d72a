"""The command line. It only parses: each command calls one function of the layers below."""

from partita.cli.command_groups import main

__all__ = ["main"]
