"""`partita pagehits serve-old` and `compare`: the old relational counter."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from page_hit_counter.commands.command_options import host_option, json_option, print_json

if TYPE_CHECKING:
    from page_hit_counter.legacy.counter_comparison import ComparisonResult

_postgresql = click.option(
    "--postgresql",
    required=True,
    envvar="PARTITA_PAGEHITS_POSTGRESQL",
    help="A database for the old counter: postgresql://user@host/database.",
)


@click.command("serve-old")
@_postgresql
@host_option
@click.option("--port", default=8081, show_default=True, help="0 takes a free port.")
def serve_old(postgresql: str, host: str, port: int) -> None:
    """Serve the old relational counter: POST /pagehits, and GET / for lists."""
    from page_hit_counter.legacy.relational_service import serve
    from partita.server.http.process_lifecycle import run

    run(
        lambda: serve(
            postgresql, host, port, lambda url: click.echo(f"The old counter listens on {url}")
        )
    )


@click.command()
@click.argument(
    "visits", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@_postgresql
@click.option("--count", default=50_000, show_default=True, help="How many visits to make up.")
@click.option("--prices", "price_name", default="today", show_default=True)
@json_option
def compare(
    visits: Path | None, postgresql: str, count: int, price_name: str, as_json: bool
) -> None:
    """Run the old relational counter and the new one on the same visits.

    VISITS is a file with one JSON object per line: events as they are posted, with brand and
    resourceType. Without a file, visits are made up. The old counter needs an empty database; for
    the new one, a Partita server is started.
    """
    import asyncio

    from page_hit_counter.aws.aws_costs import read_prices
    from page_hit_counter.legacy.counter_comparison import read_visits, run, sample_visits

    chosen = read_visits(visits) if visits else sample_visits(count)
    result = asyncio.run(run(chosen, postgresql, read_prices(price_name)))
    if as_json:
        print_json(result)
        return
    for line in _compared(result):
        click.echo(line)


def _compared(result: ComparisonResult) -> Iterable[str]:
    yield f"{f'{result.visits:,} visits':<50}{'old (PostgreSQL)':>18}{'new (Partita)':>18}"
    rows = (
        ("seconds until all visits were stored", "seconds", ",.1f"),
        ("visits per second", "visits_second", ",.0f"),
        ("rows or items written", "rows_written", ",d"),
        ("bytes stored", "bytes_kept", ",d"),
        ("day lists per second, first read", "first_lists_second", ",.0f"),
        ("day lists per second, as served", "lists_second", ",.0f"),
        ("dollars per month at this traffic", "dollars_month", ",.2f"),
    )
    for title, name, form in rows:
        old, new = (format(getattr(side, name), form) for side in (result.old, result.new))
        yield f"{title:<50}{old:>18}{new:>18}"
    for name, count in result.differences.items():
        listed = len(result.new.lists[name])
        verdict = f"{count} entries differ" if count else "the same" if listed else "both are empty"
        yield f"{f'list for {name}, {listed} assets':<50}{verdict:>18}"
