"""BatchGetItem and BatchWriteItem: many items in one request, independent of each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Final

from orjson import OPT_SORT_KEYS, dumps

from partita.database.capacity.capacity_units import ConsumedCapacity, read_units
from partita.database.expressions.projection import Projection
from partita.database.item.attribute_values import SEVERAL_TYPES, ErrorWording, Item, normalize_item
from partita.database.item.item_sizes import check_item_size
from partita.database.operations import charges
from partita.database.operations.data_plane.expression_parameters import (
    GET,
    check_parameters,
    read_expressions,
)
from partita.database.operations.data_plane.item_actions import DeleteAction, ItemAction, PutAction
from partita.database.operations.operation_context import ReadContext, Request, WriteContext
from partita.database.operations.response_members import (
    answer,
    consumed_by_write,
    item_collections_metrics,
    member,
    projected,
    raw_list,
    raw_member,
)
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_key, check_scalar_paths
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import pack
from partita.database.tables.write_path import WriteEffect
from partita.errors import DynamoDBError, TransactionConflictException, ValidationException
from partita.foundation.service_limits import (
    BATCH_GET_BYTES_MAX,
    BATCH_GET_KEYS_MAX,
    BATCH_WRITE_REQUESTS_MAX,
)

DUPLICATES: Final = "Provided list of item keys contains duplicates"
TOO_MANY: Final = "Too many items requested for the {operation} call"


@dataclass(slots=True)
class TableGets:
    """The part of a BatchGetItem that concerns one table."""

    name: str
    keys: list[Item]
    projection: Projection | None
    consistent: bool
    request: dict[str, Any]
    texts: list[bytes]
    """The keys as they were sent, of which no two may be equal."""
    keys_by_place: dict[bytes, Item] = field(default_factory=dict)
    """The keys by storage key, set when the table is known."""


def batch_get_item(context: ReadContext, request: Request) -> bytes:
    # Expressions and legacy parameters cannot be mixed, not even for different tables (recorded).
    table_requests = request["RequestItems"]
    check_parameters(
        {name: part for members in table_requests.values() for name, part in members.items()}, GET
    )
    if sum(len(members["Keys"]) for members in table_requests.values()) > BATCH_GET_KEYS_MAX:
        raise ValidationException(TOO_MANY.format(operation="BatchGetItem"))
    all_gets = [_table_gets(name, members) for name, members in table_requests.items()]
    tables = [context.service.table(gets.name) for gets in all_gets]
    for gets, table in zip(all_gets, tables, strict=True):
        places = [_checked_key(table, key) for key in gets.keys]
        # Keys with different spellings of one number are the same item, which is read once
        # (recorded).
        gets.keys_by_place = dict(zip(places, gets.keys, strict=True))
        if gets.projection:
            check_scalar_paths(table, gets.projection.paths)
    _refuse_repeats(
        [
            (table.number, text)
            for gets, table in zip(all_gets, tables, strict=True)
            for text in gets.texts
        ]
    )
    responses: list[bytes] = []
    unprocessed: dict[str, Any] = {}
    reports = []
    room_bytes = BATCH_GET_BYTES_MAX
    throttled: list[DynamoDBError] = []
    for gets, table in zip(all_gets, tables, strict=True):
        items, left, consumed, read_bytes = _get_all(context, table, gets, room_bytes, throttled)
        room_bytes -= read_bytes
        responses.append(raw_member(gets.name, raw_list(items)))
        if left:
            unprocessed[gets.name] = gets.request | {"Keys": left}
        reports.append(consumed.report(table.name, request.get("ReturnConsumedCapacity")))
    key_count = _count(gets.keys_by_place for gets in all_gets)
    # If everything was throttled, the request itself is.
    if throttled and _count(part["Keys"] for part in unprocessed.values()) == key_count:
        raise throttled[0]
    members = [
        raw_member("Responses", answer(responses)),
        member("UnprocessedKeys", unprocessed),
    ]
    return answer(members + _capacity(reports))


def batch_write_item(context: WriteContext, request: Request) -> bytes:
    if _count(request["RequestItems"].values()) > BATCH_WRITE_REQUESTS_MAX:
        raise ValidationException(TOO_MANY.format(operation="BatchWriteItem"))
    actions: dict[str, list[ItemAction]] = {
        name: [_write_request(name, write_request) for write_request in write_requests]
        for name, write_requests in request["RequestItems"].items()
    }
    tables = {name: context.service.table(name) for name in actions}
    _refuse_repeats(
        [
            action.key(tables[name])
            for name, table_actions in actions.items()
            for action in table_actions
        ]
    )
    reports, collections, unprocessed = [], {}, {}
    throttled: list[DynamoDBError] = []
    for name, table_actions in actions.items():
        written, refused = _write_all(context, tables[name], table_actions, throttled)
        if refused:
            unprocessed[name] = [request["RequestItems"][name][position] for position in refused]
        consumed = consumed_by_write(tables[name], written)
        reports.append(consumed.report(tables[name].name, request.get("ReturnConsumedCapacity")))
        if request.get("ReturnItemCollectionMetrics") == "SIZE":
            if metrics := item_collections_metrics(tables[name], written):
                collections[name] = metrics
    if throttled and _count(unprocessed.values()) == _count(actions.values()):
        raise throttled[0]
    members = [member("UnprocessedItems", unprocessed)]
    if collections:
        members.append(member("ItemCollectionMetrics", collections))
    return answer(members + _capacity(reports))


def _count(lists: Iterable[Sized]) -> int:
    return sum(map(len, lists))


def _checked_key(table: Table, key: Item) -> bytes:
    check_key(table, key)
    return table_layout.item_key(table, key)


def _refuse_repeats(keys: Sequence[Hashable]) -> None:
    if len(set(keys)) < len(keys):
        raise ValidationException(DUPLICATES)


def _table_gets(name: str, request: dict[str, Any]) -> TableGets:
    keys = [normalize_item(key) for key in request["Keys"]]
    projection = read_expressions(request, GET).projection
    texts = [dumps(key, option=OPT_SORT_KEYS) for key in request["Keys"]]
    _refuse_repeats(texts)
    return TableGets(name, keys, projection, request.get("ConsistentRead", False), request, texts)


def _get_all(
    context: ReadContext,
    table: Table,
    gets: TableGets,
    room_bytes: int,
    throttled: list[DynamoDBError],
) -> tuple[list[bytes], list[Item], ConsumedCapacity, int]:
    """Returns the items of one table, the unprocessed keys, the units and the bytes read."""
    items: list[bytes] = []
    left: list[Item] = []
    consumed, used_bytes = ConsumedCapacity(), 0
    keys = list(gets.keys_by_place.values())
    for position, (place, key) in enumerate(gets.keys_by_place.items()):
        stored = load(context.snapshot, place)
        size = stored.size if stored else 0
        if used_bytes + size > room_bytes:
            return items, left + keys[position:], consumed, room_bytes
        units = read_units(size, consistent=gets.consistent)
        try:
            charges.charge_read(context.service, table, key, stored, gets.request)
        except charges.THROTTLED as error:
            left.append(key)
            throttled.append(error)
            continue
        used_bytes += size
        consumed.table += units
        if stored:
            items.append(projected(stored, gets.projection))
    return items, left, consumed, used_bytes


def _write_request(table_name: str, request: dict[str, Any]) -> ItemAction:
    put, delete = request.get("PutRequest"), request.get("DeleteRequest")
    if (put is None) == (delete is None):
        # The service reports this as a value with several types (recorded).
        raise ValidationException(SEVERAL_TYPES)
    if delete is not None:
        key = normalize_item(delete["Key"], ErrorWording.OLDER)
        return DeleteAction(table_name, key)
    assert put is not None
    item = pack(normalize_item(put["Item"], ErrorWording.OLDER))
    check_item_size(item.size)
    return PutAction(table_name, item, in_batch=True)


def _write_all(
    context: WriteContext,
    table: Table,
    actions: Iterable[ItemAction],
    throttled: list[DynamoDBError],
) -> tuple[list[WriteEffect], list[int]]:
    """Carry out the writes to one table.

    Returns what was written, and the positions of the requests that were not processed, because
    they were throttled or a transaction holds their items.
    """
    written, refused = [], []
    for position, action in enumerate(actions):
        try:
            written.append(charges.carry_out(context, table, action))
        except TransactionConflictException:
            refused.append(position)
        except charges.THROTTLED as error:
            refused.append(position)
            throttled.append(error)
    return written, refused


def _capacity(reports: list[dict[str, Any] | None]) -> list[bytes]:
    shown = [report for report in reports if report]
    return [member("ConsumedCapacity", shown)] if shown else []
