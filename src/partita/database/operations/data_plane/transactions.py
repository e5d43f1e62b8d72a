"""TransactGetItems and TransactWriteItems: all or nothing, over several tables.

A transaction is decided against one state of the database, like every write, so it is
serializable. Its items are held until its commit is on disk; whatever meets them meanwhile is
told of a conflict, as in the service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from partita.database.capacity.ledger import Charge
from partita.database.capacity.units import Consumed, read_units
from partita.database.expressions.projection import Projection
from partita.database.item.values import TOO_LARGE, Item, normalize_item
from partita.database.operations import charges
from partita.database.operations.answers import (
    answer,
    consumed_by_write,
    item_collections_metrics,
    member,
    projected,
    raw_list,
    raw_member,
)
from partita.database.operations.context import ReadContext, Request, Service, WriteContext
from partita.database.operations.data_plane.actions import (
    CONFLICT,
    Action,
    ConditionCheck,
    Delete,
    KeyedAction,
    Put,
    Update,
    shows_item_on_failure,
)
from partita.database.operations.data_plane.expression_parameters import (
    ACTION,
    GET,
    UPDATE_ACTION,
    Expressions,
    read_expressions,
)
from partita.database.storage.group_commit import WriteBatch
from partita.database.tables import layout
from partita.database.tables.keys import check_key
from partita.database.tables.read import load
from partita.database.tables.schema import Table
from partita.database.tables.stored import Stored, pack
from partita.database.tables.write import Written, write_item
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
from partita.limits import CLIENT_TOKEN_SECONDS, ITEM_BYTES_MAX, TRANSACTION_BYTES_MAX

TRANSACTION_FACTOR: Final = 2

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
    gets = [one["Get"] for one in request["TransactItems"]]
    asked = [(normalize_item(get["Key"]), read_expressions(get, GET).projection) for get in gets]
    tables = [context.service.table(get["TableName"]) for get in gets]
    items, members = read_together(context, request, tables, asked)
    # An item of which the projection leaves nothing is as if it were not there (recorded).
    responses = [
        answer([raw_member("Item", item)]) if item not in (None, NO_ITEM) else NO_ITEM
        for item in items
    ]
    return answer([*members, raw_member("Responses", raw_list(responses))])


def read_together(
    context: ReadContext,
    request: Request,
    tables: list[Table],
    asked: Sequence[tuple[Item, Projection | None]],
) -> tuple[list[bytes | None], list[bytes]]:
    """Items by their keys, all of one moment, and the capacity members of the answer."""
    reasons: list[Reason] = []
    keys = []
    for table, (key, _) in zip(tables, asked, strict=True):
        try:
            check_key(table, key)
        except KeyTypeError as error:
            reasons.append({"Code": "ValidationError", "Message": error.message})
            continue
        keys.append(layout.item_key(table, key))
        held = context.is_held(keys[-1])
        reasons.append({"Code": "TransactionConflict", "Message": CONFLICT} if held else NO_REASON)
    cancel_if_any(reasons)
    _refuse_repeats(keys)
    items: list[bytes | None] = []
    consumed, total_bytes = _PerTable(), 0
    groups: list[list[Charge]] = []
    for table, key_bytes, (key, projection) in zip(tables, keys, asked, strict=True):
        stored = load(context.snapshot, key_bytes)
        size = stored.size if stored else 0
        total_bytes += size
        if total_bytes > TRANSACTION_BYTES_MAX:
            raise ValidationException(
                "Transaction read size cannot exceed 4MB; ask for fewer or smaller items"
            )
        units = read_units(size, consistent=True) * TRANSACTION_FACTOR
        consumed.of(table).table += units
        if context.service.ledger.is_on:
            groups.append(charges.read_charges(context.service, table, key, units))
        items.append(projected(stored, projection) if stored else None)
    if groups:
        _charge(context.service, groups)
    return items, consumed.members(request, "ReadCapacityUnits")


def transact_write_items(context: WriteContext, request: Request) -> bytes:
    actions = [_action(one) for one in request["TransactItems"]]
    check_payload(actions)
    tables = [context.service.table(action.table_name) for action in actions]
    return answer(write_together(context, request, request["TransactItems"], tables, actions))


def write_together(
    context: WriteContext,
    request: Request,
    asked: list[dict[str, Any]],
    tables: list[Table],
    actions: Sequence[Action],
) -> list[bytes]:
    """Carry out all actions or none; the members of the answer that tell what it took."""
    token = request.get("ClientRequestToken")
    if token is not None:
        replay = _replayed(context, request, token, asked, tables, actions)
        if replay is not None:
            return replay
    keys = _keys(tables, actions)
    _refuse_repeats(keys)
    decided = _decide(context.write_batch, tables, actions, keys)
    written = _apply(context.write_batch, tables, keys, decided)
    if context.service.ledger.is_on:
        _charge(
            context.service,
            [
                charges.write_charges(
                    context.service, table, charges.key_of(action), one, TRANSACTION_FACTOR
                )
                for table, action, one in zip(tables, actions, written, strict=True)
            ],
        )
    if token is not None:
        _remember(context, asked, token)
    members = []
    if "ReturnConsumedCapacity" in request:
        consumed = _PerTable()
        for table, one in zip(tables, written, strict=True):
            consumed.of(table).add(consumed_by_write(table, [one], TRANSACTION_FACTOR))
        members += consumed.members(request, "WriteCapacityUnits")
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        members += _item_collection_metrics(tables, written)
    return members


def _item_collection_metrics(tables: list[Table], written: list[Written]) -> list[bytes]:
    by_table: dict[str, list[Written]] = {}
    for table, one in zip(tables, written, strict=True):
        by_table.setdefault(table.name, []).append(one)
    metrics = {
        table.name: found
        for table in tables
        if (found := item_collections_metrics(table, by_table[table.name]))
    }
    return [member("ItemCollectionMetrics", metrics)] if metrics else []


def _action(one: dict[str, Any]) -> Action:
    """One member of TransactItems, checked as far as it can be without its table."""
    actions = {kind: asked for kind, asked in one.items() if kind in _MAKERS}
    if len(actions) != 1:
        raise ValidationException(SEVERAL_ACTIONS if actions else NO_ACTION)
    ((kind, asked),) = actions.items()
    family = UPDATE_ACTION if kind == "Update" else ACTION
    return _MAKERS[kind](asked, read_expressions(asked, family))


def _put(asked: Request, expressions: Expressions) -> Action:
    item = pack(normalize_item(asked["Item"]))
    if item.size > ITEM_BYTES_MAX:
        raise ValidationException(TOO_LARGE)
    return Put(asked["TableName"], item, expressions, shows_item_on_failure(asked))


def _keyed(action: type[KeyedAction]) -> Callable[[Request, Expressions], Action]:
    def make(asked: Request, expressions: Expressions) -> Action:
        key = normalize_item(asked["Key"])
        return action(asked["TableName"], key, expressions, shows_item_on_failure(asked))

    return make


_MAKERS: Final[dict[str, Callable[[Request, Expressions], Action]]] = {
    "Put": _put,
    "Update": _keyed(Update),
    "Delete": _keyed(Delete),
    "ConditionCheck": _keyed(ConditionCheck),
}


def check_payload(actions: Sequence[Action]) -> None:
    size = sum(action.item.size for action in actions if isinstance(action, Put))
    if size > TRANSACTION_BYTES_MAX:
        raise ValidationException(
            f"Transaction payload size cannot exceed 4MB. Payload Size: {size}"
        )


def _keys(tables: list[Table], actions: Sequence[Action]) -> list[bytes]:
    """Where the items lie; the first key that does not fit its table cancels the transaction."""
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


_Decided = tuple[Stored | None, Stored | None]
"""The item that is there, and the one that shall be."""


def _decide(
    write_batch: WriteBatch, tables: list[Table], actions: Sequence[Action], keys: list[bytes]
) -> list[_Decided]:
    """The new items, or a cancellation that gives each action's reason in order."""
    decided, reasons = [], []
    for table, action, key in zip(tables, actions, keys, strict=True):
        reason = NO_REASON
        old = load(write_batch, key)
        try:
            if write_batch.is_held(key):
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
) -> list[Written]:
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


def _charge(service: Service, groups: list[list[Charge]]) -> None:
    """Charge all actions or none; the throttled ones cancel the transaction."""
    refusals = service.ledger.admit_all(groups)
    cancel_if_any([refusal.cancellation_reason() if refusal else NO_REASON for refusal in refusals])


def cancel_if_any(reasons: list[Reason]) -> None:
    if any(reason["Code"] != "None" for reason in reasons):
        codes = ", ".join(reason["Code"] for reason in reasons)
        raise TransactionCanceledException(
            "Transaction cancelled, please refer cancellation reasons "
            f"for specific reasons [{codes}]",
            CancellationReasons=reasons,
        )


class _Token(msgspec.Struct):
    """What is remembered of a request with a client token, for ten minutes."""

    used_at: float
    digest: str


def _digest(asked: list[dict[str, Any]]) -> str:
    return sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()


def _remember(context: WriteContext, asked: list[dict[str, Any]], token: str) -> None:
    now = context.service.clock()
    if before := _remembered(context, token):
        # Used again after its ten minutes: what is noted of its first use must not end the second.
        context.write_batch.delete(layout.token_time_key(before.used_at, token))
    used = msgspec.json.encode(_Token(now, _digest(asked)))
    context.write_batch.put(layout.token_key(token), used)
    context.write_batch.put(layout.token_time_key(now, token), token.encode())


def _remembered(context: WriteContext, token: str) -> _Token | None:
    value = context.write_batch.get(layout.token_key(token))
    return None if value is None else msgspec.json.decode(value, type=_Token)


def _replayed(
    context: WriteContext,
    request: Request,
    token: str,
    asked: list[dict[str, Any]],
    tables: list[Table],
    actions: Sequence[Action],
) -> list[bytes] | None:
    """The answer to a request that was carried out before; it reports the cost of reading."""
    used = _remembered(context, token)
    if used is None:
        return None
    if context.service.clock() - used.used_at > CLIENT_TOKEN_SECONDS:
        return None
    if used.digest != _digest(asked):
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
    """Units by table, in the order in which the tables are first named."""

    def __init__(self) -> None:
        self._consumed: dict[str, Consumed] = {}

    def of(self, table: Table) -> Consumed:
        return self._consumed.setdefault(table.name, Consumed())

    def members(self, request: Request, transaction_member: str) -> list[bytes]:
        mode = request.get("ReturnConsumedCapacity")
        reports = [
            report
            for name, consumed in self._consumed.items()
            if (report := consumed.report(name, mode, transaction_member))
        ]
        return [member("ConsumedCapacity", reports)] if reports else []
