"""Options that several commands of `partita pagehits` share, and printing of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

HOST = "127.0.0.1"
DATABASE_PORT = 8000
ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"


def _announced(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """Prints which database is used when it comes from the environment."""
    source = context.get_parameter_source(parameter.name or "")
    if source is ParameterSource.ENVIRONMENT:
        click.echo(f"The database is {url}, from {ENDPOINT_VARIABLE}.", err=True)
    return url


config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The settings, pagehits.toml.",
)
endpoint_option = click.option(
    "--endpoint",
    envvar=ENDPOINT_VARIABLE,
    callback=_announced,
    default=f"http://{HOST}:{DATABASE_PORT}",
    show_default=True,
    help="The database of the service.",
)
host_option = click.option("--host", default=HOST, show_default=True, help="Address to listen on.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def print_json(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())
