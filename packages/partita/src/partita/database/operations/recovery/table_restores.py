"""RestoreTableFromBackup, RestoreTableToPointInTime: new tables with data from the archive.

Keys, indexes, capacity and encryption are taken from the source table. Streams, time to live, tags,
policies, auto scaling, the table class, deletion protection and point-in-time recovery are not
(guide, "Restoring a table").
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from partita.database.operations.control_plane.server_side_encryption import (
    check_sse,
    sse_description,
)
from partita.database.operations.control_plane.tables import table_definitions
from partita.database.operations.control_plane.tables.table_descriptions import (
    description_of,
    key_schema,
    projection_of,
)
from partita.database.operations.operation_context import DatabaseService, Request, WriteContext
from partita.database.operations.recovery.point_in_time_recovery import iso_second, restorable
from partita.database.operations.recovery.recovery_resources import existing_table
from partita.database.operations.recovery.table_backups import find_backup, refuse_unfinished
from partita.database.operations.response_members import encode
from partita.database.storage.recovery_log import MICROSECONDS
from partita.database.tables.definition.table_catalog import next_table_number
from partita.database.tables.definition.table_schema import (
    ACTIVE,
    CREATING,
    DELETING,
    NOT_BEFORE_LOADED,
    PAY_PER_REQUEST,
    PROVISIONED,
    Index,
    ProvisionedThroughput,
    RestoreOrigin,
    Table,
)
from partita.database.tables.definition.table_throughput import warm_throughput
from partita.errors import (
    INVALID,
    INVALID_REQUEST,
    InvalidRestoreTimeException,
    LimitExceededException,
    PointInTimeRecoveryUnavailableException,
    TableAlreadyExistsException,
    TableInUseException,
    ValidationException,
)
from partita.foundation.service_limits import RESTORES_MAX

NO_MAXIMUM = -1


def restore_table_from_backup(context: WriteContext, request: Request) -> bytes:
    service = context.service
    arn = request["BackupArn"]
    backup = find_backup(service, arn)
    _check_target(service, request["TargetTableName"])
    refuse_unfinished(service, backup, arn, "another table")
    origin = RestoreOrigin(
        table_arn=service.table_arn(backup.table.name),
        table_id=backup.table.table_id,
        restored_to=backup.created_at,
        backup_arn=arn,
        manifest=backup.manifest,
    )
    return _begin(context, backup.table, request, origin)


def restore_table_to_point_in_time(context: WriteContext, request: Request) -> bytes:
    """Restore a table to a point in time; the checks are in the service's order (recorded)."""
    service = context.service
    name = _source_name(service, request)
    _check_time(request)
    source = existing_table(service, name)
    if source.recovery is None:
        raise PointInTimeRecoveryUnavailableException(
            f"Point in time recovery is not enabled for table '{source.name}'"
        )
    stamp = _moment(service, source, request)
    _check_target(service, request["TargetTableName"])
    origin = RestoreOrigin(
        table_arn=service.table_arn(source.name),
        table_id=source.table_id,
        restored_to=stamp / MICROSECONDS if stamp else service.clock(),
        stamp=stamp,
    )
    return _begin(context, source, request, origin)


def _source_name(service: DatabaseService, request: Request) -> str:
    names = [request[name] for name in ("SourceTableName", "SourceTableArn") if name in request]
    if not names:
        raise ValidationException(
            "The parameter 'TableName' is required but was not present in the request"
        )
    if len(names) > 1:
        raise ValidationException(
            f"{INVALID}Must provide exactly one of: sourceTableArn, sourceTableName"
        )
    arn = request.get("SourceTableArn")
    if arn is not None and ":table/" not in arn:
        raise ValidationException(f"{INVALID}sourceTableArn is not a valid ARN")
    if arn is not None and f":{service.account_id}:" not in arn:
        raise ValidationException(
            "This action is only supported by accounts that match the resource owner\u2019s "
            "account."
        )
    return str(names[0])


def _check_time(request: Request) -> None:
    is_latest = request.get("UseLatestRestorableTime", False)
    if is_latest and "RestoreDateTime" in request:
        raise ValidationException(
            f"{INVALID_REQUEST}Both RestoreDateTime and UseLatestRestorableTime cannot be set for "
            "point-in-time restore request. Please specify either RestoreDateTime time or "
            "UseLatestRestorableTime"
        )
    if not is_latest and "RestoreDateTime" not in request:
        raise ValidationException(
            f"{INVALID_REQUEST}Either one of RestoreDateTime or UseLatestRestorableTime must be "
            "specified, but not both"
        )


def _moment(service: DatabaseService, source: Table, request: Request) -> int:
    """Returns the commit to restore to.

    It is 0 for the latest commit while there is no base yet: a background job then chooses it.
    """
    moments = restorable(service, source)
    if "RestoreDateTime" not in request:
        return moments[1] if moments else 0
    stamp = round(float(request["RestoreDateTime"]) * MICROSECONDS)
    if moments is None:
        raise InvalidRestoreTimeException(
            f"The table {source.name} cannot be restored yet: recovery was just enabled"
        )
    if not moments[0] <= stamp <= moments[1]:
        time, earliest, latest = (iso_second(moment / MICROSECONDS) for moment in (stamp, *moments))
        raise InvalidRestoreTimeException(
            f"RestoreDateTime '{time}' must be within EarliestRestorableDateTime '{earliest}' "
            f"and LatestRestorableDateTime '{latest}'"
        )
    return stamp


def _check_target(service: DatabaseService, name: str) -> None:
    table = service.catalog.find(name)
    if table is not None:
        if table.origin is not None and table.origin.is_in_progress:
            source = table.origin.backup_arn
            suffix = f" from backup: {source}" if source else ""
            raise TableInUseException(f"Table: {name} is already being restored{suffix}")
        if table.status(service.clock()) == CREATING:
            raise TableInUseException(f"Table is being created: {name}")
        raise TableAlreadyExistsException(f"Table already exists: {name}")
    restoring = [
        restored
        for restored in service.catalog
        if restored.origin and restored.origin.is_in_progress
    ]
    if len(restoring) >= RESTORES_MAX:
        raise LimitExceededException(
            f"Subscriber limit exceeded: Only {RESTORES_MAX} restore operations can be done "
            "simultaneously"
        )


def _begin(context: WriteContext, source: Table, request: Request, origin: RestoreOrigin) -> bytes:
    table = _restored_table(context.service, source, request, origin)
    table = replace(table, number=next_table_number(context.write_batch))
    context.service.catalog.save(context.write_batch, table)
    described = description_of(context.service, context.write_batch, table, CREATING)
    return encode({"TableDescription": described})


def _restored_table(
    service: DatabaseService, source: Table, request: Request, origin: RestoreOrigin
) -> Table:
    mode = request.get("BillingModeOverride", source.billing_mode)
    units = request.get("ProvisionedThroughputOverride")
    on_demand = request.get("OnDemandThroughputOverride")
    _check_capacity(request, mode, source)
    if "VectorIndexOverride" in request:
        raise ValidationException(f"{INVALID}VectorIndexOverride is not supported")
    sse = request.get("SSESpecificationOverride")
    check_sse(service, sse)
    indexes = [
        *_indexes(source.local_indexes, request.get("LocalSecondaryIndexOverride"), mode),
        *_indexes(source.global_indexes, request.get("GlobalSecondaryIndexOverride"), mode),
    ]
    if len({index.name for index in indexes}) < len(indexes):
        raise ValidationException(f"{INVALID}Duplicate index name in the override")
    numbered = [replace(index, number=number) for number, index in enumerate(indexes, 1)]
    used = {name for index in indexes for name, _ in index.key_attributes} | {*source.key_names}
    now = service.clock()
    return Table(
        name=request["TargetTableName"],
        number=0,
        table_id=service.new_id(),
        created_at=now,
        attribute_types={
            name: kind for name, kind in source.attribute_types.items() if name in used
        },
        partition=source.partition,
        sort=source.sort,
        indexes=tuple(numbered),
        next_index_number=len(indexes) + 1,
        transition=CREATING,
        settles_at=NOT_BEFORE_LOADED,
        billing_mode=mode,
        on_demand_since=now if mode == PAY_PER_REQUEST else None,
        throughput=_units(mode, units, source.throughput),
        on_demand_throughput=_maximums(mode, on_demand, source.on_demand_throughput),
        sse=source.sse if sse is None else sse_description(service, sse),
        # Items keep their storage keys, which contain hashes made with this secret.
        key_secret=source.key_secret,
        origin=origin,
    )


def _check_capacity(request: Request, mode: str, source: Table) -> None:
    units = request.get("ProvisionedThroughputOverride")
    if mode == PAY_PER_REQUEST and units is not None:
        raise ValidationException(
            f"{INVALID_REQUEST}Cannot override ProvisionedThroughput "
            + (
                "if BillingMode is overridden to PAY_PER_REQUEST"
                if "BillingModeOverride" in request
                else "unless BillingMode is PROVISIONED"
            )
        )
    if mode == PROVISIONED and units is None and source.billing_mode != mode:
        raise ValidationException(
            f"{INVALID_REQUEST}Must override ProvisionedThroughput if BillingMode is overridden to "
            "PROVISIONED"
        )
    if units is not None:
        table_definitions.check_units(units)
    _check_maximums(request.get("OnDemandThroughputOverride"), mode)


def _check_maximums(override: dict[str, int] | None, mode: str, suffix: str = "") -> None:
    for name, units in (override or {}).items():
        if mode == PROVISIONED:
            raise ValidationException(
                f"{INVALID_REQUEST}Cannot override {name} for OnDemandThroughput unless "
                f"BillingModeOverride is PAY_PER_REQUEST{suffix}"
            )
        if units < 1 and units != NO_MAXIMUM:
            raise ValidationException(
                f"{INVALID_REQUEST}Requested {name} for OnDemandThroughput{suffix} is outside of "
                "valid range"
            )


def _units(
    mode: str, override: dict[str, int] | None, source: ProvisionedThroughput
) -> ProvisionedThroughput:
    if mode != PROVISIONED:
        return ProvisionedThroughput()
    if override is not None:
        return table_definitions.throughput(override)
    return ProvisionedThroughput(source.read_units, source.write_units)


def _maximums(
    mode: str, override: dict[str, int] | None, source: dict[str, int] | None
) -> dict[str, int] | None:
    if mode != PAY_PER_REQUEST:
        return None
    return source if override is None else override


def _indexes(source: list[Index], overrides: list[dict[str, Any]] | None, mode: str) -> list[Index]:
    """Returns the indexes of the source table, or only those in the overrides."""
    complete = [index for index in source if index.status not in (CREATING, DELETING)]
    if overrides is None:
        return [_fresh(index, mode, None) for index in complete]
    return [_fresh(_matching(complete, override), mode, override) for override in overrides]


def _matching(source: list[Index], override: dict[str, Any]) -> Index:
    """Returns the source's index with the same keys and projection.

    The override may rename it. Of several, the one with the same name is taken.
    """
    projection = _sorted({key: value for key, value in override["Projection"].items() if value})
    candidates = [
        index
        for index in source
        if override["KeySchema"] == key_schema(index.partition, index.sort)
        and projection == _sorted(projection_of(index))
    ]
    if not candidates:
        raise ValidationException(
            f"{INVALID_REQUEST}Index {override['IndexName']} does not match a secondary index that "
            "existed in the source table and cannot be created during the restore operation"
        )
    return next(
        (index for index in candidates if index.name == override["IndexName"]), candidates[0]
    )


def _sorted(projection: dict[str, Any]) -> dict[str, Any]:
    names = projection.get("NonKeyAttributes")
    return projection | ({"NonKeyAttributes": sorted(names)} if names else {})


def _fresh(index: Index, mode: str, override: dict[str, Any] | None) -> Index:
    """Returns a copy of an index without its history and its auto scaling policies."""
    is_overridden = override is not None and not index.is_local
    override = override or {}
    name = override.get("IndexName", index.name)
    units = override.get("ProvisionedThroughput") if is_overridden else None
    # An index of an on-demand table has no units that could be kept.
    has_units = units is not None or (not is_overridden and index.throughput.read_units > 0)
    if mode == PROVISIONED and not (index.is_local or has_units):
        raise ValidationException(
            f"{INVALID_REQUEST}Must specify provisioned throughput for index {name}"
        )
    if units is not None and mode == PAY_PER_REQUEST:
        raise ValidationException(
            f"{INVALID_REQUEST}Cannot override ProvisionedThroughput if BillingMode is overridden "
            f"to PAY_PER_REQUEST for index {name}"
        )
    if units is not None:
        table_definitions.check_units(units, f" for index {name}")
    maximums = override.get("OnDemandThroughput")
    _check_maximums(maximums, mode, f" for index {name}")
    throughput = _units(mode, units, index.throughput)
    warm = override.get("WarmThroughput")
    start = warm_throughput(mode, throughput, None)
    table_definitions.check_warm_throughput(warm, start, f"index {name}")
    return Index(
        name=name,
        number=index.number,
        is_local=index.is_local,
        partition=index.partition,
        sort=index.sort,
        projection_type=index.projection_type,
        non_key_attributes=index.non_key_attributes,
        status=ACTIVE,
        throughput=throughput,
        on_demand_throughput=_maximums(mode, maximums, index.on_demand_throughput),
        warm_throughput=warm,
    )
