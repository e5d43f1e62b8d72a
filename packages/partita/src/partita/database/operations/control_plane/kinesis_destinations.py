"""The operations on a table's Kinesis destinations, to which its changes are delivered.

Statuses and error messages were recorded from the service in 2026 by the quirks lab of its
Kubernetes controller. Two of its findings: the stream is looked up only after the response, and a
table has one active destination at a time.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from partita.database.logs.change_log.kinesis_captures import (
    MILLISECOND,
    KinesisDestination,
    open_capture,
)
from partita.database.logs.event_log.event_streams import CREATING, DELETING, name_in_arn
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
    table_name,
)
from partita.database.operations.response_members import encode
from partita.database.tables.definition.table_catalog import next_table_number
from partita.database.tables.definition.table_schema import Table
from partita.errors import ResourceNotFoundException, ValidationException

ENABLING, ACTIVE, UPDATING, ENABLE_FAILED = "ENABLING", "ACTIVE", "UPDATING", "ENABLE_FAILED"
DISABLING, DISABLED = "DISABLING", "DISABLED"
PRECISION = "ApproximateCreationDateTimePrecision"
ENABLE, UPDATE = "EnableKinesisStreamingConfiguration", "UpdateKinesisStreamingConfiguration"

NO_STREAM = "User does not have a permission to use kinesis stream"
# The message says "enable" for every operation.
STATE = "Table is not in a valid state to enable Kinesis Streaming Destination: "
ENABLED = (
    f"{STATE}EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE "
    "operation."
)
NOT_ENABLED = f"{STATE}KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
# The end of this message was not recorded.
NOT_UPDATABLE = (
    f"{STATE}Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. "
    "TableName: {}"
)
# This message was observed in LocalStack.
SAME_PRECISION = (
    "Invalid Request: Precision is already set to the desired value of {} for tableId: {}, "
    "kdsArn: {}"
)


def enable_kinesis_streaming_destination(context: WriteContext, request: Request) -> bytes:
    service, write_batch = context.service, context.write_batch
    table = _table(service, request)
    in_use = (ENABLING, ACTIVE, DISABLING)
    if any(_status(service, destination) in in_use for destination in table.destinations):
        raise ValidationException(ENABLED)
    now = service.clock()
    configuration = request.get(ENABLE, {})
    destination = KinesisDestination(
        stream_arn=request["StreamArn"],
        stream_name=name_in_arn(request["StreamArn"]),
        precision=configuration.get(PRECISION),
        log=next_table_number(write_batch),
        changed_at=now,
    )
    stream = service.event_streams.find(destination.stream_name)
    if stream is None or stream.status(now) in (CREATING, DELETING):
        destination = replace(destination, is_over=True, failure=NO_STREAM)
    else:
        table = replace(table, capture=open_capture(destination.log, table.key_names, now))
    service.catalog.save(write_batch, table.with_destination(destination))
    return _answer(table, destination, ENABLING, {ENABLE: configuration})


def disable_kinesis_streaming_destination(context: WriteContext, request: Request) -> bytes:
    """Disable a destination; changes up to now are still delivered to it."""
    service = context.service
    table = _table(service, request)
    present = _active(service, table, request)
    if present is None:
        raise ValidationException(NOT_ENABLED)
    disabled = replace(present, is_disabled=True, changed_at=service.clock())
    table = replace(table.with_destination(disabled), capture=None)
    service.catalog.save(context.write_batch, table)
    return _answer(table, disabled, DISABLING, {ENABLE: request.get(ENABLE, {})})


def update_kinesis_streaming_destination(context: WriteContext, request: Request) -> bytes:
    service = context.service
    table = _table(service, request)
    present = _active(service, table, request)
    if present is None:
        raise ValidationException(NOT_UPDATABLE.format(table.name))
    configuration = request.get(UPDATE, {})
    precision = configuration.get(PRECISION, present.precision or MILLISECOND)
    if precision == (present.precision or MILLISECOND):
        arn = present.stream_arn
        raise ValidationException(SAME_PRECISION.format(precision, table.table_id, arn))
    updated = replace(present, precision=precision)
    service.catalog.save(context.write_batch, table.with_destination(updated))
    return _answer(table, updated, UPDATING, {UPDATE: configuration})


def describe_kinesis_streaming_destination(context: ReadContext, request: Request) -> bytes:
    service = context.service
    table = service.catalog.described(table_name(request["TableName"]))
    destinations = [_described(service, destination) for destination in table.destinations]
    return encode({"TableName": table.name, "KinesisDataStreamDestinations": destinations})


def _described(service: DatabaseService, destination: KinesisDestination) -> dict[str, str]:
    status = _status(service, destination)
    described = {"StreamArn": destination.stream_arn, "DestinationStatus": status}
    if destination.failure is not None and status == ENABLE_FAILED:
        described["DestinationStatusDescription"] = destination.failure
    if destination.precision is not None:
        described[PRECISION] = destination.precision
    return described


def _table(service: DatabaseService, request: Request) -> Table:
    """Returns a table, unless it is being created or deleted: then it is not found (recorded)."""
    table = service.catalog.described(table_name(request["TableName"]))
    if table.status(service.clock()) in (CREATING, DELETING):
        text = f"Requested resource not found: Table: {table.name} not found"
        raise ResourceNotFoundException(text)
    return table


def _active(service: DatabaseService, table: Table, request: Request) -> KinesisDestination | None:
    name = name_in_arn(request["StreamArn"])
    return next(
        (
            destination
            for destination in table.destinations
            if destination.stream_name == name and _status(service, destination) == ACTIVE
        ),
        None,
    )


def _status(service: DatabaseService, destination: KinesisDestination) -> str:
    is_changing = service.clock() < destination.changed_at + service.transient_seconds
    if destination.is_disabled:
        return DISABLED if destination.is_over and not is_changing else DISABLING
    if is_changing:
        return ENABLING
    return ENABLE_FAILED if destination.failure is not None else ACTIVE


def _answer(
    table: Table, destination: KinesisDestination, status: str, configuration: dict[str, Any]
) -> bytes:
    shown = {
        "TableName": table.name,
        "StreamArn": destination.stream_arn,
        "DestinationStatus": status,
    }
    return encode({**shown, **configuration})
