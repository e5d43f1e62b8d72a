"""`partita metrics`: serve the catalogue, migrate it, verify, cut over, roll back."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from partita.apps.metrics.modes import Mode
from partita.apps.metrics.tables import Tables

SERVED = [Mode.LEGACY, Mode.MIGRATING, Mode.DYNAMODB]


@click.group()
def metrics() -> None:
    """The metric catalogue, and its move from MariaDB to DynamoDB."""


_mysql = click.option(
    "--mysql",
    envvar="PARTITA_METRICS_MYSQL",
    metavar="URL",
    help="mysql://user@host:port/database; the password may be in PARTITA_METRICS_PASSWORD.",
)
_endpoint = click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    metavar="URL",
    help="Where DynamoDB is.",
)
_table = click.option("--table", default="metrics", show_default=True, help="Its name in DynamoDB.")


def _both(command: Callable[..., None]) -> Callable[..., None]:
    """The options of commands that need both databases."""
    for option in (
        click.option("--mysql", envvar="PARTITA_METRICS_MYSQL", required=True, metavar="URL"),
        click.option(
            "--endpoint", envvar="AWS_ENDPOINT_URL_DYNAMODB", required=True, metavar="URL"
        ),
        _table,
    ):
        command = option(command)
    return command


@metrics.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, help="0 takes a free port.")
@click.option(
    "--mode",
    type=click.Choice([str(mode) for mode in SERVED]),
    default=str(Mode.LEGACY),
    show_default=True,
    help="To start with; once the catalogue has a mode, migrate, cutover and rollback change it.",
)
@_mysql
@_endpoint
@_table
def serve(
    host: str, port: int, mode: str, mysql: str | None, endpoint: str | None, table: str
) -> None:
    """Serve the HTTP API of the catalogue until SIGTERM or Ctrl-C."""
    from partita.apps.metrics import service
    from partita.apps.web import run

    run(
        lambda: service.serve(
            host, port, Mode(mode), mysql, endpoint, Tables(table), say=click.echo
        )
    )


@metrics.command()
@_both
def migrate(mysql: str, endpoint: str, table: str) -> None:
    """Copy every metric to DynamoDB while the catalogue is in use, then compare both sides.

    Can be stopped and run again. Exits with 1 when a metric could not be migrated.
    """
    from partita.apps.metrics.migration import moving
    from partita.apps.metrics.migration.display import shown
    from partita.apps.web import run

    async def story() -> None:
        with shown() as display:
            counts, found = await moving.migrate(mysql, endpoint, Tables(table), display)
        _tell([*counts.lines(), *found.lines()], is_well=not (counts.errors or found.differences))

    run(story)


@metrics.command()
@_both
def verify(mysql: str, endpoint: str, table: str) -> None:
    """Compare every metric and version of both sides. Exits with 1 when any differ."""
    from partita.apps.metrics.migration import moving
    from partita.apps.metrics.migration.display import shown
    from partita.apps.web import run

    async def story() -> None:
        with shown() as display:
            async with moving.opened(mysql, endpoint, Tables(table), display) as both:
                found = await both.verify()
        _tell(found.lines(), is_well=not found.differences)

    run(story)


@metrics.command()
@_both
def cutover(mysql: str, endpoint: str, table: str) -> None:
    """Let DynamoDB answer, when both sides are equal. No request fails meanwhile."""
    from partita.apps.metrics.migration import moving
    from partita.apps.metrics.migration.display import shown
    from partita.apps.web import run

    async def story() -> None:
        with shown() as display:
            found = await moving.cutover(mysql, endpoint, Tables(table), display)
        _tell([*found.lines(), *_mode(Mode.DYNAMODB, found.differences)], not found.differences)

    run(story)


@metrics.command()
@_both
def rollback(mysql: str, endpoint: str, table: str) -> None:
    """Let MariaDB answer again, with what was written since carried back."""
    from partita.apps.metrics.migration import moving
    from partita.apps.metrics.migration.display import shown
    from partita.apps.web import run

    async def story() -> None:
        with shown() as display:
            found = await moving.rollback(mysql, endpoint, Tables(table), display)
        _tell([*found.lines(), *_mode(Mode.LEGACY, found.differences)], not found.differences)

    run(story)


def _mode(mode: Mode, differences: dict[str, str]) -> list[str]:
    return ["the mode stays as it is" if differences else f"the mode is {mode}"]


def _tell(lines: list[str], is_well: bool) -> None:
    for line in lines:
        click.echo(line)
    if not is_well:
        sys.exit(1)
