"""PutItem, GetItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partita.capacity.units import Consumed, read_units
from partita.errors import ValidationException
from partita.item.values import normalize_item
from partita.limits import ITEM_BYTES_MAX
from partita.operations.actions import ITEM_TOO_LARGE, Action, Delete, Put, Update, carry_out
from partita.operations.answers import (
    answer,
    consumed_by_write,
    encode,
    item_collection_metrics,
    member,
    raw_member,
)
from partita.operations.context import ReadContext, Request, WriteContext
from partita.operations.expression_parameters import (
    GET,
    PUT_OR_DELETE,
    UPDATE,
    check_parameters,
    read_expressions,
)
from partita.protocol.validation import nests_too_deep
from partita.tables import layout
from partita.tables.keys import check_key, check_scalar_paths
from partita.tables.read import read_value
from partita.tables.schema import Table
from partita.tables.stored import decode, pack
from partita.tables.write import Written

ENVELOPE = "1 validation error detected: "


def get_item(context: ReadContext, request: Request) -> bytes:
    check_parameters(request, GET)
    key = normalize_item(request["Key"])
    expressions = read_expressions(request, GET)
    table = context.service.table(request["TableName"])
    check_key(table, key)
    if expressions.projection:
        check_scalar_paths(table, expressions.projection.paths)
    found = read_value(context.snapshot, layout.item_key(table, key))
    members = []
    if found:
        body = found[0]
        if expressions.projection:
            body = encode(expressions.projection.project(decode(body)))
        members.append(raw_member("Item", body))
    if mode := request.get("ReturnConsumedCapacity"):
        consistent = request.get("ConsistentRead", False)
        consumed = Consumed(read_units(found[1] if found else 0, consistent=consistent))
        if report := consumed.report(table.name, mode):
            members.append(member("ConsumedCapacity", report))
    return answer(members)


def put_item(context: WriteContext, request: Request) -> bytes:
    with enveloped(request):
        check_parameters(request, PUT_OR_DELETE)
        item = pack(normalize_item(request["Item"]))
        _check_return_values(request)
        if item.size > ITEM_BYTES_MAX:
            raise ValidationException(ITEM_TOO_LARGE)
        expressions = read_expressions(request, PUT_OR_DELETE)
    put = Put(
        table_name=request["TableName"],
        condition=expressions.condition,
        values=expressions.values,
        shows_item_on_failure=shows_item_on_failure(request),
        item=item,
    )
    table, written = _carry_out(context, put)
    shown = []
    if written.old and request.get("ReturnValues") == "ALL_OLD":
        shown.append(raw_member("Attributes", written.old.body))
    return _write_answer(request, table, written, shown)


def delete_item(context: WriteContext, request: Request) -> bytes:
    with enveloped(request):
        check_parameters(request, PUT_OR_DELETE)
        key = normalize_item(request["Key"])
        _check_return_values(request)
        expressions = read_expressions(request, PUT_OR_DELETE)
    delete = Delete(
        table_name=request["TableName"],
        condition=expressions.condition,
        values=expressions.values,
        shows_item_on_failure=shows_item_on_failure(request),
        item_key=key,
    )
    table, written = _carry_out(context, delete)
    shown = []
    if written.old and request.get("ReturnValues") == "ALL_OLD":
        shown.append(raw_member("Attributes", written.old.body))
    return _write_answer(request, table, written, shown)


def update_item(context: WriteContext, request: Request) -> bytes:
    with enveloped(request):
        check_parameters(request, UPDATE)
        key = normalize_item(request["Key"])
        expressions = read_expressions(request, UPDATE)
    update = Update(
        table_name=request["TableName"],
        condition=expressions.condition,
        values=expressions.values,
        shows_item_on_failure=shows_item_on_failure(request),
        item_key=key,
        update=expressions.update,
    )
    table, written = _carry_out(context, update)
    attributes = _updated_attributes(request.get("ReturnValues", "NONE"), update, written)
    shown = [raw_member("Attributes", attributes)] if attributes else []
    return _write_answer(request, table, written, shown)


@contextmanager
def enveloped(request: Request) -> Iterator[None]:
    """Since 2026 the service prefixes what it finds wrong before it looks at the table.

    Values that nest very deep are still answered by the generation before (recorded).
    """
    try:
        yield
    except ValidationException as error:
        if nests_too_deep(request):
            raise
        raise ValidationException(ENVELOPE + (error.message or "")) from None


def shows_item_on_failure(request: Request) -> bool:
    return request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"


def _carry_out(context: WriteContext, action: Action) -> tuple[Table, Written]:
    table = context.service.table(action.table_name)
    return table, carry_out(context.draft, table, action)


def _check_return_values(request: Request) -> None:
    if request.get("ReturnValues", "NONE") not in ("ALL_OLD", "NONE"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")


def _updated_attributes(return_values: str, update: Update, written: Written) -> bytes | None:
    """The Attributes member of UpdateItem's answer, or None when there is nothing to show."""
    stored = written.old if return_values.endswith("_OLD") else written.new
    if return_values == "NONE" or stored is None:
        return None
    if return_values.startswith("ALL_"):
        return stored.body
    touched = update.update.touched(stored.item) if update.update else {}
    return encode(touched) if touched else None


def _write_answer(request: Request, table: Table, written: Written, members: list[bytes]) -> bytes:
    if mode := request.get("ReturnConsumedCapacity"):
        report = consumed_by_write(table, [written]).report(table.name, mode)
        if report:
            members.append(member("ConsumedCapacity", report))
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        metrics = item_collection_metrics(table, written)
        if metrics:
            members.append(member("ItemCollectionMetrics", metrics))
    return answer(members)
