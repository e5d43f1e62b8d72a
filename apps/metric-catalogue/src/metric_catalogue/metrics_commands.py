"""`partita metrics`: serve the catalogue, migrate it, verify, cut over, roll back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from metric_catalogue.stores.catalogue_modes import Mode
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables
from partita.installation.optional_packages import packages_required

if TYPE_CHECKING:
    from metric_catalogue.migration.catalogue_verification import CatalogueVerification
    from partita_migrate.workspace.stage_progress import Progress

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
Stage = Callable[[str, str, CatalogueTables, "Progress"], Coroutine[Any, Any, T]]
SERVED = [Mode.LEGACY, Mode.MIGRATING, Mode.DYNAMODB]


class MetricsGroup(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        with packages_required("partita-metric-catalogue"):
            return super().invoke(ctx)


@click.group(cls=MetricsGroup)
def metrics() -> None:
    """Run the metric catalogue, and migrate it from MariaDB to DynamoDB."""


def _checked(ctx: click.Context, option: click.Parameter, url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.BadParameter(f"{url!r} is not a URL such as http://127.0.0.1:8000.")
    return url


def _databases(are_required: bool) -> Callable[[Command], Command]:
    """Adds the options that name the databases of a catalogue."""

    def add(command: Command) -> Command:
        for option in (
            click.option(
                "--table",
                envvar="PARTITA_METRICS_TABLE",
                default=CatalogueTables().metrics,
                show_default=True,
                help="The table of the catalogue in DynamoDB.",
            ),
            click.option(
                "--endpoint",
                envvar="AWS_ENDPOINT_URL_DYNAMODB",
                required=are_required,
                callback=_checked,
                metavar="URL",
                help="The endpoint of DynamoDB.",
            ),
            click.option(
                "--mysql",
                envvar="PARTITA_METRICS_MYSQL",
                required=are_required,
                metavar="URL",
                help="mysql://user@host:port/database; the password may be in "
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
    help="The mode of a new catalogue; later migrate, cutover and rollback change the mode.",
)
@click.option(
    "--cache-seconds",
    type=click.FloatRange(0, 3600),
    default=5.0,
    show_default=True,
    help="How long GetMetricData may serve cached values after another server has written; 0 "
    "switches the cache off.",
)
@click.option(
    "--alarms",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A TOML file with [[alarms]].",
)
@_databases(are_required=False)
def serve(
    host: str,
    port: int,
    mode: str,
    cache_seconds: float,
    alarms: Path | None,
    mysql: str | None,
    endpoint: str | None,
    table: str,
) -> None:
    """Serve the HTTP API of the catalogue until SIGTERM or Ctrl-C."""
    from metric_catalogue import catalogue_service
    from metric_catalogue.api.catalogue_monitoring import MEASURES
    from partita.server.http.process_lifecycle import run
    from partita_services.alarms import load

    watched = load(alarms, MEASURES) if alarms is not None else ()
    run(
        lambda: catalogue_service.serve(
            host,
            port,
            Mode(mode),
            mysql,
            endpoint,
            CatalogueTables(table),
            say=click.echo,
            cache_seconds=cache_seconds,
            alarms=watched,
        )
    )


@metrics.command()
@_databases(are_required=True)
def migrate(mysql: str, endpoint: str, table: str) -> None:
    """Copy every metric to DynamoDB while the catalogue is in use, then compare both sides.

    It can be stopped and run again. It exits with 1 when a metric could not be migrated.
    """
    from metric_catalogue.migration import migration_stages

    counts, verification = _run(migration_stages.migrate, mysql, endpoint, table)
    _report(
        [*counts.lines(), *verification.lines()],
        is_well=verification.is_equal and not counts.errors,
    )


@metrics.command()
@_databases(are_required=True)
def verify(mysql: str, endpoint: str, table: str) -> None:
    """Compare every metric and version of both sides. Exits with 1 if any of them differ."""
    from metric_catalogue.migration import migration_stages

    verification = _run(migration_stages.compare, mysql, endpoint, table)
    _report(verification.lines(), is_well=verification.is_equal)


@metrics.command()
@_databases(are_required=True)
def cutover(mysql: str, endpoint: str, table: str) -> None:
    """Let DynamoDB answer if both sides are equal. No request fails meanwhile."""
    from metric_catalogue.migration import migration_stages

    verification = _run(migration_stages.cutover, mysql, endpoint, table)
    _report(
        [*_compared(verification), _mode(Mode.DYNAMODB, verification)],
        is_well=verification.is_equal,
    )


@metrics.command()
@click.option(
    "--replaced",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file for versions that somebody wrote in MariaDB past its fence and that would be "
    "overwritten. Without it, such versions stop the rollback.",
)
@_databases(are_required=True)
def rollback(replaced: Path | None, mysql: str, endpoint: str, table: str) -> None:
    """Copy everything written since the cutover back to MariaDB, then let MariaDB answer again."""
    from metric_catalogue.migration import migration_stages

    verification = _run(
        partial(migration_stages.rollback, replaced=replaced), mysql, endpoint, table
    )
    _report(
        [*_compared(verification), _mode(Mode.LEGACY, verification)], is_well=verification.is_equal
    )


@metrics.command()
@click.option(
    "--table",
    default=CatalogueTables().metrics,
    show_default=True,
    help="The table of the catalogue in DynamoDB.",
)
def cloudformation(table: str) -> None:
    """Print a CloudFormation template of the tables and the migration as JSON."""
    from metric_catalogue.catalogue_cloudformation import template

    click.echo(json.dumps(template(CatalogueTables(table)), indent=2))


def _run(stage: Stage[T], mysql: str, endpoint: str, table: str) -> T:
    """Runs a stage of the migration with progress bars."""
    from partita.server.http.process_lifecycle import run
    from partita_migrate.commands.command_group import progress_bars

    with progress_bars() as progress:
        return run(lambda: stage(mysql, endpoint, CatalogueTables(table), progress))


def _compared(verification: CatalogueVerification) -> list[str]:
    """Returns the lines of a verification; none if the stage had been completed before, so that
    nothing was compared."""
    return verification.lines() if verification.metrics or not verification.is_equal else []


def _mode(mode: Mode, verification: CatalogueVerification) -> str:
    return f"the mode is {mode}" if verification.is_equal else "the mode is unchanged"


def _report(lines: list[str], is_well: bool) -> None:
    for line in lines:
        click.echo(line)
    if not is_well:
        sys.exit(1)
