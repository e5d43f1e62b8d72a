"""`partita export`, `import`, `diff`, `scan` and `query`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import click
import orjson

from partita.client import Client
from partita.clock import system_clock
from partita.errors import PartitaError
from partita.exchange.differences import ADDED, CHANGED, DELETED, Difference, differences
from partita.exchange.exporting import export
from partita.exchange.files import FORMATS, JsonLines
from partita.exchange.importing import import_file
from partita.exchange.moments import moment_of, shown
from partita.exchange.tables import at, describe, pages

REFUSALS_TOLD_MAX = 20

Result = TypeVar("Result")

_endpoint = click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    default="http://127.0.0.1:8000",
    show_default=True,
    help="Where the server is.",
)
_region = click.option("--region", envvar="AWS_REGION", default="us-east-1", show_default=True)
_at = click.option(
    "--at",
    "moment",
    metavar="TIME",
    help="As it was then, where recovery is on: 14:02, 2026-11-16T14:02:10Z, 10m (ago).",
)
_format = click.option(
    "--format", "kind", type=click.Choice(FORMATS), help="If the name of FILE does not say it."
)
_plain = click.option("--plain", is_flag=True, help="JSON without types: sets become lists.")


def _run(endpoint: str, region: str, work: Callable[[Client], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        client = Client(endpoint, region, tries=5)
        try:
            return await work(client)
        finally:
            await client.close()

    if not endpoint.startswith(("http://", "https://")):
        raise PartitaError(f"An endpoint begins with http:// or https://, not {endpoint!r}.")
    return asyncio.run(run())


def _moment(text: str | None) -> float | None:
    """None for now."""
    if text is None or text == "now":
        return None
    now = system_clock()
    moment = moment_of(text, now)
    if moment > now:
        raise PartitaError(f"{shown(moment)} is yet to come.")
    return moment


@click.command("export")
@click.argument("table")
@click.argument("file")
@_at
@_format
@_plain
@_endpoint
@_region
def export_command(
    table: str,
    file: str,
    moment: str | None,
    kind: str | None,
    plain: bool,
    endpoint: str,
    region: str,
) -> None:
    """Write TABLE into FILE: CSV, JSON lines or Parquet, by how its name ends; - is stdout.

    Nothing is lost on the way: `partita import` makes the same items of the file.
    """
    then = _moment(moment)
    _run(
        endpoint,
        region,
        lambda client: export(client, table, file, kind=kind, moment=then, is_plain=plain),
    )


@click.command("import")
@click.argument("table")
@click.argument("file")
@click.option(
    "--key", metavar="NAME:TYPE[,NAME:TYPE]", help="Create TABLE with this key if it is not there."
)
@click.option("--only-missing", is_flag=True, help="Leave items alone that TABLE has.")
@_format
@_plain
@_endpoint
@_region
def import_command(
    table: str,
    file: str,
    key: str | None,
    only_missing: bool,
    kind: str | None,
    plain: bool,
    endpoint: str,
    region: str,
) -> None:
    """Put the items of FILE into TABLE: CSV, JSON lines or Parquet; - is stdin.

    In CSV, a header such as price:N says of which type a column is; others are strings, and keys
    what the table says. Exits with 1 when a record could not be used.
    """
    told = 0

    def tell(text: str) -> None:
        nonlocal told
        told += 1
        if told <= REFUSALS_TOLD_MAX:
            click.echo(text, err=True)

    done = _run(
        endpoint,
        region,
        lambda client: import_file(
            client, table, file, tell, kind=kind, key=key, is_plain=plain, only_missing=only_missing
        ),
    )
    if told > REFUSALS_TOLD_MAX:
        click.echo(f"... and {told - REFUSALS_TOLD_MAX:,} more.", err=True)
    sys.exit(1 if done.refused else 0)


@click.command()
@click.argument("table")
@click.option("--at", "first", metavar="TIME", required=True, help="Before: 14:02, 10m (ago), ...")
@click.option(
    "--and", "second", metavar="TIME", default="now", show_default=True, help="And afterwards."
)
@click.option(
    "--only",
    type=click.Choice([ADDED, CHANGED, DELETED]),
    multiple=True,
    help="Show these changes only.",
)
@click.option("--json", "is_json", is_flag=True, help="A line of JSON for each change.")
@click.option("--items", is_flag=True, help="The items as they were before, for partita import.")
@_endpoint
@_region
def diff(
    table: str,
    first: str,
    second: str,
    only: tuple[str, ...],
    is_json: bool,
    items: bool,
    endpoint: str,
    region: str,
) -> None:
    """Show what changed in TABLE between two moments; it needs recovery to be on.

    Exits with 0 when nothing did, and with 1 when something did.
    """
    if is_json and items:
        raise click.UsageError("Give --json or --items.")
    moments = [_moment(text) for text in (first, second)]
    told = _tell_items if items else _tell_json if is_json else _tell

    async def compare(client: Client) -> dict[str, int]:
        counts = {ADDED: 0, CHANGED: 0, DELETED: 0}
        described = await describe(client, table)
        async with AsyncExitStack() as stack:
            sides = [await stack.enter_async_context(at(client, table, one)) for one in moments]
            async for one in differences(client, described, *sides):
                if only and one.kind not in only:
                    continue
                counts[one.kind] += 1
                told(one)
        return counts

    counts = _run(endpoint, region, compare)
    click.echo(
        ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) + ".",
        err=is_json or items,
    )
    sys.exit(1 if any(counts.values()) else 0)


def _tell(one: Difference) -> None:
    for line in one.lines():
        click.echo(line)


def _tell_json(one: Difference) -> None:
    click.echo(orjson.dumps(one.record()).decode())


def _tell_items(one: Difference) -> None:
    if one.before is not None:
        click.echo(orjson.dumps({"Item": one.before}).decode())


def _reading(function: Callable[..., None]) -> Callable[..., None]:
    """What a scan and a query have in common."""
    options = [
        click.argument("table"),
        _at,
        click.option("--index", help="Of an index of TABLE."),
        click.option("--filter", "filtered", metavar="EXPRESSION", help="A filter expression."),
        click.option("--names", metavar="JSON", help='Names in expressions: {"#s": "status"}.'),
        click.option("--values", metavar="JSON", help='Values in them: {":s": {"S": "open"}}.'),
        click.option("--limit", type=click.IntRange(1), help="At most so many items."),
        _plain,
        _endpoint,
        _region,
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _read(
    operation: str,
    more: dict[str, Any],
    *,
    table: str,
    moment: str | None,
    index: str | None,
    filtered: str | None,
    names: str | None,
    values: str | None,
    limit: int | None,
    plain: bool,
    endpoint: str,
    region: str,
) -> None:
    asked = {
        "IndexName": index,
        "FilterExpression": filtered,
        "ExpressionAttributeNames": _json("--names", names),
        "ExpressionAttributeValues": _json("--values", values),
    }
    request = {**more, **{name: one for name, one in asked.items() if one is not None}}
    then = _moment(moment)
    out = JsonLines(sys.stdout.buffer, is_plain=plain)

    async def read(client: Client) -> None:
        async with at(client, table, then, has_indexes=index is not None) as source:
            async for items in pages(client, operation, {**request, "TableName": source}, limit):
                out.write(items)

    _run(endpoint, region, read)
    sys.stdout.buffer.flush()


def _json(option: str, text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except ValueError as error:
        raise PartitaError(f"{option} is not JSON: {error}.") from None


@click.command()
@_reading
def scan(**options: Any) -> None:
    """Print the items of TABLE as lines of JSON, as they are or as they were."""
    _read("Scan", {}, **options)


@click.command()
@click.option("--key", required=True, metavar="EXPRESSION", help="A key condition: pk = :pk.")
@click.option("--reverse", is_flag=True, help="The highest sort key first.")
@_reading
def query(key: str, reverse: bool, **options: Any) -> None:
    """Print the items of a partition of TABLE as lines of JSON, as they are or as they were."""
    more = {"KeyConditionExpression": key, "ScanIndexForward": not reverse}
    _read("Query", more, **options)
