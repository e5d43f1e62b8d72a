"""BatchExecuteStatement: up to 25 reads or writes of single items, independent of each other."""

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
    """One statement of a batch that is ready to run, or the error that prevents it."""

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
    run: Callable[[BatchMember], Outcome],
) -> bytes:
    if len(_kinds(request) - {None}) > 1:
        raise ValidationException(MIXED_BATCH)
    batch = [
        _batch_member(service, statement_request, refusals.get(position))
        for position, statement_request in enumerate(request["Statements"])
    ]
    places = [prepared.place for prepared in batch if prepared.place is not None]
    if len(set(places)) < len(places):
        raise ValidationException(DUPLICATES)
    consumed: dict[str, ConsumedCapacity] = {}
    responses = [_batch_response(prepared, run, consumed) for prepared in batch]
    reports = [
        report
        for name, units in consumed.items()
        if (report := units.report(name, request.get("ReturnConsumedCapacity")))
    ]
    members = [raw_member("Responses", raw_list(responses))]
    return answer(members + ([member("ConsumedCapacity", reports)] if reports else []))


def _kinds(request: Request) -> set[bool | None]:
    """Returns a set of True for writes, False for reads and None for invalid statements."""
    return {is_write(statement["Statement"]) for statement in request["Statements"]}


def _batch_member(
    service: DatabaseService, request: Request, refusal: DynamoDBError | None
) -> BatchMember:
    if refusal is not None:
        return BatchMember(request, error=refusal)
    prepared = BatchMember(request)
    try:
        prepared.statement, values = bind_alone(service, request)
        prepared.table = service.table(prepared.statement.table_name)
        if isinstance(prepared.statement, SelectStatement):
            plan = single_item(prepared.statement, prepared.table, values, "BatchExecuteStatement")
            check_key(prepared.table, plan.key)
            prepared.key = plan.key
        else:
            prepared.action = action_of(prepared.statement, prepared.table, values, request)
            prepared.key = charges.key_of(prepared.action)
    except MisplacedExists as error:
        prepared.error = error
    except UnsupportedOperation:
        prepared.error = ValidationException(NO_STATEMENT)
    except (ValidationException, ResourceNotFoundException) as error:
        prepared.error = error
    if prepared.table and prepared.key:
        prepared.place = table_layout.item_key(prepared.table, prepared.key)
    return prepared


def _batch_response(
    prepared: BatchMember,
    run: Callable[[BatchMember], Outcome],
    consumed: dict[str, ConsumedCapacity],
) -> bytes:
    if prepared.error:
        return answer([raw_member("Error", _batch_error(prepared.error))])
    table = prepared.table
    assert table and prepared.statement
    members = []
    try:
        used, shown = run(prepared)
        consumed.setdefault(table.name, ConsumedCapacity()).add(used)
        if shown is not None:
            members.append(raw_member("Item", shown))
    except DynamoDBError as error:
        members.append(raw_member("Error", _batch_error(error)))
    members.append(member("TableName", table.name))
    return answer(members)


def _batch_read(context: ReadContext, read: BatchMember) -> Outcome:
    assert isinstance(read.statement, SelectStatement) and read.table and read.key and read.place
    stored = load(context.snapshot, read.place)
    units = read_units(
        stored.size if stored else 0, consistent=read.request.get("ConsistentRead", False)
    )
    charges.charge_read(context.service, read.table, read.key, stored, read.request)
    return ConsumedCapacity(units), projected(stored, read.statement.projection) if stored else None


def _batch_write(context: WriteContext, write: BatchMember) -> Outcome:
    """Carry out one write; if it fails, the write batch that all share is as before."""
    assert write.statement and write.table and write.action
    savepoint = context.write_batch.savepoint()
    try:
        written = charges.carry_out(context, write.table, write.action)
    except DynamoDBError:
        context.write_batch.rollback_to(savepoint)
        raise
    return consumed_by_write(write.table, [written]), returned(write.statement, written)


def _batch_error(error: DynamoDBError) -> bytes:
    """Returns an error as a member of the response.

    Its code is the error's name without "Exception", except for IRREGULAR_CODES.
    """
    code = error.wire_code.removesuffix("Exception")
    for kind, irregular in IRREGULAR_CODES:
        if isinstance(error, kind):
            code = irregular
    members: dict[str, Any] = {"Code": code, "Message": error.message}
    if isinstance(error, ConditionalCheckFailedException) and "Item" in error.members:
        members["Item"] = error.members["Item"]
    return encode(members)
