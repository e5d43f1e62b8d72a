"""ExportTableToPointInTime, DescribeExport, ListExports."""

from __future__ import annotations

from typing import Any

from partita.database.operations.answers import encode
from partita.database.operations.context import ReadContext, Request, Service, WriteContext
from partita.database.operations.control_plane.descriptions import rounded
from partita.database.operations.data_plane.expression_parameters import Family, read_expressions
from partita.database.operations.recovery.continuous import restorable
from partita.database.operations.recovery.resources import (
    check_bucket,
    existing_table,
    id_in_arn,
    new_id,
    page_of,
    repeated,
    resource_arn,
    workplace,
)
from partita.database.recovery.exporting import DYNAMODB_JSON, FULL, INCREMENTAL
from partita.database.recovery.filtering import Selection
from partita.database.recovery.records import COMPLETED, FAILED, Export
from partita.database.storage.recovery_log import MICROSECONDS
from partita.database.tables.schema import DAY, Table
from partita.errors import (
    INVALID,
    ExportConflictException,
    ExportNotFoundException,
    InvalidExportTimeException,
    PointInTimeRecoveryUnavailableException,
    ValidationException,
)

EXPORT = "export"
OUTSIDE = "The export time is outside of the point in time recovery window"
SHOWN = (
    *("ClientToken", "S3Bucket", "S3BucketOwner", "S3Prefix", "S3SseAlgorithm", "S3SseKmsKeyId"),
    "FilterSpecification",
)
FILTER = Family(
    (),
    ("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
    ("FilterExpression", "KeyConditionExpression"),
)


def export_table_to_point_in_time(context: WriteContext, request: Request) -> bytes:
    service = context.service
    records = workplace(service).records
    again = repeated(
        service, records.of(Export), request, ExportConflictException("The client token was used")
    )
    if again is None:
        table = existing_table(service, request["TableArn"])
        _check(service, table, request)
        again = _new_export(service, table, request)
        records.save(context.write_batch, again)
    return encode({"ExportDescription": _description(service, again)})


def describe_export(context: ReadContext, request: Request) -> bytes:
    service, arn = context.service, request["ExportArn"]
    export = workplace(service).records.find(Export, id_in_arn(arn, EXPORT))
    if export is None or _arn(service, export) != arn:
        raise ExportNotFoundException(f"Export not found: {arn}")
    return encode({"ExportDescription": _description(service, export)})


def list_exports(context: ReadContext, request: Request) -> bytes:
    service = context.service
    exports = workplace(service).records.of(Export)
    if "TableArn" in request:
        exports = [one for one in exports if _table_arn(service, one) == request["TableArn"]]
    shown, token = page_of(exports, request.get("MaxResults"), request.get("NextToken"))
    summaries = [
        {
            "ExportArn": _arn(service, export),
            "ExportStatus": export.status,
            "ExportType": export.request.get("ExportType", FULL),
        }
        for export in shown
    ]
    return encode({"ExportSummaries": summaries, **token})


def _check(service: Service, table: Table, request: Request) -> None:
    if table.recovery is None:
        raise PointInTimeRecoveryUnavailableException(
            f"Point in time recovery is not enabled for table '{table.name}'"
        )
    if "FilterSpecification" in request:
        _check_filter(request["FilterSpecification"], table)
    check_bucket(service, request, request["S3Bucket"])
    is_incremental = request.get("ExportType", FULL) == INCREMENTAL
    if is_incremental != ("IncrementalExportSpecification" in request):
        raise ValidationException(
            f"{INVALID}IncrementalExportSpecification must be specified for INCREMENTAL_EXPORT, "
            "and only for it"
        )
    if is_incremental and "ExportTime" in request:
        raise ValidationException(
            f"{INVALID}ExportTime can not be specified for INCREMENTAL_EXPORT"
        )


def _check_filter(specification: dict[str, Any], table: Table) -> None:
    if not any(name in specification for name in FILTER.expressions):
        names = ", ".join(FILTER.expressions)
        raise ValidationException(f"{INVALID}FilterSpecification must have one of {names}")
    read_expressions(specification, FILTER)
    Selection(specification, table)


def _new_export(service: Service, table: Table, request: Request) -> Export:
    moments = restorable(service, table)
    if moments is None:
        raise InvalidExportTimeException(OUTSIDE)
    earliest, latest = moments
    since = 0
    if "IncrementalExportSpecification" in request:
        asked = request["IncrementalExportSpecification"]
        if "ExportFromTime" not in asked:
            raise ValidationException(f"{INVALID}ExportFromTime must be specified")
        # From a moment on, and up to just before another.
        since = round(asked["ExportFromTime"] * MICROSECONDS) - 1
        until = latest
        if "ExportToTime" in asked:
            until = round(asked["ExportToTime"] * MICROSECONDS) - 1
        if since >= until or until - since > DAY * MICROSECONDS:
            raise ValidationException(
                f"{INVALID}ExportToTime must be after ExportFromTime, by 24 hours at most"
            )
        is_inside = earliest <= since and until <= latest
    else:
        asked_time = request.get("ExportTime")
        until = latest if asked_time is None else round(asked_time * MICROSECONDS)
        is_inside = earliest <= until <= latest
    if not is_inside:
        raise InvalidExportTimeException(OUTSIDE)
    return Export(
        id=new_id(service),
        table=table,
        request=request,
        started_at=service.clock(),
        exported_at=until / MICROSECONDS,
        until=until,
        since=since,
    )


def _arn(service: Service, export: Export) -> str:
    return resource_arn(service, export.table.name, EXPORT, export.id)


def _table_arn(service: Service, export: Export) -> str:
    return service.table_arn(export.table.name)


def _description(service: Service, export: Export) -> dict[str, Any]:
    request = export.request
    kind = request.get("ExportType", FULL)
    described: dict[str, Any] = {
        "ExportArn": _arn(service, export),
        "ExportStatus": export.status,
        "StartTime": rounded(export.started_at),
        "TableArn": _table_arn(service, export),
        "TableId": export.table.table_id,
        "ExportFormat": request.get("ExportFormat", DYNAMODB_JSON),
        "ExportType": kind,
        **{name: request[name] for name in SHOWN if name in request},
    }
    if kind == FULL:
        described["ExportTime"] = rounded(export.exported_at)
    else:
        described["IncrementalExportSpecification"] = {
            "ExportFromTime": rounded((export.since + 1) / MICROSECONDS),
            "ExportToTime": rounded((export.until + 1) / MICROSECONDS),
            "ExportViewType": "NEW_AND_OLD_IMAGES",
            **{
                name: value
                for name, value in request["IncrementalExportSpecification"].items()
                if name == "ExportViewType"
            },
        }
    if export.ended_at is not None:
        described["EndTime"] = rounded(export.ended_at)
    if export.status == COMPLETED:
        prefix = request.get("S3Prefix", "").strip("/")
        folder = f"{prefix}/AWSDynamoDB" if prefix else "AWSDynamoDB"
        described["ExportManifest"] = f"{folder}/{export.id}/manifest-summary.json"
        described["BilledSizeBytes"] = export.billed_bytes
        described["ItemCount"] = export.item_count
    if export.status == FAILED:
        described["FailureCode"] = export.failure_code
        described["FailureMessage"] = export.failure_message
    return described
