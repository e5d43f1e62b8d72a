"""`partita console`: serves the console's pages for a DynamoDB endpoint that runs elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import click

from partita.console.console_modes import ON, READ_ONLY
from partita.errors import PartitaError

HOST, PORT = "127.0.0.1", 8010
OPEN = (
    "\n"
    "  *********************************************************************************\n"
    "  WARNING: this console listens on {host} and has no sign-in. Anybody who can reach\n"
    "  it can do whatever your credentials allow. Let it listen on 127.0.0.1 instead.\n"
    "  *********************************************************************************\n"
)
AMAZON = re.compile(r"https://dynamodb\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/?")
"""Matches endpoints of Amazon itself, where each service has its own host name."""


@click.command()
@click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    default="http://127.0.0.1:8000",
    show_default=True,
    help="The endpoint to show; Amazon's is https://dynamodb.REGION.amazonaws.com.",
)
@click.option("--region", envvar="AWS_REGION", default="us-east-1", show_default=True)
@click.option("--host", default=HOST, show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="0 takes a free port.",
)
@click.option("--read-only", is_flag=True, help="Refuse all changes from the pages.")
@click.option(
    "--move",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of `partita migrate`, to watch and steer its move to the endpoint.",
)
def console(
    endpoint: str, region: str, host: str, port: int, read_only: bool, folders: tuple[Path, ...]
) -> None:
    """Show any DynamoDB endpoint in a browser.

    Credentials come from the environment, as for the AWS CLI, and never leave this process.
    """
    from partita.client import Client
    from partita.console.console_endpoints import RemoteEndpoint
    from partita.console.console_service import Console
    from partita.console.migration_runs import MigrationFolders, MigrationTarget
    from partita.server.http import process_lifecycle
    from partita.server.http.host_header import is_local

    if not endpoint.startswith(("http://", "https://")):
        raise PartitaError(f"An endpoint begins with http:// or https://, not {endpoint!r}.")
    if "@" in urlsplit(endpoint).netloc:
        raise PartitaError(
            "The endpoint is shown on the pages, so it must not contain a name and password. Set "
            "credentials in the environment instead."
        )
    amazon = AMAZON.fullmatch(endpoint)
    mode = READ_ONLY if read_only else ON

    def ready(url: str) -> None:
        if not is_local(host):
            click.echo(OPEN.format(host=host), err=True)
        click.echo(f"The console is ready on {url}/console (for {endpoint})")

    async def run() -> None:
        client = (
            Client(endpoint, region, tries=1)
            if amazon is None
            else Client(region=amazon[1], tries=1)
        )
        moves = MigrationFolders(folders, MigrationTarget(None if amazon else endpoint))
        shown = Console(
            RemoteEndpoint(client, endpoint),
            mode,
            region=amazon[1] if amazon else region,
            moves=moves,
        )
        try:
            await shown.web.serve(host, port, ready)
        finally:
            await moves.close()
            await client.close()

    process_lifecycle.run(run)
