"""EnableKinesisStreamingDestination and its kin: a table whose changes become records of a stream.

Texts of refusals are those that LocalStack recorded from the service.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from partita.changes.captures import Destination, open_capture
from partita.changes.streams import last_sequence
from partita.errors import ValidationException
from partita.events.streams import DELETING
from partita.operations.answers import encode
from partita.operations.context import ReadContext, Request, Service, WriteContext, table_name
from partita.operations.kinesis_resources import name_in_arn
from partita.operations.tables import refuse_unless_active
from partita.tables.catalog import next_table_number
from partita.tables.schema import Table

ENABLING, ACTIVE, UPDATING = "ENABLING", "ACTIVE", "UPDATING"
DISABLING, DISABLED = "DISABLING", "DISABLED"
MILLISECOND = "MILLISECOND"
PRECISION = "ApproximateCreationDateTimePrecision"
ENABLE, UPDATE = "EnableKinesisStreamingConfiguration", "UpdateKinesisStreamingConfiguration"

NO_STREAM = "User does not have a permission to use kinesis stream"
ENABLED = (
    "Table is not in a valid state to enable Kinesis Streaming Destination: "
    "EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE "
    "operation."
)
NOT_ENABLED = (
    "Table is not in a valid state to disable Kinesis Streaming Destination: "
    "DisableKinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
)
NOT_UPDATABLE = (
    "Table is not in a valid state to update Kinesis Streaming Destination: "
    "UpdateKinesisStreamingDestination must be ACTIVE to perform UPDATE operation."
)
SAME_PRECISION = (
    "Invalid Request: Precision is already set to the desired value of {} for tableId: {}, "
    "kdsArn: {}"
)


def enable_kinesis_streaming_destination(context: WriteContext, request: Request) -> bytes:
    service, draft = context.service, context.draft
    table = _changeable_table(service, request)
    arn, name = request["StreamArn"], name_in_arn(request["StreamArn"])
    stream = service.event_streams.find(name)
    if stream is None or stream.status(service.clock()) == DELETING:
        raise ValidationException(NO_STREAM)
    present = _destination(table, name)
    if present is not None and _status(service, present) != DISABLED:
        raise ValidationException(ENABLED)
    now = service.clock()
    if table.capture is None:
        capture = open_capture(next_table_number(draft), table.key_names, now)
        table = replace(table, capture=capture)
    assert table.capture is not None
    destination = Destination(
        stream_arn=arn,
        stream_name=name,
        precision=request.get(ENABLE, {}).get(PRECISION, MILLISECOND),
        log=table.capture.number,
        first=last_sequence(draft, table.capture.number) + 1,
        changed_at=now,
    )
    service.catalog.save(draft, table.with_destination(destination))
    return _answer(table, destination, ENABLING, ENABLE)


def disable_kinesis_streaming_destination(context: WriteContext, request: Request) -> bytes:
    """What was changed until now still arrives."""
    service, draft = context.service, context.draft
    table = _changeable_table(service, request)
    present = _active(service, table, request, NOT_ENABLED)
    last = last_sequence(draft, present.log)
    disabled = replace(present, last=last, changed_at=service.clock())
    table = table.with_destination(disabled)
    if all(one.last is not None for one in table.destinations):
        table = replace(table, capture=None)
    service.catalog.save(draft, table)
    return _answer(table, disabled, DISABLING, ENABLE)


def update_kinesis_streaming_destination(context: WriteContext, request: Request) -> bytes:
    service = context.service
    table = _changeable_table(service, request)
    present = _active(service, table, request, NOT_UPDATABLE)
    precision = request.get(UPDATE, {}).get(PRECISION, present.precision)
    if precision == present.precision:
        arn = present.stream_arn
        raise ValidationException(SAME_PRECISION.format(precision, table.table_id, arn))
    updated = replace(present, precision=precision)
    service.catalog.save(context.draft, table.with_destination(updated))
    return _answer(table, updated, UPDATING, UPDATE)


def describe_kinesis_streaming_destination(context: ReadContext, request: Request) -> bytes:
    service = context.service
    table = service.catalog.described(table_name(request["TableName"]))
    destinations = [
        {
            "StreamArn": destination.stream_arn,
            "DestinationStatus": _status(service, destination),
            PRECISION: destination.precision,
        }
        for destination in table.destinations
    ]
    return encode({"TableName": table.name, "KinesisDataStreamDestinations": destinations})


def _changeable_table(service: Service, request: Request) -> Table:
    table = service.catalog.described(table_name(request["TableName"]))
    refuse_unless_active(service, table)
    return table


def _destination(table: Table, stream_name: str) -> Destination | None:
    return next((one for one in table.destinations if one.stream_name == stream_name), None)


def _active(service: Service, table: Table, request: Request, refusal: str) -> Destination:
    present = _destination(table, name_in_arn(request["StreamArn"]))
    if present is None or _status(service, present) != ACTIVE:
        raise ValidationException(refusal)
    return present


def _status(service: Service, destination: Destination) -> str:
    is_changing = service.clock() < destination.changed_at + service.transient_seconds
    if destination.last is None:
        return ENABLING if is_changing else ACTIVE
    return DISABLED if destination.is_over and not is_changing else DISABLING


def _answer(table: Table, destination: Destination, status: str, member: str) -> bytes:
    shown: dict[str, Any] = {
        "TableName": table.name,
        "StreamArn": destination.stream_arn,
        "DestinationStatus": status,
        member: {PRECISION: destination.precision},
    }
    return encode(shown)
