"""`partita metrics`: serve the catalogue, migrate it, verify, cut over, roll back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from partita.apps.metrics.modes import Mode
from partita.apps.metrics.tables import Tables
from partita.errors import PartitaError

if TYPE_CHECKING:
    from partita.apps.metrics.migration.moving import Display
    from partita.apps.metrics.migration.verifying import Verification

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
Move = Callable[[str, str, Tables, "Display"], Coroutine[Any, Any, T]]
SERVED = [Mode.LEGACY, Mode.MIGRATING, Mode.DYNAMODB]
EXTRA = ("asyncmy", "jsonata", "jsonpath", "rich")
"""The packages of `partita[metrics]`."""


class Metrics(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in EXTRA:
                raise
            raise PartitaError(
                f"{error.name} is not installed; pip install 'partita[metrics]' has it."
            ) from error


@click.group(cls=Metrics)
def metrics() -> None:
    """The metric catalogue, and its move from MariaDB to DynamoDB."""


def _checked(ctx: click.Context, option: click.Parameter, url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.BadParameter(f"{url!r} is no URL such as http://127.0.0.1:8000.")
    return url


def _databases(are_required: bool) -> Callable[[Command], Command]:
    """The options that say where a catalogue is kept."""

    def add(command: Command) -> Command:
        for option in (
            click.option(
                "--table",
                envvar="PARTITA_METRICS_TABLE",
                default=Tables().metrics,
                show_default=True,
                help="Its name in DynamoDB.",
            ),
            click.option(
                "--endpoint",
                envvar="AWS_ENDPOINT_URL_DYNAMODB",
                required=are_required,
                callback=_checked,
                metavar="URL",
                help="Where DynamoDB is.",
            ),
            click.option(
                "--mysql",
                envvar="PARTITA_METRICS_MYSQL",
                required=are_required,
                metavar="URL",
                help="mysql://user@host:port/database; its password may be in "
                "PARTITA_METRICS_PASSWORD.",
            ),
        ):
            command = option(command)
        return command

    return add


@metrics.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="0 takes a free port.",
)
@click.option(
    "--mode",
    type=click.Choice([str(mode) for mode in SERVED]),
    default=str(Mode.LEGACY),
    show_default=True,
    help="To start with; once the catalogue has a mode, migrate, cutover and rollback change it.",
)
@_databases(are_required=False)
def serve(
    host: str, port: int, mode: str, mysql: str | None, endpoint: str | None, table: str
) -> None:
    """Serve the HTTP API of the catalogue until SIGTERM or Ctrl-C."""
    from partita.apps.metrics import service
    from partita.server.http.lifecycle import run

    run(
        lambda: service.serve(
            host, port, Mode(mode), mysql, endpoint, Tables(table), say=click.echo
        )
    )


@metrics.command()
@_databases(are_required=True)
def migrate(mysql: str, endpoint: str, table: str) -> None:
    """Copy every metric to DynamoDB while the catalogue is in use, then compare both sides.

    Can be stopped and run again. Exits with 1 when a metric could not be migrated.
    """
    from partita.apps.metrics.migration import moving

    counts, found = _shown(moving.migrate, mysql, endpoint, table)
    _tell([*counts.lines(), *found.lines()], is_well=found.is_equal and not counts.errors)


@metrics.command()
@_databases(are_required=True)
def verify(mysql: str, endpoint: str, table: str) -> None:
    """Compare every metric and version of both sides. Exits with 1 when any differ."""
    from partita.apps.metrics.migration import moving

    found = _shown(moving.compare, mysql, endpoint, table)
    _tell(found.lines(), is_well=found.is_equal)


@metrics.command()
@_databases(are_required=True)
def cutover(mysql: str, endpoint: str, table: str) -> None:
    """Let DynamoDB answer, when both sides are equal. No request fails meanwhile."""
    from partita.apps.metrics.migration import moving

    found = _shown(moving.cutover, mysql, endpoint, table)
    _tell([*_compared(found), _mode(Mode.DYNAMODB, found)], is_well=found.is_equal)


@metrics.command()
@_databases(are_required=True)
def rollback(mysql: str, endpoint: str, table: str) -> None:
    """Let MariaDB answer again, with what was written since carried back."""
    from partita.apps.metrics.migration import moving

    found = _shown(moving.rollback, mysql, endpoint, table)
    _tell([*_compared(found), _mode(Mode.LEGACY, found)], is_well=found.is_equal)


def _shown(move: Move[T], mysql: str, endpoint: str, table: str) -> T:
    """The result of a move, of which a person sees how far it is."""
    from partita.apps.metrics.migration.display import shown
    from partita.server.http.lifecycle import run

    with shown() as display:
        return run(lambda: move(mysql, endpoint, Tables(table), display))


def _compared(found: Verification) -> list[str]:
    """Nothing when nothing was: the catalogue is there already."""
    return found.lines() if found.metrics or not found.is_equal else []


def _mode(mode: Mode, found: Verification) -> str:
    return f"the mode is {mode}" if found.is_equal else "the mode stays as it is"


def _tell(lines: list[str], is_well: bool) -> None:
    for line in lines:
        click.echo(line)
    if not is_well:
        sys.exit(1)
