"""BatchGetItem and BatchWriteItem: many items in one request, each on its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from partita.capacity.units import Consumed, read_units
from partita.errors import TransactionConflictException, ValidationException
from partita.expressions.projection import Projection
from partita.item.values import SEVERAL_TYPES, TOO_LARGE, Item, Wording, normalize_item
from partita.limits import (
    BATCH_GET_BYTES_MAX,
    BATCH_GET_KEYS_MAX,
    BATCH_WRITE_REQUESTS_MAX,
    ITEM_BYTES_MAX,
)
from partita.operations.actions import Action, Delete, Put, carry_out
from partita.operations.answers import (
    answer,
    consumed_by_write,
    encode,
    item_collections_metrics,
    member,
    projected,
    raw_list,
    raw_member,
)
from partita.operations.context import ReadContext, Request, WriteContext
from partita.operations.expression_parameters import GET, check_parameters, read_expressions
from partita.tables import layout
from partita.tables.keys import check_key
from partita.tables.read import load
from partita.tables.schema import Table
from partita.tables.stored import pack
from partita.tables.write import Written

DUPLICATES = "Provided list of item keys contains duplicates"
TOO_MANY = "Too many items requested for the {operation} call"


@dataclass(slots=True)
class TableGets:
    """What a BatchGetItem asks of one table."""

    name: str
    keys: list[Item]
    projection: Projection | None
    consistent: bool
    asked: dict[str, Any]


def batch_get_item(context: ReadContext, request: Request) -> bytes:
    # Expressions for one table and what they replaced for another do not mix either (recorded).
    check_parameters(
        {name: part for asked in request["RequestItems"].values() for name, part in asked.items()},
        GET,
    )
    if sum(len(asked["Keys"]) for asked in request["RequestItems"].values()) > BATCH_GET_KEYS_MAX:
        raise ValidationException(TOO_MANY.format(operation="BatchGetItem"))
    gets = [_table_gets(name, asked) for name, asked in request["RequestItems"].items()]
    tables = [context.service.table(one.name) for one in gets]
    _refuse_repeats(
        _checked_key(table, key)
        for one, table in zip(gets, tables, strict=True)
        for key in one.keys
    )
    responses: list[bytes] = []
    unprocessed: dict[str, Any] = {}
    reports = []
    room_bytes = BATCH_GET_BYTES_MAX
    for one, table in zip(gets, tables, strict=True):
        items, left, consumed, read_bytes = _get_all(context, table, one, room_bytes)
        room_bytes -= read_bytes
        responses.append(raw_member(one.name, raw_list(items)))
        if left:
            unprocessed[one.name] = one.asked | {"Keys": left}
        reports.append(consumed.report(table.name, request.get("ReturnConsumedCapacity")))
    members = [
        raw_member("Responses", answer(responses)),
        member("UnprocessedKeys", unprocessed),
    ]
    return answer(members + _capacity(reports))


def batch_write_item(context: WriteContext, request: Request) -> bytes:
    if sum(map(len, request["RequestItems"].values())) > BATCH_WRITE_REQUESTS_MAX:
        raise ValidationException(TOO_MANY.format(operation="BatchWriteItem"))
    actions: dict[str, list[Action]] = {
        name: [_write_request(name, one) for one in requests]
        for name, requests in request["RequestItems"].items()
    }
    tables = {name: context.service.table(name) for name in actions}
    _refuse_repeats(
        action.key(tables[name]) for name, of_table in actions.items() for action in of_table
    )
    reports, collections, unprocessed = [], {}, {}
    for name, of_table in actions.items():
        written, refused = _write_all(context, tables[name], of_table)
        if refused:
            unprocessed[name] = [request["RequestItems"][name][position] for position in refused]
        consumed = consumed_by_write(tables[name], written)
        reports.append(consumed.report(tables[name].name, request.get("ReturnConsumedCapacity")))
        if request.get("ReturnItemCollectionMetrics") == "SIZE":
            if metrics := item_collections_metrics(tables[name], written):
                collections[name] = metrics
    members = [member("UnprocessedItems", unprocessed)]
    if collections:
        members.append(member("ItemCollectionMetrics", collections))
    return answer(members + _capacity(reports))


def _checked_key(table: Table, key: Item) -> bytes:
    check_key(table, key)
    return layout.item_key(table, key)


def _refuse_repeats(keys: Iterable[bytes]) -> None:
    listed = list(keys)
    if len(set(listed)) < len(listed):
        raise ValidationException(DUPLICATES)


def _table_gets(name: str, asked: dict[str, Any]) -> TableGets:
    keys = [normalize_item(key) for key in asked["Keys"]]
    expressions = read_expressions(asked, GET)
    _refuse_repeats(encode(sorted(key.items(), key=lambda pair: pair[0])) for key in keys)
    return TableGets(name, keys, expressions.projection, asked.get("ConsistentRead", False), asked)


def _get_all(
    context: ReadContext, table: Table, gets: TableGets, room_bytes: int
) -> tuple[list[bytes], list[Item], Consumed, int]:
    """The items of one table, the keys there was no room for, and what was used."""
    items: list[bytes] = []
    consumed, used_bytes = Consumed(), 0
    for position, key in enumerate(gets.keys):
        stored = load(context.snapshot, layout.item_key(table, key))
        size = stored.size if stored else 0
        if used_bytes + size > room_bytes:
            return items, gets.keys[position:], consumed, room_bytes
        used_bytes += size
        consumed.table += read_units(size, consistent=gets.consistent)
        if stored:
            items.append(projected(stored, gets.projection))
    return items, [], consumed, used_bytes


def _write_request(table_name: str, request: dict[str, Any]) -> Action:
    put, delete = request.get("PutRequest"), request.get("DeleteRequest")
    if (put is None) == (delete is None):
        # The service's own words for it (recorded).
        raise ValidationException(SEVERAL_TYPES)
    if delete is not None:
        key = normalize_item(delete["Key"], Wording.OLDER)
        return Delete(table_name, key)
    assert put is not None
    item = pack(normalize_item(put["Item"], Wording.OLDER))
    if item.size > ITEM_BYTES_MAX:
        raise ValidationException(TOO_LARGE)
    return Put(table_name, item, in_batch=True)


def _write_all(
    context: WriteContext, table: Table, actions: Iterable[Action]
) -> tuple[list[Written], list[int]]:
    """What was written, and the positions of the requests that a running transaction held up."""
    written, refused = [], []
    for position, action in enumerate(actions):
        try:
            written.append(carry_out(context.draft, table, action))
        except TransactionConflictException:
            refused.append(position)
    return written, refused


def _capacity(reports: list[dict[str, Any] | None]) -> list[bytes]:
    shown = [report for report in reports if report]
    return [member("ConsumedCapacity", shown)] if shown else []
