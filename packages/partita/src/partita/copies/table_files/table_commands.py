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
from partita.copies.table_files.file_export import export
from partita.copies.table_files.file_import import import_file
from partita.copies.table_files.item_file_formats import FORMATS, JsonLinesWriter
from partita.copies.table_files.table_diff import (
    ADDED,
    CHANGED,
    DELETED,
    ItemDifference,
    differences,
)
from partita.copies.table_files.table_reading import at, describe, pages
from partita.copies.time_arguments import format_moment, moment_of
from partita.errors import PartitaError
from partita.foundation.clock import system_clock

REFUSALS_SHOWN_MAX = 20

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
    help="Read TABLE as it was at this time: 14:02, 2026-11-16T14:02:10Z, 10m (ago). Needs "
    "point-in-time recovery.",
)
_format = click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="The format of FILE, if its name does not show it.",
)
_plain = click.option(
    "--plain", is_flag=True, help="Use JSON without type descriptors; sets become lists."
)


def _run(endpoint: str, region: str, work: Callable[[Client], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        client = Client(endpoint, region, tries=5)
        try:
            return await work(client)
        finally:
            await client.close()

    if not endpoint.startswith(("http://", "https://")):
        raise PartitaError(f"--endpoint must begin with http:// or https://, not {endpoint!r}.")
    return asyncio.run(run())


def _moment(text: str | None) -> float | None:
    """Parses --at; None means now."""
    if text is None or text == "now":
        return None
    now = system_clock()
    moment = moment_of(text, now)
    if moment > now:
        raise PartitaError(f"{format_moment(moment)} is in the future; give a past time.")
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
    """Write TABLE into FILE as CSV, JSON lines or Parquet, by the ending of its name; - is stdout.

    The file keeps all values and types: `partita import` restores the same items.
    """
    past = _moment(moment)
    _run(
        endpoint,
        region,
        lambda client: export(client, table, file, kind=kind, moment=past, is_plain=plain),
    )


@click.command("import")
@click.argument("table")
@click.argument("file")
@click.option(
    "--key", metavar="NAME:TYPE[,NAME:TYPE]", help="Create TABLE with this key if it is missing."
)
@click.option("--only-missing", is_flag=True, help="Do not replace items that TABLE has already.")
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
    """Put the items of FILE (CSV, JSON lines or Parquet; - is stdin) into TABLE.

    In CSV, a header such as price:N gives the type of a column. Columns without a type are
    strings; key columns have the types of the table's key. Exits with 1 if a record could not be
    imported.
    """
    refusals = 0

    def tell(text: str) -> None:
        nonlocal refusals
        refusals += 1
        if refusals <= REFUSALS_SHOWN_MAX:
            click.echo(text, err=True)

    result = _run(
        endpoint,
        region,
        lambda client: import_file(
            client, table, file, tell, kind=kind, key=key, is_plain=plain, only_missing=only_missing
        ),
    )
    if refusals > REFUSALS_SHOWN_MAX:
        click.echo(f"... and {refusals - REFUSALS_SHOWN_MAX:,} more.", err=True)
    sys.exit(1 if result.refused else 0)


@click.command()
@click.argument("table")
@click.option(
    "--at", "first", metavar="TIME", required=True, help="The earlier time: 14:02, 10m (ago), ..."
)
@click.option(
    "--and", "second", metavar="TIME", default="now", show_default=True, help="The later time."
)
@click.option(
    "--only",
    type=click.Choice([ADDED, CHANGED, DELETED]),
    multiple=True,
    help="Show only changes of this kind; may be repeated.",
)
@click.option("--json", "is_json", is_flag=True, help="Print a line of JSON for each change.")
@click.option(
    "--items", is_flag=True, help="Print the items as they were before, for partita import."
)
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
    """Show what changed in TABLE between two times; needs point-in-time recovery.

    Exits with 0 if there is no change, and with 1 if there are changes.
    """
    if is_json and items:
        raise click.UsageError("Give --json or --items.")
    moments = [_moment(text) for text in (first, second)]
    show = _show_items if items else _show_json if is_json else _show_text

    async def compare(client: Client) -> dict[str, int]:
        counts = {ADDED: 0, CHANGED: 0, DELETED: 0}
        described = await describe(client, table)
        async with AsyncExitStack() as stack:
            sides = [
                await stack.enter_async_context(at(client, table, moment)) for moment in moments
            ]
            async for difference in differences(client, described, *sides):
                if only and difference.kind not in only:
                    continue
                counts[difference.kind] += 1
                show(difference)
        return counts

    counts = _run(endpoint, region, compare)
    click.echo(
        ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) + ".",
        err=is_json or items,
    )
    sys.exit(1 if any(counts.values()) else 0)


def _show_text(difference: ItemDifference) -> None:
    for line in difference.lines():
        click.echo(line)


def _show_json(difference: ItemDifference) -> None:
    click.echo(orjson.dumps(difference.record()).decode())


def _show_items(difference: ItemDifference) -> None:
    if difference.before is not None:
        click.echo(orjson.dumps({"Item": difference.before}).decode())


def _read_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the arguments and options that `scan` and `query` share."""
    options = [
        click.argument("table"),
        _at,
        click.option("--index", help="Read this index of TABLE."),
        click.option("--filter", "filtered", metavar="EXPRESSION", help="A filter expression."),
        click.option("--names", metavar="JSON", help='Names in expressions: {"#s": "status"}.'),
        click.option(
            "--values", metavar="JSON", help='Values in expressions: {":s": {"S": "open"}}.'
        ),
        click.option("--limit", type=click.IntRange(1), help="Print at most this many items."),
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
    optional = {
        "IndexName": index,
        "FilterExpression": filtered,
        "ExpressionAttributeNames": _json("--names", names),
        "ExpressionAttributeValues": _json("--values", values),
    }
    request = {**more, **{name: value for name, value in optional.items() if value is not None}}
    past = _moment(moment)
    out = JsonLinesWriter(sys.stdout.buffer, is_plain=plain)

    async def read(client: Client) -> None:
        async with at(client, table, past, has_indexes=index is not None) as source:
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
@_read_options
def scan(**options: Any) -> None:
    """Print all items of TABLE as lines of JSON, as they are or as they were."""
    _read("Scan", {}, **options)


@click.command()
@click.option("--key", required=True, metavar="EXPRESSION", help="A key condition: pk = :pk.")
@click.option("--reverse", is_flag=True, help="Print the highest sort key first.")
@_read_options
def query(key: str, reverse: bool, **options: Any) -> None:
    """Print items of one partition key as lines of JSON, as they are or as they were."""
    more = {"KeyConditionExpression": key, "ScanIndexForward": not reverse}
    _read("Query", more, **options)
