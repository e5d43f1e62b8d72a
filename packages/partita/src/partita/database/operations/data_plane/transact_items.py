"""TransactGetItems and TransactWriteItems: all or nothing, over several tables.

Like every write, a transaction is decided on a single state of the database, so it is serializable.
Its items are held until its commit is on disk. Until then, other requests that touch them get a
TransactionConflict, as in the service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from partita.database.capacity.capacity_units import ConsumedCapacity, read_units
from partita.database.capacity.throttling_errors import ThrottlingReason
from partita.database.expressions.projection import Projection
from partita.database.item.attribute_values import Item, normalize_item
from partita.database.item.item_sizes import check_item_size
from partita.database.operations import charges
from partita.database.operations.data_plane.expression_parameters import (
    ACTION,
    GET,
    UPDATE_ACTION,
    RequestExpressions,
    read_expressions,
)
from partita.database.operations.data_plane.item_actions import (
    CONFLICT,
    ConditionCheck,
    DeleteAction,
    ItemAction,
    KeyedAction,
    PutAction,
    UpdateAction,
    shows_item_on_failure,
)
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
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_key, check_scalar_paths
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import StoredItem, pack
from partita.database.tables.write_path import WriteEffect, write_item
from partita.errors import (
    ConditionalCheckFailedException,
    DuplicateItemException,
    EmptyKeyError,
    IdempotentParameterMismatchException,
    ItemCollectionSizeLimitExceededException,
    KeyTypeError,
    TransactionCanceledException,
    ValidationException,
)
from partita.foundation.service_limits import (
    CLIENT_TOKEN_SECONDS,
    TRANSACTION_BYTES_MAX,
    TRANSACTION_FACTOR,
)

NO_ACTION: Final = (
    "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"
)
SEVERAL_ACTIONS: Final = "TransactItems can only contain one of Check, Put, Update or Delete"
SEVERAL_ACTIONS_ON_ONE_ITEM: Final = (
    "Transaction request cannot include multiple operations on one item"
)

NO_ITEM: Final = b"{}"
Reason = dict[str, Any]
NO_REASON: Final[Reason] = {"Code": "None"}


def transact_get_items(context: ReadContext, request: Request) -> bytes:
    gets = [transact_item["Get"] for transact_item in request["TransactItems"]]
    reads = [(normalize_item(get["Key"]), read_expressions(get, GET).projection) for get in gets]
    tables = [context.service.table(get["TableName"]) for get in gets]
    for table, (_, projection) in zip(tables, reads, strict=True):
        if projection:
            check_scalar_paths(table, projection.paths)
    items, members = read_transaction(context, request, tables, reads)
    # An item without any of the projected attributes is returned like a missing item (recorded).
    responses = [
        answer([raw_member("Item", item)]) if item not in (None, NO_ITEM) else NO_ITEM
        for item in items
    ]
    return answer([*members, raw_member("Responses", raw_list(responses))])


def read_transaction(
    context: ReadContext,
    request: Request,
    tables: list[Table],
    reads: Sequence[tuple[Item, Projection | None]],
) -> tuple[list[bytes | None], list[bytes]]:
    """Returns the items, all from one snapshot, and the capacity members of the response.

    `reads` has a key and a projection for each table in `tables`.
    """
    reasons: list[Reason] = []
    keys = []
    for table, (key, _) in zip(tables, reads, strict=True):
        try:
            check_key(table, key)
        except KeyTypeError as error:
            reasons.append({"Code": "ValidationError", "Message": error.message})
            continue
        keys.append(table_layout.item_key(table, key))
        held = context.is_held(keys[-1])
        reasons.append({"Code": "TransactionConflict", "Message": CONFLICT} if held else NO_REASON)
    cancel_if_any(reasons)
    _refuse_repeats(keys)
    items: list[bytes | None] = []
    consumed, total_bytes = _PerTable(), 0
    units_read: list[float] = []
    for table, key_bytes, (_, projection) in zip(tables, keys, reads, strict=True):
        stored = load(context.snapshot, key_bytes)
        size = stored.size if stored else 0
        total_bytes += size
        if total_bytes > TRANSACTION_BYTES_MAX:
            raise ValidationException(
                "Transaction read size cannot exceed 4MB; ask for fewer or smaller items"
            )
        units = read_units(size, consistent=True) * TRANSACTION_FACTOR
        consumed.of(table).table += units
        units_read.append(units)
        items.append(projected(stored, projection) if stored else None)
    item_keys = [key for key, _ in reads]
    _cancel_if_throttled(
        charges.charge_transaction_reads(context.service, tables, item_keys, units_read)
    )
    return items, consumed.members(request, "ReadCapacityUnits")


def transact_write_items(context: WriteContext, request: Request) -> bytes:
    actions = [_action(transact_item) for transact_item in request["TransactItems"]]
    check_payload(actions)
    tables = [context.service.table(action.table_name) for action in actions]
    return answer(write_transaction(context, request, request["TransactItems"], tables, actions))


def write_transaction(
    context: WriteContext,
    request: Request,
    contents: list[dict[str, Any]],
    tables: list[Table],
    actions: Sequence[ItemAction],
) -> list[bytes]:
    """Carry out all actions or none; return the members of the response that report metrics.

    `contents` is the part of the request that a repetition with the same client token must repeat.
    """
    token = request.get("ClientRequestToken")
    if token is not None:
        replay = _replayed(context, request, token, contents, tables, actions)
        if replay is not None:
            return replay
    keys = _keys(tables, actions)
    _refuse_repeats(keys)
    decided = _decide(context, tables, actions, keys)
    written = _apply(context.write_batch, tables, keys, decided)
    _cancel_if_throttled(
        charges.charge_transaction_writes(
            context.service, tables, actions, written, TRANSACTION_FACTOR
        )
    )
    if token is not None:
        _remember(context, contents, token)
    members = []
    if "ReturnConsumedCapacity" in request:
        consumed = _PerTable()
        for table, item_write in zip(tables, written, strict=True):
            consumed.of(table).add(consumed_by_write(table, [item_write], TRANSACTION_FACTOR))
        members += consumed.members(request, "WriteCapacityUnits")
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        members += _item_collection_metrics(tables, written)
    return members


def _item_collection_metrics(tables: list[Table], written: list[WriteEffect]) -> list[bytes]:
    by_table: dict[str, list[WriteEffect]] = {}
    for table, item_write in zip(tables, written, strict=True):
        by_table.setdefault(table.name, []).append(item_write)
    metrics = {
        table.name: table_metrics
        for table in tables
        if (table_metrics := item_collections_metrics(table, by_table[table.name]))
    }
    return [member("ItemCollectionMetrics", metrics)] if metrics else []


def _action(transact_item: dict[str, Any]) -> ItemAction:
    """Returns the action of one member of TransactItems, checked as far as its table allows."""
    actions = {kind: request for kind, request in transact_item.items() if kind in _MAKERS}
    if len(actions) != 1:
        raise ValidationException(SEVERAL_ACTIONS if actions else NO_ACTION)
    ((kind, request),) = actions.items()
    family = UPDATE_ACTION if kind == "Update" else ACTION
    return _MAKERS[kind](request, read_expressions(request, family))


def _put(request: Request, expressions: RequestExpressions) -> ItemAction:
    item = pack(normalize_item(request["Item"]))
    check_item_size(item.size)
    return PutAction(request["TableName"], item, expressions, shows_item_on_failure(request))


def _keyed(action: type[KeyedAction]) -> Callable[[Request, RequestExpressions], ItemAction]:
    def make(request: Request, expressions: RequestExpressions) -> ItemAction:
        key = normalize_item(request["Key"])
        return action(request["TableName"], key, expressions, shows_item_on_failure(request))

    return make


_MAKERS: Final[dict[str, Callable[[Request, RequestExpressions], ItemAction]]] = {
    "Put": _put,
    "Update": _keyed(UpdateAction),
    "Delete": _keyed(DeleteAction),
    "ConditionCheck": _keyed(ConditionCheck),
}


def check_payload(actions: Sequence[ItemAction]) -> None:
    size = sum(action.item.size for action in actions if isinstance(action, PutAction))
    if size > TRANSACTION_BYTES_MAX:
        raise ValidationException(
            f"Transaction payload size cannot exceed 4MB. Payload Size: {size}"
        )


def _keys(tables: list[Table], actions: Sequence[ItemAction]) -> list[bytes]:
    """Returns the storage keys; the first one that does not fit its schema cancels the
    transaction."""
    keys = []
    for position, (table, action) in enumerate(zip(tables, actions, strict=True)):
        try:
            keys.append(action.key(table))
        except KeyTypeError as error:
            reasons = [NO_REASON] * len(actions)
            reasons[position] = {"Code": "ValidationError", "Message": error.message}
            cancel_if_any(reasons)
    return keys


def _refuse_repeats(keys: list[bytes]) -> None:
    if len(set(keys)) < len(keys):
        raise ValidationException(SEVERAL_ACTIONS_ON_ONE_ITEM)


_Decided = tuple[StoredItem | None, StoredItem | None]
"""The old item and the new one."""


def _decide(
    context: WriteContext, tables: list[Table], actions: Sequence[ItemAction], keys: list[bytes]
) -> list[_Decided]:
    """Returns the old and new items, or cancels with the reasons in the order of the actions."""
    decided, reasons = [], []
    for table, action, key in zip(tables, actions, keys, strict=True):
        reason = NO_REASON
        old = load(context.write_batch, key)
        try:
            if context.is_held(key):
                reason = {"Code": "TransactionConflict", "Message": CONFLICT}
            else:
                action.check_condition(old)
                decided.append((old, action.new(table, old)))
        except ConditionalCheckFailedException as error:
            reason = {"Code": "ConditionalCheckFailed", "Message": error.message, **error.members}
        except DuplicateItemException as error:
            reason = {"Code": "DuplicateItem", "Message": error.message}
        except EmptyKeyError:
            raise
        except ValidationException as error:
            reason = {"Code": "ValidationError", "Message": error.message}
        reasons.append(reason)
    cancel_if_any(reasons)
    return decided


def _apply(
    write_batch: WriteBatch, tables: list[Table], keys: list[bytes], decided: list[_Decided]
) -> list[WriteEffect]:
    written = []
    for position, (table, key, (old, new)) in enumerate(zip(tables, keys, decided, strict=True)):
        try:
            written.append(write_item(write_batch, table, key, old, new))
        except ItemCollectionSizeLimitExceededException as error:
            reasons = [NO_REASON] * len(keys)
            reasons[position] = {
                "Code": "ItemCollectionSizeLimitExceeded",
                "Message": error.message,
            }
            cancel_if_any(reasons)
        write_batch.hold(key)
    return written


def _cancel_if_throttled(refusals: Sequence[ThrottlingReason | None]) -> None:
    if refusals:
        cancel_if_any(
            [refusal.cancellation_reason() if refusal else NO_REASON for refusal in refusals]
        )


def cancel_if_any(reasons: list[Reason]) -> None:
    if any(reason["Code"] != "None" for reason in reasons):
        codes = ", ".join(reason["Code"] for reason in reasons)
        raise TransactionCanceledException(
            "Transaction cancelled, please refer cancellation reasons "
            f"for specific reasons [{codes}]",
            CancellationReasons=reasons,
        )


class _Token(msgspec.Struct):
    """The stored digest of a request with a client token, kept for ten minutes."""

    used_at: float
    digest: str


def _digest(contents: list[dict[str, Any]]) -> str:
    return sha256(msgspec.json.encode(contents, order="sorted")).hexdigest()


def _remember(context: WriteContext, contents: list[dict[str, Any]], token: str) -> None:
    now = context.service.clock()
    if before := _remembered(context, token):
        # The token is reused after its ten minutes, but its first use has not been removed yet:
        # without this, the background job would remove the second use too early.
        context.write_batch.delete(table_layout.token_time_key(before.used_at, token))
    used = msgspec.json.encode(_Token(now, _digest(contents)))
    context.write_batch.put(table_layout.token_key(token), used)
    context.write_batch.put(table_layout.token_time_key(now, token), token.encode())


def _remembered(context: WriteContext, token: str) -> _Token | None:
    value = context.write_batch.get(table_layout.token_key(token))
    return None if value is None else msgspec.json.decode(value, type=_Token)


def _replayed(
    context: WriteContext,
    request: Request,
    token: str,
    contents: list[dict[str, Any]],
    tables: list[Table],
    actions: Sequence[ItemAction],
) -> list[bytes] | None:
    """Returns the response to a repeated request, which reports read units, or None for a new one.

    The request was carried out already, so a repetition only reads (guide, "Idempotency").
    """
    used = _remembered(context, token)
    if used is None:
        return None
    if context.service.clock() - used.used_at > CLIENT_TOKEN_SECONDS:
        return None
    if used.digest != _digest(contents):
        raise IdempotentParameterMismatchException(
            "Request with the same ClientRequestToken but different parameters has been sent "
            "in the last 10 minutes."
        )
    consumed = _PerTable()
    for table, action in zip(tables, actions, strict=True):
        stored = load(context.write_batch, action.key(table))
        units = read_units(stored.size if stored else 0, consistent=True) * TRANSACTION_FACTOR
        consumed.of(table).table += units
    return consumed.members(request, "ReadCapacityUnits")


class _PerTable:
    """The units of each table, in the order in which the tables first appear."""

    def __init__(self) -> None:
        self._consumed: dict[str, ConsumedCapacity] = {}

    def of(self, table: Table) -> ConsumedCapacity:
        return self._consumed.setdefault(table.name, ConsumedCapacity())

    def members(self, request: Request, transaction_member: str) -> list[bytes]:
        mode = request.get("ReturnConsumedCapacity")
        reports = [
            report
            for name, consumed in self._consumed.items()
            if (report := consumed.report(name, mode, transaction_member))
        ]
        return [member("ConsumedCapacity", reports)] if reports else []
