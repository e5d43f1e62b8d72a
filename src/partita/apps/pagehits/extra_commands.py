"""Commands of `partita pagehits` beside the service: quarantine, old counter, cost, AWS."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from partita.apps.pagehits.compare import Result
    from partita.apps.pagehits.spam.cases import Case
    from partita.apps.pagehits.spam.quarantine import Quarantine

ENDPOINT = "http://127.0.0.1:8000"
REGION = "us-east-1"

_config = click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The settings, pagehits.toml.",
)
_endpoint = click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    default=ENDPOINT,
    show_default=True,
    help="The database of the service.",
)
STATUSES = ("observed", "quarantined", "releasing", "released", "confirmed")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


# Quarantine


@click.group()
def quarantine() -> None:
    """Read what the spam filter withheld, release or confirm it."""


def _quarantined(command: Callable[..., None]) -> Callable[..., None]:
    """What all of these take."""
    brand = click.option("--brand", required=True, help="Whose cases.")
    return brand(_endpoint(_config(_json(command))))


@quarantine.command("list")
@_quarantined
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
def list_cases(
    brand: str, endpoint: str, config: Path | None, as_json: bool, status: Any, limit: int
) -> None:
    """List cases, the newest first."""
    found = _with_quarantine(
        config, endpoint, lambda quarantine: quarantine.cases(brand, status, limit)
    )
    if as_json:
        _print_json(found)
        return
    for case in found:
        click.echo(_line(case))


@quarantine.command()
@_quarantined
@click.argument("case_id", metavar="CASE")
def show(brand: str, endpoint: str, config: Path | None, as_json: bool, case_id: str) -> None:
    """Show a case with its explanation and its visits."""

    async def read(quarantine: Quarantine) -> tuple[Any, Any]:
        return await quarantine.case(brand, case_id), await quarantine.evidence(brand, case_id)

    case, evidence = _with_quarantine(config, endpoint, read)
    if as_json:
        _print_json({"case": case, "evidence": list(evidence.values())})
        return
    click.echo(_line(case))
    for part in case.explanation:
        click.echo(
            f"  {part.feature:<10} {part.attribution:7.3f} of the score, {part.direction}, "
            f"strength {part.strength:.2f}"
        )
    for piece in evidence.values():
        for visit in piece.visits:
            who = _printable(f"{visit.visitor} {visit.agent}")
            click.echo(f"  {visit.time:.0f} {visit.asset_id} {who}")


@quarantine.command()
@_quarantined
@click.argument("case_id", metavar="CASE")
def release(brand: str, endpoint: str, config: Path | None, as_json: bool, case_id: str) -> None:
    """Count the hits of a case after all, and let its subject pass from now on."""
    case = _with_quarantine(config, endpoint, lambda found: found.release(brand, case_id))
    _print_json(case) if as_json else click.echo(_line(case))


@quarantine.command()
@_quarantined
@click.argument("case_id", metavar="CASE")
def confirm(brand: str, endpoint: str, config: Path | None, as_json: bool, case_id: str) -> None:
    """Say that a case is spam, and withhold what its subject sends from now on."""
    case = _with_quarantine(config, endpoint, lambda found: found.confirm(brand, case_id))
    _print_json(case) if as_json else click.echo(_line(case))


def _with_quarantine(
    config: Path | None, endpoint: str, work: Callable[[Quarantine], Awaitable[Any]]
) -> Any:
    import asyncio

    from partita.apps.pagehits import settings
    from partita.apps.pagehits.spam.quarantine import Quarantine
    from partita.client import Client

    loaded = settings.load(config)

    async def run() -> Any:
        client = Client(endpoint, connections=2)
        try:
            return await work(Quarantine.of(client, loaded.spam, loaded.stream))
        finally:
            await client.close()

    return asyncio.run(run())


def _line(case: Case) -> str:
    score = "" if case.score is None else f", score {case.score:.2f}"
    subject = _printable(case.subject)
    return f"{case.id}  {case.status}  {case.hits} hits  {case.reason}: {subject}{score}"


def _printable(text: str) -> str:
    """What visitors call themselves must not command the terminal of who looks."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


# The old counter


_postgresql = click.option(
    "--postgresql",
    required=True,
    envvar="PARTITA_PAGEHITS_POSTGRESQL",
    help="A database for the old counter: postgresql://user@host/database.",
)


@click.command("serve-old")
@_postgresql
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8081, show_default=True, help="0 takes a free port.")
def serve_old(postgresql: str, host: str, port: int) -> None:
    """Serve the old relational counter: POST /pagehits, and GET / for lists."""
    from partita.apps.pagehits.relational_service import serve
    from partita.server.http.lifecycle import run

    run(lambda: serve(postgresql, host, port, lambda url: click.echo(f"old pagehits at {url}")))


@click.command()
@click.argument(
    "visits", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@_postgresql
@click.option("--count", default=50_000, show_default=True, help="Visits to make up.")
@click.option("--prices", "price_name", default="today", show_default=True)
@_json
def compare(
    visits: Path | None, postgresql: str, count: int, price_name: str, as_json: bool
) -> None:
    """Run the old relational counter and the new one on the same visits.

    VISITS is a file with a JSON object for each visit and line, as they are posted, with brand and
    resourceType; without one, visits are made up. The old counter needs an empty database; the new
    one has a Partita server of its own.
    """
    import asyncio

    from partita.apps.pagehits.compare import read_visits, run, sample_visits
    from partita.apps.pagehits.cost import read_prices

    chosen = read_visits(visits) if visits else sample_visits(count)
    result = asyncio.run(run(chosen, postgresql, read_prices(_price_name(price_name))))
    if as_json:
        _print_json(result)
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


# Cost


@click.command()
@click.option(
    "--prices",
    "price_name",
    default=None,
    help="document, today, or a file of your own; without it, the first two.",
)
@_json
def cost(price_name: str | None, as_json: bool) -> None:
    """What designs cost on AWS: Lambda or Fargate, DynamoDB or Aurora."""
    from partita.apps.pagehits.cost import PRICE_FILES, read_prices
    from partita.apps.pagehits.cost import compare as compared

    names = [price_name] if price_name else list(PRICE_FILES)
    found = [read_prices(_price_name(name)) for name in names]
    if as_json:
        _print_json(
            [
                {"prices": prices, "tables": [c._asdict() for c in compared(prices)]}
                for prices in found
            ]
        )
        return
    for prices in found:
        click.echo(f"Prices: {prices.name}, {prices.date} ({prices.note})\n")
        for comparison in compared(prices):
            click.echo(comparison.title)
            for row in (comparison.columns, *comparison.rows):
                click.echo(f"  {row[0]:<50}" + "".join(f"{cell:>18}" for cell in row[1:]))
            click.echo()


def _price_name(text: str) -> str | Path:
    from partita.apps.pagehits.cost import PRICE_FILES

    return text if text in PRICE_FILES else Path(text)


# AWS


@click.command("flink-sql")
@_config
@click.option("--source-arn", help="The Kinesis stream of visits.")
@click.option("--sink-arn", help="The Kinesis stream that counts are written to.")
@click.option("--region", default=REGION, show_default=True)
@click.option("--source-files", help="A folder of records as JSON lines, in place of a stream.")
@click.option("--sink-files", help="A folder that counts are written to, in place of a stream.")
@click.option("--json", "as_json", is_flag=True, help="The job for flink_application.py.")
def flink_sql(
    config: Path | None,
    source_arn: str | None,
    sink_arn: str | None,
    region: str,
    source_files: str | None,
    sink_files: str | None,
    as_json: bool,
) -> None:
    """Print the counter as a job for Apache Flink."""
    from partita.apps.pagehits import settings
    from partita.apps.pagehits.flink import (
        file_options,
        flink_job,
        kinesis_options,
        kinesis_source_options,
    )

    loaded = settings.load(config)
    account = f"arn:aws:kinesis:{region}:123456789012:stream/"
    source = kinesis_source_options(source_arn or f"{account}{loaded.stream}", region)
    sink = kinesis_options(sink_arn or f"{account}{loaded.stream}-counts", region)
    job = flink_job(
        loaded,
        file_options(source_files) if source_files else source,
        file_options(sink_files) if sink_files else sink,
    )
    click.echo(json.dumps(job._asdict(), indent=2) if as_json else job.text(), nl=as_json)


@click.command()
@_config
def cloudformation(config: Path | None) -> None:
    """Print a CloudFormation template of the service, as JSON."""
    from partita.apps.pagehits import settings
    from partita.apps.pagehits.aws.template import template

    click.echo(json.dumps(template(settings.load(config)), indent=2))


def _print_json(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


COMMANDS: tuple[click.Command, ...] = (
    quarantine,
    serve_old,
    compare,
    cost,
    flink_sql,
    cloudformation,
)
