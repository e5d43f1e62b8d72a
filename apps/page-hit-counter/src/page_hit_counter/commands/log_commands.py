"""`partita pagehits logs`: query logs with SQL, and show which parameters requests have."""

from __future__ import annotations

from pathlib import Path

import click

from page_hit_counter.commands.command_options import json_option, print_json

FILES = click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)


@click.group()
def logs() -> None:
    """Query logs of a load balancer, or lines of JSON; both may be compressed with gzip."""


@logs.command()
@FILES
@click.option("--sql", required=True, help="A query of the table `logs`, in SQLite's dialect.")
@json_option
def query(files: tuple[Path, ...], sql: str, as_json: bool) -> None:
    """Run a query over FILES, as Athena and Logs Insights do."""
    from page_hit_counter.monitoring import log_queries

    answer = log_queries.query(files, sql)
    if as_json:
        print_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    else:
        for line in log_queries.text_table(answer.columns, answer.rows):
            click.echo(line)
    if answer.unreadable:
        click.echo(f"Lines that could not be read: {answer.unreadable}.", err=True)


@logs.command()
@FILES
@click.option("--path", "path_prefix", default="/", show_default=True, help="Only requests below.")
@json_option
def shares(files: tuple[Path, ...], path_prefix: str, as_json: bool) -> None:
    """Show the shares of requests by the combination of their parameters."""
    from page_hit_counter.monitoring import log_queries

    parameter_shares = log_queries.parameter_shares(files, path_prefix)
    if as_json:
        print_json([share._asdict() for share in parameter_shares])
        return
    rows = [(share.parameters, share.requests, f"{share.share:.1%}") for share in parameter_shares]
    for line in log_queries.text_table(("query parameter combination", "requests", "share"), rows):
        click.echo(line)
