"""`partita pagehits serve-old` and `compare`: the old relational counter."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.apps.pagehits.commands.options import host_option, json_option, print_json

if TYPE_CHECKING:
    from partita.apps.pagehits.legacy.comparison import Result

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
    from partita.apps.pagehits.legacy.relational_service import serve
    from partita.apps.web import run

    run(lambda: serve(postgresql, host, port, lambda url: click.echo(f"old pagehits at {url}")))


@click.command()
@click.argument(
    "visits", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@_postgresql
@click.option("--count", default=50_000, show_default=True, help="Visits to make up.")
@click.option("--prices", "price_name", default="today", show_default=True)
@json_option
def compare(
    visits: Path | None, postgresql: str, count: int, price_name: str, as_json: bool
) -> None:
    """Run the old relational counter and the new one on the same visits.

    VISITS is a file with a JSON object for each visit and line, as they are posted, with brand and
    resourceType; without one, visits are made up. The old counter needs an empty database; the new
    one has a Partita server of its own.
    """
    import asyncio

    from partita.apps.pagehits.aws.costs import read_prices
    from partita.apps.pagehits.legacy.comparison import read_visits, run, sample_visits

    chosen = read_visits(visits) if visits else sample_visits(count)
    result = asyncio.run(run(chosen, postgresql, read_prices(price_name)))
    if as_json:
        print_json(result)
        return
    for line in _compared(result):
        click.echo(line)


def _compared(result: Result) -> Iterable[str]:
    yield f"{f'{result.visits:,} visits':<50}{'old (PostgreSQL)':>18}{'new (Partita)':>18}"
    rows = (
        ("until all were safe, seconds", "seconds", ",.1f"),
        ("visits a second", "visits_second", ",.0f"),
        ("rows or items written", "rows_written", ",d"),
        ("bytes kept", "bytes_kept", ",d"),
        ("lists of a day, read for the first time, a second", "first_lists_second", ",.0f"),
        ("lists of a day, as they are served, a second", "lists_second", ",.0f"),
        ("dollars a month at this traffic", "dollars_month", ",.2f"),
    )
    for title, name, form in rows:
        old, new = (format(getattr(side, name), form) for side in (result.old, result.new))
        yield f"{title:<50}{old:>18}{new:>18}"
    for name, count in result.differences.items():
        listed = len(result.new.lists[name])
        said = "the same" if not count else f"{count} entries differ"
        yield f"{f'list of {name}, {listed} assets':<50}{said:>18}"
