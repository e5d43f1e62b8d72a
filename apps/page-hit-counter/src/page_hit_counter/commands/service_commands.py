"""`partita pagehits serve` and `import`: run the service, and count the visits in access logs."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from page_hit_counter.commands.command_options import (
    DATABASE_PORT,
    ENDPOINT_VARIABLE,
    config_option,
    endpoint_option,
    host_option,
)

PORT = 8080
DATA = Path("pagehits-data")
TOKEN_VARIABLE = "PARTITA_PAGEHITS_TOKEN"
PARTS = ("processor", "delivery", "counter", "consumer", "api")


def _parts(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str]:
    parts = [part.strip() for part in text.split(",")] if text else []
    for part in parts:
        if part not in PARTS:
            raise click.BadParameter(f"there is no part {part!r}: use {', '.join(PARTS)}.")
    return parts


@click.command()
@config_option
@host_option
@click.option("--port", default=PORT, show_default=True, help="0 takes a free port.")
@click.option(
    "--endpoint",
    help="The database. Without this option a Partita server is started, even if "
    f"{ENDPOINT_VARIABLE} is set.",
)
@click.option(
    "--data",
    default=DATA,
    show_default=True,
    type=click.Path(path_type=Path),
    help="The data folder of the server that is started.",
)
@click.option(
    "--in-memory", is_flag=True, help="The server that is started keeps its data in memory only."
)
@click.option(
    "--database-port",
    default=DATABASE_PORT,
    show_default=True,
    help="The port of the server that is started.",
)
@click.option(
    "--parts",
    callback=_parts,
    help=f"Run only these parts in this process: {','.join(PARTS)}. Needs --endpoint.",
)
@click.option(
    "--token",
    envvar=TOKEN_VARIABLE,
    help="A token that protects dashboard and quarantine; browsers ask for it as the password.",
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
    from page_hit_counter import pagehits_settings
    from partita.server.http.process_lifecycle import run

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    loaded = pagehits_settings.load(config)
    if parts:
        from page_hit_counter.service.service_process import run_parts

        if endpoint is None:
            raise click.UsageError("--parts needs the --endpoint of a database.")
        run(lambda: run_parts(loaded, endpoint, parts, host, port, click.echo, token))
        return
    from page_hit_counter.service.service_supervisor import supervise

    if token:
        # Passed on by the environment: other users of this machine can read the arguments.
        os.environ[TOKEN_VARIABLE] = token

    if endpoint is None and ENDPOINT_VARIABLE in os.environ:
        click.echo(
            f"A database is started, although {ENDPOINT_VARIABLE} is set: to use that one, give "
            f"--endpoint {os.environ[ENDPOINT_VARIABLE]}.",
            err=True,
        )
    own = ["pagehits", "serve", *(["--config", str(config)] if config else [])]
    database = ["serve", *(["--in-memory"] if in_memory else ["--data", str(data)])]
    run(
        lambda: supervise(
            endpoint,
            [*database, "--port", str(database_port)],
            [*own, "--parts", "processor,api", "--host", host, "--port", str(port)],
            [*own, "--parts", "delivery,counter,consumer", "--port", "0"],
            click.echo,
        )
    )


@click.command("import")
@click.argument(
    "logs",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@config_option
@endpoint_option
def import_logs(logs: tuple[Path, ...], config: Path | None, endpoint: str) -> None:
    """Count the visits in access logs (combined format, optionally compressed with gzip).

    The rules under [[urls]] in pagehits.toml say which URLs are assets. Importing the same files
    again counts nothing twice.
    """
    from page_hit_counter import pagehits_settings
    from page_hit_counter.service import service_process
    from partita.server.http.process_lifecycle import run

    loaded = pagehits_settings.load(config)
    run(lambda: service_process.import_logs(logs, loaded, endpoint, click.echo))
