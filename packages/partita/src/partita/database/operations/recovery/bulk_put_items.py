"""StartBulkPutItems, DescribeBulkOperation, ListBulkOperations, CancelBulkOperation: puts of many
items from files."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from partita.database.operations.control_plane.tables.table_descriptions import rounded
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
    table_name,
)
from partita.database.operations.recovery.recovery_resources import (
    check_bucket,
    ending,
    find_record,
    new_id,
    page_of,
    recovery_context,
    repeated,
)
from partita.database.operations.response_members import encode
from partita.database.recovery.recovery_records import CANCELLING, IN_PROGRESS, BulkPutRecord
from partita.database.tables.definition.table_schema import ACTIVE, CREATING, UPDATING, Table
from partita.errors import (
    INVALID,
    IdempotentParameterMismatchException,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from partita.foundation.service_limits import (
    BULK_OPERATIONS_MAX,
    BULK_TABLE_OPERATIONS_MAX,
    LIST_BULK_PAGE,
    LISTED_SECONDS,
)

STANDARD = "STANDARD"
RUNNING = (IN_PROGRESS, CANCELLING)
SHOWN = ("ClientToken", "InputS3Configuration", "OutputS3Configuration", "MaxWriteRequestUnits")


def start_bulk_put_items(context: WriteContext, request: Request) -> bytes:
    service = context.service
    records = recovery_context(service).records
    mismatch = IdempotentParameterMismatchException(
        "The client token was used with other parameters"
    )
    record = repeated(service, records.of(BulkPutRecord), request, mismatch)
    if record is None:
        table = _writable(service, request["TableName"])
        _check(service, table, request)
        record = BulkPutRecord(
            id=new_id(service),
            table_name=table.name,
            table_id=table.table_id,
            request=request,
            started_at=service.clock(),
        )
        records.save(context.write_batch, record)
    return encode({"BulkOperationDescription": _description(service, record)})


def describe_bulk_operation(context: ReadContext, request: Request) -> bytes:
    record = _find(context.service, request["BulkOperationArn"])
    return encode({"BulkOperationDescription": _description(context.service, record)})


def list_bulk_operations(context: ReadContext, request: Request) -> bytes:
    service = context.service
    since = service.clock() - LISTED_SECONDS
    recent = [
        record
        for record in recovery_context(service).records.of(BulkPutRecord)
        if record.started_at >= since
    ]
    limit = request.get("MaxResults", LIST_BULK_PAGE)
    page, token = page_of(recent, limit, request.get("NextToken"))
    return encode(
        {"BulkOperationsSummaryList": [_summary(service, record) for record in page], **token}
    )


def cancel_bulk_operation(context: WriteContext, request: Request) -> bytes:
    """Cancel a running bulk operation; this happens in the background."""
    service, arn = context.service, request["BulkOperationArn"]
    record = _find(service, arn)
    if record.status not in RUNNING:
        raise ValidationException(
            f"{INVALID}The bulk operation has ended already, with the status {record.status}"
        )
    cancelled = replace(record, status=CANCELLING)
    recovery_context(service).records.save(context.write_batch, cancelled)
    return encode({"BulkOperationArn": arn, "BulkOperationStatus": CANCELLING})


def _writable(service: DatabaseService, name_or_arn: str) -> Table:
    name = table_name(name_or_arn)
    table = service.catalog.find(name)
    if table is None:
        raise ResourceNotFoundException(f"Requested resource not found: Table: {name} not found")
    status = table.status(service.clock())
    is_filling = any(index.status == CREATING for index in table.indexes)
    if status not in (ACTIVE, UPDATING) or is_filling:
        raise ResourceInUseException(f"Table is not ready for a bulk operation: {name}")
    return table


def _check(service: DatabaseService, table: Table, request: Request) -> None:
    source, output = request["InputS3Configuration"], request["OutputS3Configuration"]
    if "S3Bucket" not in output:
        raise ValidationException(f"{INVALID}OutputS3Configuration.S3Bucket must be specified")
    if not output["OutputType"]:
        raise ValidationException(f"{INVALID}OutputS3Configuration.OutputType must not be empty")
    check_bucket(service, source, source["S3Bucket"])
    check_bucket(service, output, output["S3Bucket"])
    running = [
        record
        for record in recovery_context(service).records.of(BulkPutRecord)
        if record.status in RUNNING
    ]
    if len(running) >= BULK_OPERATIONS_MAX:
        raise LimitExceededException(
            f"Subscriber limit exceeded: {BULK_OPERATIONS_MAX} bulk operations are in progress "
            "already"
        )
    running_on_table = sum(record.table_id == table.table_id for record in running)
    if running_on_table >= BULK_TABLE_OPERATIONS_MAX:
        raise ResourceInUseException(
            f"A bulk operation is in progress already for table: {table.name}"
        )


def _find(service: DatabaseService, arn: str) -> BulkPutRecord:
    record = find_record(service, BulkPutRecord, arn)
    if record is None:
        raise ResourceNotFoundException(f"Bulk operation not found: {arn}")
    return record


def _summary(service: DatabaseService, record: BulkPutRecord) -> dict[str, Any]:
    summary = {
        "BulkOperationArn": recovery_context(service).arn(record),
        "BulkOperationStatus": record.status,
        "StartTime": rounded(record.started_at),
    }
    return summary | ({} if record.ended_at is None else {"EndTime": rounded(record.ended_at)})


def _description(service: DatabaseService, record: BulkPutRecord) -> dict[str, Any]:
    described = {
        **_summary(service, record),
        **ending(record),
        "TableDetails": [
            {"TableName": service.table_arn(record.table_name), "TableId": record.table_id}
        ],
        **{name: record.request[name] for name in SHOWN if name in record.request},
        "PerformanceTier": record.request.get("PerformanceTier", STANDARD),
        "ProcessedItemCount": record.processed_items,
        "ProcessedInputBytes": record.processed_bytes,
        "FailedItemCount": record.failed_items,
        "BulkOperationUsage": [_usage(service, record)],
    }
    if record.total_bytes is not None:
        described["TotalInputBytes"] = record.total_bytes
    return described


def _usage(service: DatabaseService, record: BulkPutRecord) -> dict[str, Any]:
    table = service.catalog.find(record.table_name)
    local = {index.name for index in table.local_indexes} if table else set[str]()
    indexes = {name: {"BulkPutBytes": size} for name, size in record.usage.items() if name}
    kinds = {
        "LocalSecondaryIndexes": {n: size for n, size in indexes.items() if n in local},
        "GlobalSecondaryIndexes": {n: size for n, size in indexes.items() if n not in local},
    }
    return {
        "TableName": service.table_arn(record.table_name),
        "BulkPutBytes": sum(record.usage.values()),
        "Table": {"BulkPutBytes": record.usage.get("", 0)},
        **{kind: sizes for kind, sizes in kinds.items() if sizes},
    }
