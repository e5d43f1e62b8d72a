"""What the operations of recovery share: ids, ARNs, and the tables that they name."""

from __future__ import annotations

from typing import Any, TypeVar

from partita.database.operations.context import Request, Service, table_name
from partita.database.recovery.records import Bulk, Export, Import
from partita.database.recovery.tasks import Workplace
from partita.database.tables.schema import CREATING, DELETING, Table
from partita.errors import INVALID, DynamoDBError, TableNotFoundException, ValidationException
from partita.limits import IMPORT_TOKEN_SECONDS, LIST_JOBS_PAGE_MAX

TOKEN_CHARS = 112
"""The service's tokens of imports are as long (model)."""


def workplace(service: Service) -> Workplace:
    assert service.recovery is not None, "only the process of the engine has an archive"
    return service.recovery


def new_id(service: Service) -> str:
    """Milliseconds, then chance: in the order of time, as the service's ids are."""
    return f"{int(service.clock() * 1000):014d}-{service.new_id()[:8]}"


def resource_arn(service: Service, table: str, kind: str, resource_id: str) -> str:
    return f"{service.table_arn(table)}/{kind}/{resource_id}"


def id_in_arn(arn: str, kind: str) -> str:
    """The id of a backup, an export or an import; an empty one if the ARN is none of that kind."""
    return arn.partition(f"/{kind}/")[2]


def existing_table(service: Service, name_or_arn: str) -> Table:
    """A table whose data can be read; tables have another error here than elsewhere."""
    name = table_name(name_or_arn)
    table = service.catalog.find(name)
    if table is None or table.status(service.clock()) in (CREATING, DELETING):
        raise TableNotFoundException(f"Table not found: {name}")
    return table


Asked = TypeVar("Asked", Bulk, Export, Import)


def repeated(
    service: Service, records: list[Asked], request: Request, conflict: DynamoDBError
) -> Asked | None:
    """What an earlier request with the same client token has started."""
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
    records: list[Asked], limit: int | None, token: str | None
) -> tuple[list[Asked], dict[str, str]]:
    """A page, the newest first, and the token of the next."""
    ordered = sorted(records, key=lambda record: record.id, reverse=True)
    if token is not None:
        ordered = [record for record in ordered if record.id < _id_in_token(token)]
    limit = limit or LIST_JOBS_PAGE_MAX
    if len(ordered) <= limit:
        return ordered, {}
    last = ordered[limit - 1].id
    return ordered[:limit], {"NextToken": last.encode().hex().ljust(TOKEN_CHARS, "0")}


def _id_in_token(token: str) -> str:
    try:
        return bytes.fromhex(token).rstrip(b"\0").decode()
    except ValueError:
        raise ValidationException("Invalid NextToken") from None


def check_bucket(service: Service, request: dict[str, Any], bucket: str) -> None:
    """What cannot be honoured is refused: a folder has one owner, and encrypts nothing."""
    owner = request.get("S3BucketOwner", service.account_id)
    if owner != service.account_id:
        raise ValidationException(
            f"{INVALID}S3BucketOwner must be {service.account_id}, the account of this server"
        )
    if "S3SseKmsKeyId" in request and request.get("S3SseAlgorithm") != "KMS":
        raise ValidationException(f"{INVALID}S3SseKmsKeyId requires S3SseAlgorithm KMS")
    if "S3SseAlgorithm" in request and workplace(service).buckets.is_folder(bucket):
        raise ValidationException(
            f"{INVALID}S3SseAlgorithm is not supported for {bucket}, which is a folder"
        )
