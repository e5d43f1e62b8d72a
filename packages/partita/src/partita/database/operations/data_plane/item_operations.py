"""PutItem, GetItem, UpdateItem and DeleteItem: the operations on single items."""

from __future__ import annotations

from partita.database.capacity.capacity_units import ConsumedCapacity, read_units
from partita.database.expressions.update import ITEM_TOO_LARGE as UPDATED_ITEM_TOO_LARGE
from partita.database.item.attribute_values import normalize_item
from partita.database.item.item_sizes import check_item_size
from partita.database.operations import charges
from partita.database.operations.data_plane.expression_parameters import (
    GET,
    PUT_OR_DELETE,
    UPDATE,
    check_parameters,
    compile_expressions,
    enveloped,
)
from partita.database.operations.data_plane.item_actions import (
    DeleteAction,
    ItemAction,
    PutAction,
    UpdateAction,
    shows_item_on_failure,
)
from partita.database.operations.operation_context import ReadContext, Request, WriteContext
from partita.database.operations.response_members import (
    answer,
    consumed_by_write,
    encode,
    item_collection_metrics,
    member,
    projected,
    raw_member,
)
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_key, check_scalar_paths
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import pack
from partita.database.tables.write_path import WriteEffect
from partita.errors import ValidationException


def get_item(context: ReadContext, request: Request) -> bytes:
    check_parameters(request, GET)
    key = normalize_item(request["Key"])
    expressions = compile_expressions(request, GET)
    table = context.service.table(request["TableName"])
    check_key(table, key)
    if expressions.projection:
        check_scalar_paths(table, expressions.projection.paths)
    item_key = table_layout.item_key(table, key)
    context.partition = table_layout.partition_of(item_key)
    stored = load(context.snapshot, item_key)
    charges.charge_read(context.service, table, key, stored, request)
    members = []
    if stored:
        members.append(raw_member("Item", projected(stored, expressions.projection)))
    if mode := request.get("ReturnConsumedCapacity"):
        consistent = request.get("ConsistentRead", False)
        consumed = ConsumedCapacity(read_units(stored.size if stored else 0, consistent=consistent))
        if report := consumed.report(table.name, mode):
            members.append(member("ConsumedCapacity", report))
    return answer(members)


def put_item(context: WriteContext, request: Request) -> bytes:
    try:
        put = _read_put(request)
    except ValidationException as error:
        raise enveloped(error, request) from None
    table, written = _carry_out(context, put)
    return _write_answer(request, table, written, _old_attributes(request, written))


def _read_put(request: Request) -> PutAction:
    check_parameters(request, PUT_OR_DELETE)
    item = pack(normalize_item(request["Item"]))
    _check_return_values(request)
    check_item_size(item.size)
    expressions = compile_expressions(request, PUT_OR_DELETE)
    return PutAction(request["TableName"], item, expressions, shows_item_on_failure(request))


def delete_item(context: WriteContext, request: Request) -> bytes:
    try:
        delete = _read_delete(request)
    except ValidationException as error:
        raise enveloped(error, request) from None
    table, written = _carry_out(context, delete)
    return _write_answer(request, table, written, _old_attributes(request, written))


def _read_delete(request: Request) -> DeleteAction:
    check_parameters(request, PUT_OR_DELETE)
    key = normalize_item(request["Key"])
    _check_return_values(request)
    expressions = compile_expressions(request, PUT_OR_DELETE)
    return DeleteAction(request["TableName"], key, expressions, shows_item_on_failure(request))


def update_item(context: WriteContext, request: Request) -> bytes:
    try:
        update = _read_update(request)
    except ValidationException as error:
        raise enveloped(error, request) from None
    if update.update:
        check_item_size(update.update.size.bytes(update.values), UPDATED_ITEM_TOO_LARGE)
    table, written = _carry_out(context, update)
    attributes = _updated_attributes(request.get("ReturnValues", "NONE"), update, written)
    shown = [raw_member("Attributes", attributes)] if attributes else []
    return _write_answer(request, table, written, shown)


def _read_update(request: Request) -> UpdateAction:
    check_parameters(request, UPDATE)
    key = normalize_item(request["Key"])
    expressions = compile_expressions(request, UPDATE)
    return UpdateAction(request["TableName"], key, expressions, shows_item_on_failure(request))


def _carry_out(context: WriteContext, action: ItemAction) -> tuple[Table, WriteEffect]:
    table = context.service.table(action.table_name)
    return table, charges.carry_out(context, table, action)


def _check_return_values(request: Request) -> None:
    if request.get("ReturnValues", "NONE") not in ("ALL_OLD", "NONE"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")


def _old_attributes(request: Request, written: WriteEffect) -> list[bytes]:
    if written.old and request.get("ReturnValues") == "ALL_OLD":
        return [raw_member("Attributes", written.old.body)]
    return []


def _updated_attributes(
    return_values: str, update: UpdateAction, written: WriteEffect
) -> bytes | None:
    """Returns the Attributes of UpdateItem's response, or None if there are none to return."""
    stored = written.old if return_values.endswith("_OLD") else written.new
    if return_values == "NONE" or stored is None:
        return None
    if return_values.startswith("ALL_"):
        return stored.body
    touched = update.update.touched(stored.item) if update.update else {}
    return encode(touched) if touched else None


def _write_answer(
    request: Request, table: Table, written: WriteEffect, members: list[bytes]
) -> bytes:
    if mode := request.get("ReturnConsumedCapacity"):
        report = consumed_by_write(table, [written]).report(table.name, mode)
        if report:
            members.append(member("ConsumedCapacity", report))
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        metrics = item_collection_metrics(table, written)
        if metrics:
            members.append(member("ItemCollectionMetrics", metrics))
    return answer(members)
