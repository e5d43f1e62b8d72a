"""Fast paths for the most frequent requests, which skip validation and the decoding of items.

They serve a GetItem that has only a key of short strings, and a Query of a table that has only
expressions with short strings and whole numbers. Everything else, and every error, is left to
`item_operations.get_item` and `query.query`, which have all the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from partita.database.expressions.condition import CompiledCondition, compile_condition
from partita.database.expressions.key_condition import compile_key_condition
from partita.database.expressions.projection import Projection, compile_projection
from partita.database.item.key_encoding import KeyRange
from partita.database.operations.data_plane.result_pages import part_decoder
from partita.database.operations.operation_context import ReadContext
from partita.database.operations.response_members import encode
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import SHORT_CHARS_MAX, check_scalar_paths
from partita.database.tables.definition.table_schema import DELETING, Table
from partita.database.tables.stored_item import HEADER_BYTES
from partita.errors import DynamoDBError
from partita.foundation.service_limits import EXPRESSION_PLACEHOLDER_BYTES_MAX, KB, PAGE_BYTES_MAX

NO_ITEM: Final = b"{}"
QUERY_BYTES_MAX: Final = 4 * KB
"""The size up to which no expression in a request can be too long."""
DIGITS_MAX: Final = 20
BYTES_OF_ONE_PAGE: Final = PAGE_BYTES_MAX // 2
"""Items with this many stored bytes always fit on one page: see `item/page_bytes.py`."""

# defstruct instead of class statements, which would lose `forbid_unknown_fields` when compiled by
# mypyc.
_PlainGet: Final = msgspec.defstruct(
    "PlainGet",
    [("TableName", str), ("Key", dict[str, dict[str, str]]), ("ConsistentRead", bool, False)],
    forbid_unknown_fields=True,
    gc=False,
)
_PlainQuery: Final = msgspec.defstruct(
    "PlainQuery",
    [
        ("TableName", str),
        ("KeyConditionExpression", str),
        ("ExpressionAttributeValues", dict[str, dict[str, str]]),
        ("ExpressionAttributeNames", dict[str, str] | None, None),
        ("FilterExpression", str | None, None),
        ("ProjectionExpression", str | None, None),
        ("ScanIndexForward", bool, True),
        ("ConsistentRead", bool, False),
    ],
    forbid_unknown_fields=True,
    gc=False,
)
_decode_get: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(_PlainGet).decode
_decode_query: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(_PlainQuery).decode


def get_plain_item(context: ReadContext, body: bytes) -> bytes | None:
    """Returns the response of a GetItem, or None if the request has to take the normal path."""
    try:
        request = _decode_get(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    table = _settled_table(context, request.TableName)
    if table is None:
        return None
    key: dict[str, dict[str, str]] = request.Key
    attributes = table.key_attributes
    if len(key) != len(attributes):
        return None
    for name, kind in attributes:
        value = key.get(name)
        if value is None or kind != "S" or not _is_short_string(value):
            return None
    item_key = table_layout.item_key(table, key)
    context.partition = table_layout.partition_of(item_key)
    stored = context.snapshot.get(item_key)
    return NO_ITEM if stored is None else b'{"Item":%b}' % stored[HEADER_BYTES:]


def query_plain_range(context: ReadContext, body: bytes) -> bytes | None:
    """Returns the response of a Query, or None if the request has to take the normal path.

    That includes a Query whose items might not fit on one page.
    """
    if len(body) > QUERY_BYTES_MAX:
        return None
    try:
        request = _decode_query(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    table = _settled_table(context, request.TableName)
    if table is None:
        return None
    values: dict[str, dict[str, str]] = request.ExpressionAttributeValues
    for name, value in values.items():
        if len(name) > EXPRESSION_PLACEHOLDER_BYTES_MAX:
            return None
        if not (_is_short_string(value) or _is_whole_number(value)):
            return None
    try:
        plan = _plan(request, table)
    except DynamoDBError:
        return None
    if plan is None:
        return None
    keys, filtering, projection = plan
    start, stop = table_layout.table_range(table, keys)
    items: list[bytes] = []
    size = count = 0
    is_whole = filtering is None and projection is None
    decode = None if is_whole else part_decoder(filtering, projection)
    for _, stored in context.snapshot.range(start, stop, reverse=not request.ScanIndexForward):
        size += len(stored)
        if size > BYTES_OF_ONE_PAGE:
            return None
        count += 1
        shown = stored[HEADER_BYTES:]
        if decode is not None:
            item = decode(shown)
            if filtering is not None and not filtering.holds(item, values):
                continue
            if projection is not None:
                shown = encode(projection.project(item))
        items.append(shown)
    context.partition = table_layout.partition_of(start)
    counts = b'],"Count":%d,"ScannedCount":%d}' % (len(items), count)
    return b"".join((b'{"Items":[', b",".join(items), counts))


def _plan(
    request: Any, table: Table
) -> tuple[KeyRange, CompiledCondition | None, Projection | None] | None:
    """Returns the key range, filter and projection of a Query.

    Returns None or raises if anything is invalid; the normal path then finds the error again.
    """
    values: dict[str, dict[str, str]] = request.ExpressionAttributeValues
    names: dict[str, str] = {}
    if request.ExpressionAttributeNames is not None:
        names = request.ExpressionAttributeNames
        if not names:
            return None
        for name in names:
            if len(name) > EXPRESSION_PLACEHOLDER_BYTES_MAX:
                return None
    filtering, projection = None, None
    condition = compile_key_condition(request.KeyConditionExpression, names)
    values_used, names_used = condition.values_used, condition.names_used
    if request.FilterExpression is not None:
        filtering = compile_condition(request.FilterExpression, names, "FilterExpression")
        values_used, names_used = (
            values_used | filtering.values_used,
            names_used | filtering.names_used,
        )
    if request.ProjectionExpression is not None:
        projection = compile_projection(request.ProjectionExpression, names)
        names_used = names_used | projection.names_used
    if values_used != values.keys() or names_used != names.keys():
        return None
    condition.check(values)
    keys = condition.resolve((table.partition,), table.sort_attributes, values)
    for value in keys.partition + keys.equal + keys.operands:
        if "S" not in value:
            return None
    if filtering is not None:
        filtering.check(values)
        check_scalar_paths(table, filtering.paths)
        for name in table.key_names:
            if name in filtering.attributes:
                return None
    if projection is not None:
        check_scalar_paths(table, projection.paths)
    return keys, filtering, projection


def _settled_table(context: ReadContext, name: str) -> Table | None:
    """Returns an active table, or None if there is no such table or reads are charged."""
    service = context.service
    if service.ledger.is_on:
        return None
    table = service.catalog.find(name)
    if table is None or table.transition == DELETING or service.clock() < table.settles_at:
        return None
    return table


def _is_short_string(value: dict[str, str]) -> bool:
    """True for a string that is neither empty nor too long for any key."""
    text = value.get("S")
    return len(value) == 1 and text is not None and 0 < len(text) <= SHORT_CHARS_MAX


def _is_whole_number(value: dict[str, str]) -> bool:
    """True for a number that is already in its canonical form."""
    text = value.get("N")
    return (
        len(value) == 1
        and text is not None
        and len(text) < DIGITS_MAX
        and text.isascii()
        and text.isdecimal()
        and (text[0] != "0" or text == "0")
    )
