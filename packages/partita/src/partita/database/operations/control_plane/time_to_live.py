"""UpdateTimeToLive and DescribeTimeToLive."""

from __future__ import annotations

from msgspec.structs import replace

from partita.database.operations.operation_context import (
    ReadContext,
    Request,
    WriteContext,
    table_name,
)
from partita.database.operations.response_members import encode
from partita.database.tables import table_layout
from partita.errors import ValidationException


def update_time_to_live(context: WriteContext, request: Request) -> bytes:
    catalog = context.service.catalog
    specification = request["TimeToLiveSpecification"]
    attribute = specification["AttributeName"]
    if not attribute:
        raise ValidationException("TimeToLiveSpecification.AttributeName must be non empty")
    table = catalog.described(table_name(request["TableName"]))
    if specification["Enabled"]:
        if table.ttl_attribute == attribute:
            raise ValidationException("TimeToLive is already enabled")
    elif table.ttl_attribute is None:
        raise ValidationException("TimeToLive is already disabled")
    if table.ttl_attribute not in (None, attribute):
        raise ValidationException(
            "TimeToLive is active on a different AttributeName: current AttributeName is "
            f"{table.ttl_attribute}"
        )
    enabled = attribute if specification["Enabled"] else None
    if enabled is None:
        context.write_batch.put(table_layout.leftover_key(table_layout.expiries_prefix(table)), b"")
    changed = replace(
        table,
        ttl_attribute=enabled,
        ttl_is_indexed=False,
        ttl_changes=table.ttl_changes + 1,
    )
    catalog.save(context.write_batch, changed)
    return encode({"TimeToLiveSpecification": specification})


def describe_time_to_live(context: ReadContext, request: Request) -> bytes:
    table = context.service.catalog.described(table_name(request["TableName"]))
    description = {"TimeToLiveStatus": "DISABLED"}
    if table.ttl_attribute is not None:
        description = {"TimeToLiveStatus": "ENABLED", "AttributeName": table.ttl_attribute}
    return encode({"TimeToLiveDescription": description})
