"""BatchExecuteStatement: up to 25 reads or writes of single items, each independent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from partita.database.capacity.capacity_units import ConsumedCapacity, read_units
from partita.database.item.attribute_values import Item
from partita.database.operations import charges
from partita.database.operations.data_plane.batch_items import DUPLICATES
from partita.database.operations.data_plane.item_actions import ItemAction
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Refusals,
    Request,
    WriteContext,
)
from partita.database.operations.partiql.execute_statement import (
    action_of,
    bind_alone,
    returned,
    single_item,
)
from partita.database.operations.partiql.language.statement_compiler import (
    CompiledStatement,
    MisplacedExists,
    SelectStatement,
    UnsupportedOperation,
    is_write,
)
from partita.database.operations.response_members import (
    answer,
    consumed_by_write,
    encode,
    member,
    projected,
    raw_list,
    raw_member,
)
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_key
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.read_path import load
from partita.errors import (
    ConditionalCheckFailedException,
    DynamoDBError,
    ResourceNotFoundException,
    ThrottlingException,
    ValidationException,
)

MIXED_BATCH = "Read and write requests together in the same batch is not supported."
NO_STATEMENT = "Invalid operation. Only select, insert, update and delete operations are valid"
IRREGULAR_CODES = (
    (ValidationException, "ValidationError"),
    (ThrottlingException, "ThrottlingError"),
)


@dataclass(slots=True)
class BatchMember:
    """One statement of a batch, ready to run, or the error that keeps it from running."""

    request: Request
    statement: CompiledStatement | None = None
    table: Table | None = None
    key: Item | None = None
    place: bytes | None = None
    action: ItemAction | None = None
    error: DynamoDBError | None = None


Outcome = tuple[ConsumedCapacity, bytes | None]
"""The units that a statement consumed, and the item that it returns."""


def only_reads(request: Request) -> bool:
    return True not in _kinds(request)


def execute_reads(context: ReadContext, request: Request) -> bytes:
    return _execute(context.service, request, context.refusals, partial(_batch_read, context))


def execute_writes(context: WriteContext, request: Request) -> bytes:
    return _execute(context.service, request, context.refusals, partial(_batch_write, context))


def _execute(
    service: DatabaseService,
    request: Request,
    refusals: Refusals,
    carry_out_one: Callable[[BatchMember], Outcome],
) -> bytes:
    if len(_kinds(request) - {None}) > 1:
        raise ValidationException(MIXED_BATCH)
    batch = [
        _batch_member(service, one, refusals.get(place))
        for place, one in enumerate(request["Statements"])
    ]
    places = [one.place for one in batch if one.place is not None]
    if len(set(places)) < len(places):
        raise ValidationException(DUPLICATES)
    consumed: dict[str, ConsumedCapacity] = {}
    responses = [_batch_response(one, carry_out_one, consumed) for one in batch]
    reports = [
        report
        for name, units in consumed.items()
        if (report := units.report(name, request.get("ReturnConsumedCapacity")))
    ]
    members = [raw_member("Responses", raw_list(responses))]
    return answer(members + ([member("ConsumedCapacity", reports)] if reports else []))


def _kinds(request: Request) -> set[bool | None]:
    return {is_write(one["Statement"]) for one in request["Statements"]}


def _batch_member(
    service: DatabaseService, request: Request, refusal: DynamoDBError | None
) -> BatchMember:
    if refusal is not None:
        return BatchMember(request, error=refusal)
    one = BatchMember(request)
    try:
        one.statement, values = bind_alone(service, request)
        one.table = service.table(one.statement.table_name)
        if isinstance(one.statement, SelectStatement):
            plan = single_item(one.statement, one.table, values, "BatchExecuteStatement")
            check_key(one.table, plan.key)
            one.key = plan.key
        else:
            one.action = action_of(one.statement, one.table, values, request)
            one.key = charges.key_of(one.action)
    except MisplacedExists as error:
        one.error = error
    except UnsupportedOperation:
        one.error = ValidationException(NO_STATEMENT)
    except (ValidationException, ResourceNotFoundException) as error:
        one.error = error
    if one.table and one.key:
        one.place = table_layout.item_key(one.table, one.key)
    return one


def _batch_response(
    one: BatchMember,
    carry_out_one: Callable[[BatchMember], Outcome],
    consumed: dict[str, ConsumedCapacity],
) -> bytes:
    if one.error:
        return answer([raw_member("Error", _batch_error(one.error))])
    assert one.table and one.statement
    members = []
    try:
        used, shown = carry_out_one(one)
        consumed.setdefault(one.table.name, ConsumedCapacity()).add(used)
        if shown is not None:
            members.append(raw_member("Item", shown))
    except DynamoDBError as error:
        members.append(raw_member("Error", _batch_error(error)))
    members.append(member("TableName", one.table.name))
    return answer(members)


def _batch_read(context: ReadContext, one: BatchMember) -> Outcome:
    assert isinstance(one.statement, SelectStatement) and one.table and one.key and one.place
    stored = load(context.snapshot, one.place)
    units = read_units(
        stored.size if stored else 0, consistent=one.request.get("ConsistentRead", False)
    )
    charges.charge_read(context.service, one.table, one.key, stored, one.request)
    return ConsumedCapacity(units), projected(stored, one.statement.projection) if stored else None


def _batch_write(context: WriteContext, one: BatchMember) -> Outcome:
    """Carry out one write; if it fails, it leaves nothing in the write batch that all share."""
    assert one.statement and one.table and one.action
    savepoint = context.write_batch.savepoint()
    try:
        written = charges.carry_out(context, one.table, one.action)
    except DynamoDBError:
        context.write_batch.rollback_to(savepoint)
        raise
    return consumed_by_write(one.table, [written]), returned(one.statement, written)


def _batch_error(error: DynamoDBError) -> bytes:
    """The code is the exception's name without "Exception", except for IRREGULAR_CODES."""
    code = (error.code or type(error).__name__).removesuffix("Exception")
    for kind, irregular in IRREGULAR_CODES:
        if isinstance(error, kind):
            code = irregular
    members: dict[str, Any] = {"Code": code, "Message": error.message}
    if isinstance(error, ConditionalCheckFailedException) and "Item" in error.members:
        members["Item"] = error.members["Item"]
    return encode(members)
