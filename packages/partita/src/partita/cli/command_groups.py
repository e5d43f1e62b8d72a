"""The command `partita`, and its subcommands that look at a folder or a running server."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from partita import __version__
from partita.cli.lazy_commands import LATE
from partita.cli.local_command import local
from partita.cli.serve_command import HOST, PORT, serve
from partita.errors import PartitaError
from partita.installation import compiled_modules, partner_packages

ENDPOINT = f"http://{HOST}:{PORT}"
COPIES = "backups"
"""A folder of backups contains a folder of this name; a data folder does not."""
FORM = "compiled" if compiled_modules.is_used() else "plain Python"


def main() -> None:
    """Run the command line; an error is printed as one sentence."""
    try:
        commands(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except PartitaError as error:
        click.echo(f"partita: {error}", err=True)
        sys.exit(1)


class CommandGroup(click.Group):
    """Lists its own commands, those of lazy_commands.py and those of other packages.

    `partita --help` must import none of them, so that it works whatever is installed.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        packaged = {
            **partner_packages.PACKAGED,
            **partner_packages.entry_points(partner_packages.COMMANDS),
        }
        return sorted({*super().list_commands(ctx), *LATE, *packaged})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command as `--help` lists it: a placeholder unless it is loaded already."""
        if cmd_name in LATE:
            return click.Command(cmd_name, help=LATE[cmd_name].help)
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        help_text = partner_packages.packaged_help(cmd_name)
        return None if help_text is None else click.Command(cmd_name, short_help=help_text)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name in LATE:
            command = LATE[name].load()
        elif name is not None and name not in self.commands:
            command = partner_packages.load_command(name)
        return name, command, rest


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "PARTITA"},
)
@click.version_option(
    __version__, prog_name="partita", message=f"%(prog)s, version %(version)s ({FORM})"
)
def commands() -> None:
    """A DynamoDB-compatible database that you run yourself."""


commands.add_command(serve)
commands.add_command(local)


@commands.command()
@click.argument("data", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--encryption-key",
    metavar="SOURCE",
    envvar="PARTITA_SERVE_ENCRYPTION_KEY",
    help="The key of an encrypted folder: file:PATH, env:NAME or command:LINE.",
)
def check(data: Path, encryption_key: str | None) -> None:
    """Verify a data folder that is not being served, or a folder of backups.

    Exits with 0 if nothing is wrong, 1 if something is, and 2 if DIR cannot be opened.
    """
    from partita.copies.integrity_check import check_folder
    from partita.database.storage.data_folder.keyring_access import key_source

    try:
        if (data / COPIES).is_dir():
            from partita.copies.backups.restore_backup import check_all_backups

            is_well = check_all_backups(data, key_source(encryption_key), click.echo)
        else:
            is_well = check_folder(data, click.echo, key_source(encryption_key))
    except PartitaError as error:
        click.echo(f"partita: {error}", err=True)
        sys.exit(2)
    sys.exit(0 if is_well else 1)


_endpoint = click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    default=ENDPOINT,
    show_default=True,
    help="The URL of the server.",
)


@commands.command()
@click.argument("table", required=False)
@_endpoint
@click.option("--rcu", type=click.FloatRange(0), help="Read units a second to size for.")
@click.option("--wcu", type=click.FloatRange(0), help="Write units a second to size for.")
@click.option("--gb", type=click.FloatRange(0), help="Gigabytes of data to size for.")
def partitions(
    table: str | None, endpoint: str, rcu: float | None, wcu: float | None, gb: float | None
) -> None:
    """Draw the partitions of TABLE, or compute how many a given throughput and size need."""
    from partita.server.monitoring import partitions_command as drawing

    asks_for_sizing = (rcu, wcu, gb) != (None, None, None)
    if asks_for_sizing == (table is not None):
        raise click.UsageError("Name a TABLE of a running server, or give --rcu, --wcu or --gb.")
    lines = (
        drawing.sizing(rcu or 0, wcu or 0, gb or 0)
        if table is None
        else drawing.drawn(endpoint, table)
    )
    for line in lines:
        click.echo(line)


@commands.command()
@click.argument("table")
@_endpoint
def insights(table: str, endpoint: str) -> None:
    """Show the most accessed and the most throttled keys of TABLE."""
    from partita.server.monitoring.insights_command import listed

    for line in listed(endpoint, table):
        click.echo(line)


@commands.command()
@_endpoint
@click.option("--seconds", default=2.0, show_default=True, help="Seconds between two refreshes.")
@click.option("--once", is_flag=True, help="Print the figures once, for scripts.")
def top(endpoint: str, seconds: float, once: bool) -> None:
    """Watch a server: operations, latency, capacity units, throttling, hot partitions."""
    from partita.server.monitoring.top_command import show

    show(endpoint, seconds, once=once)
