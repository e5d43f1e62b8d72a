"""Shared parts of the operations of recovery: ids, ARNs, tables, client tokens and pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from partita.database.operations.control_plane.tables.table_descriptions import rounded
from partita.database.operations.operation_context import DatabaseService, Request, table_name
from partita.database.recovery.recovery_context import RecoveryContext
from partita.database.recovery.recovery_records import (
    BackupRecord,
    BulkPutRecord,
    ExportRecord,
    ImportRecord,
    kind_of,
)
from partita.database.tables.definition.table_schema import CREATING, DELETING, Table
from partita.errors import (
    INVALID,
    INVALID_REQUEST,
    AccessDeniedException,
    DynamoDBError,
    TableNotFoundException,
    ValidationException,
)
from partita.foundation.service_limits import IMPORT_TOKEN_SECONDS, LIST_JOBS_PAGE, LISTED_SECONDS

TOKEN_CHARS: Final = 112
"""The length of the service's NextToken of ListImports (model)."""
CONFLICT: Final = "conflict: Duplicate request detected with conflicting parameters"

_ARN: Final = re.compile(
    r"arn:aws[\w-]*:dynamodb:[\w-]*:(?P<account>\d*):table/[^/:]+/(?P<kind>\w+)/[^/:]+"
)

Named = TypeVar("Named", BackupRecord, BulkPutRecord, ExportRecord, ImportRecord)
Requested = TypeVar("Requested", BulkPutRecord, ExportRecord, ImportRecord)
Job = TypeVar("Job", ExportRecord, ImportRecord)


def recovery_context(service: DatabaseService) -> RecoveryContext:
    """Returns the recovery context, which only the process with the storage engine has."""
    assert service.recovery is not None, "only the process of the engine has an archive"
    return service.recovery


def new_id(service: DatabaseService, end: str | None = None) -> str:
    """Returns an id of milliseconds and random characters; like the service's, ids are in the order
    of time."""
    return f"{int(service.clock() * 1000):014d}-{end or service.new_id()[:8]}"


def find_record(service: DatabaseService, kind: type[Named], arn: str) -> Named | None:
    """Returns the record with an ARN, or None."""
    recovery = recovery_context(service)
    record = recovery.records.find(kind, arn.rpartition("/")[2])
    return record if record is not None and recovery.arn(record) == arn else None


def check_arn(service: DatabaseService, kind: type[Named], arn: str) -> None:
    """Refuse an ARN of another kind or account, with recorded texts."""
    word = kind_of(kind)
    match = _ARN.fullmatch(arn)
    if match is None or match["kind"] != word:
        raise ValidationException(f"Invalid {word.capitalize()} ARN")
    if match["account"] != service.account_id:
        raise AccessDeniedException("Access is denied")


def existing_table(
    service: DatabaseService, name_or_arn: str, but: Sequence[str] = (CREATING, DELETING)
) -> Table:
    """Returns a table that is in none of the statuses `but`.

    Operations of recovery raise another error for missing tables than all others.
    """
    name = table_name(name_or_arn)
    table = service.catalog.find(name)
    if table is None or table.status(service.clock()) in but:
        raise TableNotFoundException(f"Table not found: {name}")
    return table


def repeated(
    service: DatabaseService, records: list[Requested], request: Request, conflict: DynamoDBError
) -> Requested | None:
    """Returns the record of an earlier request with the same client token, or None.

    Raises `conflict` if that request had other parameters.
    """
    token = request.get("ClientToken")
    since = service.clock() - IMPORT_TOKEN_SECONDS
    for record in records:
        if token is not None and record.request.get("ClientToken") == token:
            if record.started_at < since:
                continue
            if record.request != request:
                raise conflict
            return record
    return None


def page_of(
    records: list[Requested], limit: int, token: str | None
) -> tuple[list[Requested], dict[str, str]]:
    """Returns a page of records, newest first, and the NextToken member if there are more."""
    ordered = sorted(records, key=lambda record: record.id, reverse=True)
    if token is not None:
        start = _id_in_token(token)
        ordered = [record for record in ordered if record.id < start]
    if len(ordered) <= limit:
        return ordered, {}
    last = ordered[limit - 1].id
    return ordered[:limit], {"NextToken": last.encode().hex().ljust(TOKEN_CHARS, "0")}


def jobs_page(
    service: DatabaseService, kind: type[Job], request: Request, limit: str
) -> tuple[list[Job], dict[str, str]]:
    """Returns a page of recent exports or imports, only of one table if the request has its ARN."""
    since = service.clock() - LISTED_SECONDS
    jobs = [job for job in recovery_context(service).records.of(kind) if job.started_at >= since]
    if "TableArn" in request:
        jobs = [job for job in jobs if service.table_arn(job.table_name) == request["TableArn"]]
    return page_of(jobs, request.get(limit, LIST_JOBS_PAGE), request.get("NextToken"))


def ending(record: Requested) -> dict[str, Any]:
    """Returns the members that describe when and how an operation ended, if it has."""
    ended: dict[str, Any] = {}
    if record.ended_at is not None:
        ended["EndTime"] = rounded(record.ended_at)
    if record.failure_code is not None:
        ended["FailureCode"] = record.failure_code
        ended["FailureMessage"] = record.failure_message
    return ended


def _id_in_token(token: str) -> str:
    try:
        return bytes.fromhex(token).rstrip(b"\0").decode()
    except ValueError:
        raise ValidationException(
            f"{INVALID_REQUEST}Provided nextToken is invalid: {token}"
        ) from None


def check_bucket(service: DatabaseService, request: dict[str, Any], bucket: str) -> None:
    """Refuse settings that a bucket does not support.

    A bucket can be a local folder, which belongs to this server's account and is not encrypted.
    """
    owner = request.get("S3BucketOwner", service.account_id)
    if owner != service.account_id:
        raise ValidationException(
            f"{INVALID}S3BucketOwner must be {service.account_id}, the account of this server"
        )
    if "S3SseKmsKeyId" in request and request.get("S3SseAlgorithm") != "KMS":
        raise ValidationException(
            f"{INVALID_REQUEST}KMS Key Id is not supported for this encryption type"
        )
    if "S3SseAlgorithm" in request and recovery_context(service).buckets.is_folder(bucket):
        raise ValidationException(
            f"{INVALID}S3SseAlgorithm is not supported for {bucket}, which is a folder"
        )
