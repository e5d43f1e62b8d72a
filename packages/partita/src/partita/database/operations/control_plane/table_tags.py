"""TagResource, UntagResource, ListTagsOfResource: the operations on the tags of tables."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.response_members import encode
from partita.database.tables.definition.table_schema import Table
from partita.errors import (
    INVALID,
    AccessDeniedException,
    ResourceNotFoundException,
    ValidationException,
)
from partita.foundation.service_limits import (
    TAG_KEY_CHARS_MAX,
    TAG_VALUE_CHARS_MAX,
    TAGS_PER_RESOURCE_MAX,
)

NO_BODY = b""
TAG_SIGNS = "_.:/=+-@"


def tag_resource(context: WriteContext, request: Request) -> bytes:
    arn = request["ResourceArn"]
    name = _table_name(context.service, "TagResource", arn)
    if not request["Tags"]:
        raise ValidationException("Atleast one Tag needs to be provided as Input.")
    tags = check_tags(request["Tags"])
    table = _table(context.service, name, _not_found(arn))
    tagged = replace(table, tags=check_tag_count(table.tags | tags))
    context.service.catalog.save(context.write_batch, tagged)
    return NO_BODY


def untag_resource(context: WriteContext, request: Request) -> bytes:
    name = _table_name(context.service, "UntagResource", request["ResourceArn"])
    if not request["TagKeys"]:
        raise ValidationException("Atleast one Tag Key needs to be provided as Input.")
    table = _table(context.service, name, "Requested resource not found")
    kept = {key: value for key, value in table.tags.items() if key not in request["TagKeys"]}
    context.service.catalog.save(context.write_batch, replace(table, tags=kept))
    return NO_BODY


def list_tags_of_resource(context: ReadContext, request: Request) -> bytes:
    arn = request["ResourceArn"]
    name = _table_name(context.service, "ListTagsOfResource", arn)
    table = _table(context.service, name, _not_found(arn))
    return encode({"Tags": [{"Key": key, "Value": value} for key, value in table.tags.items()]})


def _table(service: DatabaseService, name: str, not_found: str) -> Table:
    table = service.catalog.find(name)
    if table is None:
        raise ResourceNotFoundException(not_found)
    return table


def _not_found(arn: str) -> str:
    # "ResourcArn" is the service's own spelling (recorded).
    return f"Requested resource not found: ResourcArn: {arn} not found"


def _table_name(service: DatabaseService, operation: str, arn: str) -> str:
    """Returns the table in an ARN; access to tables of other accounts is denied."""
    if not arn.startswith("arn:"):
        raise ValidationException(f"{INVALID}ARNs must start with 'arn:': {arn}")
    parts = arn.split(":", 5)
    if len(parts) < 6 or parts[2] != "dynamodb":
        raise ValidationException(f"{INVALID}Provided Arn is not a DynamoDB resource arn: {arn}")
    kind, _, name = parts[5].partition("/")
    if kind != "table" or not name or "/" in name:
        raise ValidationException(
            f"{INVALID}Invalid resource arn provided, only table or stream is accepted. "
            f"Provided resource arn: {arn}"
        )
    if parts[4] != service.account_id:
        raise AccessDeniedException(
            f"User: arn:aws:iam::{service.account_id}:root is not authorized to perform: "
            f"dynamodb:{operation} on resource: {arn}"
        )
    if parts[3] != service.region:
        raise ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    return name


def check_tags(tags: Iterable[dict[str, str]]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for tag in tags:
        key, value = tag.get("Key"), tag.get("Value")
        if not key or len(key) > TAG_KEY_CHARS_MAX or not _is_taggable(key):
            raise ValidationException(f"The Tag Key provided is invalid, Key: {_or_null(key)}")
        if value is None or len(value) > TAG_VALUE_CHARS_MAX or not _is_taggable(value):
            raise ValidationException(
                f"The Tag Value provided is invalid, Value: {_or_null(value)}"
            )
        if key.lower().startswith("aws:"):
            raise ValidationException(f"Tag Key cannot be prefixed with aws:, Key: {key}")
        if key in checked:
            raise ValidationException(
                f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}"
            )
        checked[key] = value
    return check_tag_count(checked)


def _is_taggable(text: str) -> bool:
    """True for letters and digits of any script, spaces, and the symbols that tags may have."""
    return all(char.isalnum() or char.isspace() or char in TAG_SIGNS for char in text)


def _or_null(text: str | None) -> str:
    return "null" if text is None else text


def check_tag_count(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > TAGS_PER_RESOURCE_MAX:
        raise ValidationException(
            "Number of Tags exceed the current limit for the provided ResourceArn"
        )
    return tags
