"""The commands `partita pagehits ...`. Parsing only; what they do is loaded when it is done."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from partita.apps.pagehits.extra_commands import COMMANDS

HOST = "127.0.0.1"
PORT = 8080
DATABASE_PORT = 8000
DATA = Path("pagehits-data")
TOKEN_VARIABLE = "PARTITA_PAGEHITS_TOKEN"
PARTS = ("processor", "counter", "consumer", "api")


@click.group()
def pagehits() -> None:
    """Count page visits, and list what is most popular."""


_config = click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The settings, pagehits.toml.",
)


def _parts(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str]:
    parts = [part.strip() for part in text.split(",")] if text else []
    for part in parts:
        if part not in PARTS:
            raise click.BadParameter(f"there is no part {part!r}: use {', '.join(PARTS)}.")
    return parts


@pagehits.command()
@_config
@click.option("--host", default=HOST, show_default=True, help="Address to listen on.")
@click.option("--port", default=PORT, show_default=True, help="0 takes a free port.")
@click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    help="The database. Without one, a Partita server is started.",
)
@click.option(
    "--data",
    default=DATA,
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder of the server that is started.",
)
@click.option("--in-memory", is_flag=True, help="That server keeps nothing.")
@click.option(
    "--database-port", default=DATABASE_PORT, show_default=True, help="The port of that server."
)
@click.option(
    "--parts",
    callback=_parts,
    help=f"Only these, in this process: {','.join(PARTS)}. They need an --endpoint.",
)
@click.option(
    "--token",
    envvar=TOKEN_VARIABLE,
    help="Whoever is to see dashboard and quarantine gives it (the password, in a browser).",
)
def serve(
    config: Path | None,
    host: str,
    port: int,
    endpoint: str | None,
    data: Path,
    in_memory: bool,
    database_port: int,
    parts: list[str],
    token: str | None,
) -> None:
    """Run the page hit counter until SIGTERM or Ctrl-C."""
    from partita.apps.pagehits import settings
    from partita.server.http.lifecycle import run

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    loaded = settings.load(config)
    if parts:
        from partita.apps.pagehits.service import run_parts

        if endpoint is None:
            raise click.UsageError("--parts need the --endpoint of a database.")
        run(lambda: run_parts(loaded, endpoint, parts, host, port, click.echo, token))
        return
    from partita.apps.pagehits.whole import run_whole

    if token:
        # Not among the arguments of the processes, which others on this machine can read.
        os.environ[TOKEN_VARIABLE] = token

    own = ["pagehits", "serve", *(["--config", str(config)] if config else [])]
    database = ["serve", *(["--in-memory"] if in_memory else ["--data", str(data)])]
    run(
        lambda: run_whole(
            endpoint,
            [*database, "--port", str(database_port)],
            [*own, "--parts", "processor,api", "--host", host, "--port", str(port)],
            [*own, "--parts", "counter,consumer", "--port", "0"],
            click.echo,
        )
    )


@pagehits.command("import")
@click.argument(
    "logs",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@_config
@click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    default=f"http://{HOST}:{DATABASE_PORT}",
    show_default=True,
    help="The database of the service.",
)
def import_command(logs: tuple[Path, ...], config: Path | None, endpoint: str) -> None:
    """Count the visits in access logs (combined format, also compressed with gzip).

    Addresses become assets by the rules under [[urls]] in pagehits.toml. Importing the same files
    again counts nothing twice.
    """
    from partita.apps.pagehits import settings
    from partita.apps.pagehits.service import import_logs
    from partita.server.http.lifecycle import run

    loaded = settings.load(config)
    run(lambda: import_logs(logs, loaded, endpoint, click.echo))


for command in COMMANDS:
    pagehits.add_command(command)
