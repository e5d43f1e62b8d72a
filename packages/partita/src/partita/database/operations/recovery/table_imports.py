"""ImportTable, DescribeImport, ListImports: new tables from files."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from partita.database.operations.control_plane.tables import table_definitions
from partita.database.operations.control_plane.tables.table_descriptions import rounded
from partita.database.operations.control_plane.tables.table_operations import new_table
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.recovery.recovery_resources import (
    CONFLICT,
    check_arn,
    check_bucket,
    ending,
    find_record,
    jobs_page,
    new_id,
    recovery_context,
    repeated,
)
from partita.database.operations.response_members import encode
from partita.database.recovery.recovery_records import IN_PROGRESS, ImportRecord
from partita.database.recovery.s3.import_formats import CSV
from partita.database.tables.definition.table_catalog import next_table_number
from partita.database.tables.definition.table_schema import NOT_BEFORE_LOADED, PROVISIONED
from partita.errors import (
    INVALID_REQUEST,
    ImportConflictException,
    ImportNotFoundException,
    LimitExceededException,
    ResourceInUseException,
    ValidationException,
)
from partita.foundation.service_limits import IMPORTS_MAX

SHOWN = ("ClientToken", "InputFormatOptions", "TableCreationParameters")


def import_table(context: WriteContext, request: Request) -> bytes:
    service = context.service
    records = recovery_context(service).records
    conflict = ImportConflictException(f"Import {CONFLICT}")
    record = repeated(service, records.of(ImportRecord), request, conflict)
    if record is None:
        record = _begin(context, request)
    return encode({"ImportTableDescription": _description(service, record)})


def describe_import(context: ReadContext, request: Request) -> bytes:
    service, arn = context.service, request["ImportArn"]
    check_arn(service, ImportRecord, arn)
    record = find_record(service, ImportRecord, arn)
    if record is None:
        raise ImportNotFoundException(f"Import not found: {arn}")
    return encode({"ImportTableDescription": _description(service, record)})


def list_imports(context: ReadContext, request: Request) -> bytes:
    service = context.service
    page, token = jobs_page(service, ImportRecord, request, "PageSize")
    return encode({"ImportSummaryList": [_summary(service, record) for record in page], **token})


def _begin(context: WriteContext, request: Request) -> ImportRecord:
    service = context.service
    parameters = request["TableCreationParameters"]
    _check(service, request, parameters)
    name = parameters["TableName"]
    mode = parameters.get("BillingMode", PROVISIONED)
    table_definitions.refuse_what_is_not_built(parameters)
    table_definitions.check_throughput(mode, parameters.get("ProvisionedThroughput"))
    table = new_table(service, parameters, name, mode)
    if service.catalog.find(name) is not None:
        raise ResourceInUseException(f"Table already exists: {name}")
    record = ImportRecord(
        id=new_id(service),
        table_name=name,
        table_id=table.table_id,
        request=request,
        started_at=service.clock(),
    )
    table = replace(
        table,
        number=next_table_number(context.write_batch),
        settles_at=NOT_BEFORE_LOADED,
        import_id=record.id,
    )
    service.catalog.save(context.write_batch, table)
    recovery_context(service).records.save(context.write_batch, record)
    return record


def _check(service: DatabaseService, request: Request, parameters: dict[str, Any]) -> None:
    if "Csv" in request.get("InputFormatOptions", {}) and request["InputFormat"] != CSV:
        raise ValidationException(
            f"{INVALID_REQUEST}Unsupported InputFormatOptions for the given input format: "
            f"{request['InputFormat']}."
        )
    check_bucket(service, request["S3BucketSource"], request["S3BucketSource"]["S3Bucket"])
    imports = recovery_context(service).records.of(ImportRecord)
    if sum(record.status == IN_PROGRESS for record in imports) >= IMPORTS_MAX:
        raise LimitExceededException(
            f"Subscriber limit exceeded: {IMPORTS_MAX} imports are in progress already"
        )


def _summary(service: DatabaseService, record: ImportRecord) -> dict[str, Any]:
    summary = {
        "ImportArn": recovery_context(service).arn(record),
        "ImportStatus": record.status,
        "TableArn": service.table_arn(record.table_name),
        "S3BucketSource": {
            "S3BucketOwner": service.account_id,
            **record.request["S3BucketSource"],
        },
        "InputFormat": record.request["InputFormat"],
        "StartTime": rounded(record.started_at),
    }
    return summary | ({} if record.ended_at is None else {"EndTime": rounded(record.ended_at)})


def _description(service: DatabaseService, record: ImportRecord) -> dict[str, Any]:
    return {
        **_summary(service, record),
        **ending(record),
        **{name: record.request[name] for name in SHOWN if name in record.request},
        "InputCompressionType": record.request.get("InputCompressionType", "NONE"),
        "TableId": record.table_id,
        "ErrorCount": record.errors,
        "ProcessedItemCount": record.processed_items,
        "ProcessedSizeBytes": record.processed_bytes,
        "ImportedItemCount": record.imported_items,
    }
