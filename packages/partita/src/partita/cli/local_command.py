"""`partita local`: DynamoDB Local's own flags."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from partita import __version__
from partita.cli.serve_command import DATA, HOST, PORT, start
from partita.errors import PartitaError

TRANSIENT_SECONDS = 1.0
ALLOW_HOST = "PARTITA_ALLOW_HOST"
"""An environment variable, since DynamoDB Local has no flag for it."""


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def local(flags: tuple[str, ...]) -> None:
    """Serve with DynamoDB Local's own flags (-help lists them)."""
    choice = parse_local(flags)
    if choice.page is not None:
        click.echo(choice.page)
        return
    data = None if choice.in_memory else choice.data
    start(
        host=choice.host,
        port=choice.port,
        data=data,
        transient_seconds=choice.transient_seconds,
        is_lenient=True,
        allowed_origins=choice.origins,
        allowed_hosts=os.environ.get(ALLOW_HOST, "").split(),
        origin_setting="-cors",
        host_remedy=f"set {ALLOW_HOST}={{name}}",
    )


@dataclass(frozen=True)
class LocalOptions:
    """The server that DynamoDB Local's flags ask for."""

    host: str = HOST
    port: int = PORT
    data: Path = DATA
    in_memory: bool = False
    transient_seconds: float = 0.0
    origins: tuple[str, ...] = ()
    page: str | None = None
    """A text to print instead of serving."""


@dataclass(frozen=True)
class LocalFlag:
    """One flag of DynamoDB Local, with its effect on the options."""

    help: str
    apply: Callable[[LocalOptions, str], LocalOptions] = lambda choice, value: choice
    value: str = ""
    """The placeholder of its value in the help; empty for a flag without a value."""


def _port(choice: LocalOptions, value: str) -> LocalOptions:
    if not (value.isascii() and value.isdigit() and int(value) <= 65_535):
        raise PartitaError(f"-port takes a number from 0 to 65535, not {value!r}.")
    return replace(choice, port=int(value))


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


LOCAL_FLAGS: dict[str, LocalFlag] = {
    "-inMemory": LocalFlag(
        "Keep nothing after the server stops.", lambda choice, _: replace(choice, in_memory=True)
    ),
    "-dbPath": LocalFlag(
        "Folder that keeps the data.",
        lambda choice, value: replace(choice, data=Path(value)),
        "DIR",
    ),
    "-port": LocalFlag(f"Port to listen on ({PORT}); 0 takes a free one.", _port, "N"),
    "-sharedDb": LocalFlag("One database for all keys and regions; Partita always has one."),
    "-cors": LocalFlag(
        "Origins whose web pages may use the server, or * for all.",
        lambda choice, value: replace(choice, origins=_listed(value)),
        "ORIGINS",
    ),
    "-delayTransientStatuses": LocalFlag(
        "Keep tables CREATING, UPDATING and DELETING for a moment.",
        lambda choice, _: replace(choice, transient_seconds=TRANSIENT_SECONDS),
    ),
    "-optimizeDbBeforeStartup": LocalFlag("Accepted, without effect."),
    "-disableTelemetry": LocalFlag("Accepted; Partita sends no telemetry."),
    "-version": LocalFlag(
        "Print the version.", lambda choice, _: replace(choice, page=f"partita {__version__}")
    ),
    "-help": LocalFlag("Print this text.", lambda choice, _: replace(choice, page=local_help())),
}
# DynamoDB Local takes -h and -v too, and some scripts write its flags with two dashes.
ALIASES = {"-h": "-help", "-v": "-version"}


def parse_local(arguments: tuple[str, ...]) -> LocalOptions:
    choice = LocalOptions()
    waiting = list(arguments)
    names = set()
    while waiting:
        argument = waiting.pop(0)
        name = argument.replace("--", "-", 1) if argument.startswith("--") else argument
        names.add(name)
        flag = LOCAL_FLAGS.get(ALIASES.get(name, name))
        if flag is None:
            raise PartitaError(f"Unknown option {argument!r}; `partita local -help` lists them.")
        if flag.value and not waiting:
            raise PartitaError(f"{argument} needs a value.")
        choice = flag.apply(choice, waiting.pop(0) if flag.value else "")
    if {"-inMemory", "-dbPath"} <= names:
        raise PartitaError("Give -inMemory or -dbPath, not both.")
    return choice


def local_help() -> str:
    lines = [f"  {f'{name} {flag.value}':<26}{flag.help}" for name, flag in LOCAL_FLAGS.items()]
    return "\n".join(["Usage: partita local [flags]", "", *lines])
