"""ExportTableToPointInTime, DescribeExport, ListExports: exports of tables to files."""

from __future__ import annotations

import re
from typing import Any

from partita.database.operations.control_plane.tables.table_descriptions import rounded
from partita.database.operations.data_plane.expression_parameters import (
    ParameterFamily,
    read_expressions,
)
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.recovery.point_in_time_recovery import iso_second, restorable
from partita.database.operations.recovery.recovery_resources import (
    CONFLICT,
    check_arn,
    check_bucket,
    ending,
    existing_table,
    find_record,
    jobs_page,
    new_id,
    recovery_context,
    repeated,
)
from partita.database.operations.response_members import encode
from partita.database.recovery.recovery_records import COMPLETED, ExportRecord
from partita.database.recovery.s3.export_filter import ExportFilter
from partita.database.recovery.s3.s3_export import DYNAMODB_JSON, FULL, INCREMENTAL
from partita.database.storage.recovery_log import MICROSECONDS
from partita.database.tables.definition.table_schema import DAY, Table
from partita.errors import (
    INVALID,
    INVALID_REQUEST,
    AccessDeniedException,
    ExportConflictException,
    ExportNotFoundException,
    InvalidExportTimeException,
    PointInTimeRecoveryUnavailableException,
    TableNotFoundException,
    ValidationException,
)

PERIOD = "Incremental export period"
LENGTH = "Difference between export period from time and export period to time is"
SHOWN = (
    *("ClientToken", "S3Bucket", "S3BucketOwner", "S3Prefix", "S3SseAlgorithm", "S3SseKmsKeyId"),
    "FilterSpecification",
)
_TABLE_ARN = re.compile(r"arn:aws[\w-]*:dynamodb:[\w-]*:(?P<account>\d*):table/[^/:]+")
FILTER = ParameterFamily(
    (),
    ("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
    ("FilterExpression", "KeyConditionExpression"),
)


def export_table_to_point_in_time(context: WriteContext, request: Request) -> bytes:
    service = context.service
    records = recovery_context(service).records
    conflict = ExportConflictException(f"Export {CONFLICT}")
    record = repeated(service, records.of(ExportRecord), request, conflict)
    if record is None:
        table = _table(service, request["TableArn"])
        _check(service, table, request)
        record = _new_export(service, table, request)
        records.save(context.write_batch, record)
    return encode({"ExportDescription": _description(service, record)})


def describe_export(context: ReadContext, request: Request) -> bytes:
    service, arn = context.service, request["ExportArn"]
    check_arn(service, ExportRecord, arn)
    export = find_record(service, ExportRecord, arn)
    if export is None:
        # The service says it twice (recorded).
        raise ExportNotFoundException(f"Export not found: Export not found: {arn}")
    return encode({"ExportDescription": _description(service, export)})


def list_exports(context: ReadContext, request: Request) -> bytes:
    service = context.service
    shown, token = jobs_page(service, ExportRecord, request, "MaxResults")
    summaries = [
        {
            "ExportArn": recovery_context(service).arn(export),
            "ExportStatus": export.status,
            "ExportType": export.request.get("ExportType", FULL),
        }
        for export in shown
    ]
    return encode({"ExportSummaries": summaries, **token})


def _table(service: DatabaseService, arn: str) -> Table:
    """Returns the table in an ARN; the errors are recorded ones."""
    match = _TABLE_ARN.fullmatch(arn)
    if match is None:
        is_arn = arn.startswith("arn:")
        raise ValidationException(
            f"{INVALID_REQUEST}Table ARN is invalid."
            if is_arn
            else f"{INVALID}tableArn is not a valid ARN"
        )
    if match["account"] != service.account_id:
        raise AccessDeniedException("Access is denied")
    try:
        return existing_table(service, arn)
    except TableNotFoundException:
        raise TableNotFoundException(f"Table not found: {arn}") from None


def _check(service: DatabaseService, table: Table, request: Request) -> None:
    if table.recovery is None:
        raise PointInTimeRecoveryUnavailableException(
            f"Point in time recovery is not enabled for table '{table.name}'"
        )
    if "FilterSpecification" in request:
        _check_filter(request["FilterSpecification"], table)
    check_bucket(service, request, request["S3Bucket"])
    problem = _type_problem(request)
    if problem is not None:
        raise ValidationException(INVALID_REQUEST + problem)


def _type_problem(request: Request) -> str | None:
    """Returns the error for members that do not fit the type of the export, or None."""
    kind, specification = request.get("ExportType"), request.get("IncrementalExportSpecification")
    if kind == INCREMENTAL:
        if specification is None:
            return (
                "Incremental Export Specification expected when export type is set as "
                "Incremental Export"
            )
        if "ExportFromTime" not in specification:
            return "ExportFromTime must be provided in IncrementalExportSpecification"
        if "ExportTime" in request:
            return "ExportTime cannot be provided when export type is set as Incremental Export"
    elif specification is not None and kind is None:
        return (
            "Export Type expected to be Incremental Export when incremental export specification "
            "is provided"
        )
    elif specification is not None:
        return (
            "When Export Type is Full Export , Incremental Export Specification should not be "
            "provided"
        )
    return None


def _check_filter(specification: dict[str, Any], table: Table) -> None:
    if not any(name in specification for name in FILTER.expressions):
        raise ValidationException(
            f"{INVALID_REQUEST}Invalid FilterSpecification: The specification can not be empty"
        )
    read_expressions(specification, FILTER)
    ExportFilter(specification, table)


def _new_export(service: DatabaseService, table: Table, request: Request) -> ExportRecord:
    moments = restorable(service, table)
    if moments is None:
        raise InvalidExportTimeException(
            "Point in Time Recovery is not available for specified export time"
        )
    earliest, latest = moments
    since = 0
    if "IncrementalExportSpecification" in request:
        since, until = _period(request["IncrementalExportSpecification"], earliest, latest)
    else:
        export_time = request.get("ExportTime")
        until = latest if export_time is None else round(export_time * MICROSECONDS)
        if not earliest <= until <= latest:
            raise InvalidExportTimeException("Export Time is invalid")
    return ExportRecord(
        id=new_id(service),
        table=table,
        request=request,
        started_at=service.clock(),
        exported_at=until / MICROSECONDS,
        until=until,
        since=since,
    )


def _period(specification: dict[str, Any], earliest: int, latest: int) -> tuple[int, int]:
    """Returns the commits before and at the end of the period of an incremental export.

    The period includes its from time and excludes its to time.
    """
    since = round(specification["ExportFromTime"] * MICROSECONDS) - 1
    until = latest
    if "ExportToTime" in specification:
        until = round(specification["ExportToTime"] * MICROSECONDS) - 1
    problem = None
    if since < earliest:
        problem = (
            f"{PERIOD} from time cannot be less than the table creation time : {_second(since)}"
        )
    elif until > latest:
        problem = f"{PERIOD} to time cannot be greater than the current time : {_second(until)}"
    elif since >= until:
        problem = f"{PERIOD} from time cannot be greater than the to time : {_second(since)}"
    elif until - since > DAY * MICROSECONDS:
        problem = f"{LENGTH} more than 24 hours"
    if problem is not None:
        raise InvalidExportTimeException(problem)
    return since, until


def _second(stamp: int) -> str:
    return iso_second((stamp + 1) / MICROSECONDS)


def _description(service: DatabaseService, export: ExportRecord) -> dict[str, Any]:
    request = export.request
    kind = request.get("ExportType", FULL)
    described: dict[str, Any] = {
        "ExportArn": recovery_context(service).arn(export),
        "ExportStatus": export.status,
        "StartTime": rounded(export.started_at),
        "TableArn": service.table_arn(export.table_name),
        "TableId": export.table.table_id,
        "ExportFormat": request.get("ExportFormat", DYNAMODB_JSON),
        "ExportType": kind,
        **{name: request[name] for name in SHOWN if name in request},
        **ending(export),
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
    if export.status == COMPLETED:
        prefix = request.get("S3Prefix", "").strip("/")
        folder = f"{prefix}/AWSDynamoDB" if prefix else "AWSDynamoDB"
        described["ExportManifest"] = f"{folder}/{export.id}/manifest-summary.json"
        described["BilledSizeBytes"] = export.billed_bytes
        described["ItemCount"] = export.item_count
    return described
