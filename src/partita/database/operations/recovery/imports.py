"""ImportTable, DescribeImport, ListImports."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from partita.database.operations.answers import encode
from partita.database.operations.context import ReadContext, Request, Service, WriteContext
from partita.database.operations.control_plane import definitions
from partita.database.operations.control_plane.descriptions import rounded
from partita.database.operations.control_plane.tables import new_table
from partita.database.operations.recovery.resources import (
    check_bucket,
    id_in_arn,
    new_id,
    page_of,
    repeated,
    resource_arn,
    workplace,
)
from partita.database.recovery.formats import CSV
from partita.database.recovery.records import FAILED, IN_PROGRESS, Import
from partita.database.tables.catalog import next_table_number
from partita.database.tables.schema import NOT_BEFORE_LOADED, PROVISIONED
from partita.errors import (
    INVALID,
    ImportConflictException,
    ImportNotFoundException,
    LimitExceededException,
    ResourceInUseException,
    ValidationException,
)
from partita.limits import IMPORTS_MAX

IMPORT = "import"
SHOWN = (
    *("ClientToken", "S3BucketSource", "InputFormat", "InputFormatOptions"),
    *("InputCompressionType", "TableCreationParameters"),
)


def import_table(context: WriteContext, request: Request) -> bytes:
    service = context.service
    records = workplace(service).records
    again = repeated(
        service, records.of(Import), request, ImportConflictException("The client token was used")
    )
    if again is None:
        again = _begin(context, request)
    return encode({"ImportTableDescription": _description(service, again)})


def describe_import(context: ReadContext, request: Request) -> bytes:
    service, arn = context.service, request["ImportArn"]
    found = workplace(service).records.find(Import, id_in_arn(arn, IMPORT))
    if found is None or _arn(service, found) != arn:
        raise ImportNotFoundException(f"Import not found: {arn}")
    return encode({"ImportTableDescription": _description(service, found)})


def list_imports(context: ReadContext, request: Request) -> bytes:
    service = context.service
    imports = workplace(service).records.of(Import)
    if "TableArn" in request:
        imports = [one for one in imports if _table_arn(service, one) == request["TableArn"]]
    shown, token = page_of(imports, request.get("PageSize"), request.get("NextToken"))
    return encode({"ImportSummaryList": [_summary(service, one) for one in shown], **token})


def _begin(context: WriteContext, request: Request) -> Import:
    service = context.service
    parameters = request["TableCreationParameters"]
    _check(service, request, parameters)
    name = parameters["TableName"]
    mode = parameters.get("BillingMode", PROVISIONED)
    definitions.refuse_what_is_not_built(parameters)
    definitions.check_throughput(mode, parameters.get("ProvisionedThroughput"))
    table = new_table(service, parameters, name, mode)
    if service.catalog.find(name) is not None:
        raise ResourceInUseException(f"Table already exists: {name}")
    record = Import(
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
    workplace(service).records.save(context.write_batch, record)
    return record


def _check(service: Service, request: Request, parameters: dict[str, Any]) -> None:
    if "Csv" in request.get("InputFormatOptions", {}) and request["InputFormat"] != CSV:
        raise ValidationException(
            f"{INVALID}InputFormatOptions.Csv can only be specified for the format CSV"
        )
    check_bucket(service, request["S3BucketSource"], request["S3BucketSource"]["S3Bucket"])
    imports = workplace(service).records.of(Import)
    if sum(one.status == IN_PROGRESS for one in imports) >= IMPORTS_MAX:
        raise LimitExceededException(
            f"Subscriber limit exceeded: {IMPORTS_MAX} imports are in progress already"
        )


def _arn(service: Service, record: Import) -> str:
    return resource_arn(service, record.table_name, IMPORT, record.id)


def _table_arn(service: Service, record: Import) -> str:
    return service.table_arn(record.table_name)


def _summary(service: Service, record: Import) -> dict[str, Any]:
    summary = {
        "ImportArn": _arn(service, record),
        "ImportStatus": record.status,
        "TableArn": _table_arn(service, record),
        "S3BucketSource": record.request["S3BucketSource"],
        "InputFormat": record.request["InputFormat"],
        "StartTime": rounded(record.started_at),
    }
    return summary | ({} if record.ended_at is None else {"EndTime": rounded(record.ended_at)})


def _description(service: Service, record: Import) -> dict[str, Any]:
    described = {
        **_summary(service, record),
        **{name: record.request[name] for name in SHOWN if name in record.request},
        "TableId": record.table_id,
        "ErrorCount": record.errors,
        "ProcessedItemCount": record.processed_items,
        "ProcessedSizeBytes": record.processed_bytes,
        "ImportedItemCount": record.imported_items,
    }
    if record.status == FAILED:
        described["FailureCode"] = record.failure_code
        described["FailureMessage"] = record.failure_message
    return described
