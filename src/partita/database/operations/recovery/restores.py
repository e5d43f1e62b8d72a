"""RestoreTableFromBackup, RestoreTableToPointInTime: new tables out of the archive.

What a restored table has and lacks is in the guide ("Restoring a table"): keys, indexes, capacity
and encryption are those of the source; streams, time to live, tags, policies, auto scaling,
deletion protection and recovery itself are not carried over.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from partita.database.operations.answers import encode
from partita.database.operations.context import Request, Service, WriteContext, table_name
from partita.database.operations.control_plane import definitions
from partita.database.operations.control_plane.descriptions import (
    description_of,
    key_schema,
    projection_of,
)
from partita.database.operations.control_plane.encryption import check_sse, sse_description
from partita.database.operations.recovery.backups import find_backup
from partita.database.operations.recovery.continuous import restorable
from partita.database.operations.recovery.resources import existing_table
from partita.database.storage.recovery_log import MICROSECONDS
from partita.database.tables.catalog import next_table_number
from partita.database.tables.schema import (
    ACTIVE,
    CREATING,
    DELETING,
    NOT_BEFORE_LOADED,
    PAY_PER_REQUEST,
    PROVISIONED,
    Index,
    Origin,
    Table,
    Throughput,
)
from partita.database.tables.throughput import warm_throughput
from partita.errors import (
    INVALID,
    BackupInUseException,
    InvalidRestoreTimeException,
    LimitExceededException,
    PointInTimeRecoveryUnavailableException,
    TableAlreadyExistsException,
    TableInUseException,
    ValidationException,
)
from partita.limits import RESTORES_MAX


def restore_table_from_backup(context: WriteContext, request: Request) -> bytes:
    service = context.service
    arn = request["BackupArn"]
    backup = find_backup(service, arn)
    _check_target(service, request["TargetTableName"])
    if not backup.is_available:
        raise BackupInUseException(f"Backup is being created: {arn}")
    origin = Origin(
        table_arn=service.table_arn(backup.table.name),
        table_id=backup.table.table_id,
        restored_to=backup.created_at,
        backup_arn=arn,
        manifest=backup.manifest,
    )
    return _begin(context, backup.table, request, origin)


def restore_table_to_point_in_time(context: WriteContext, request: Request) -> bytes:
    service = context.service
    source = existing_table(service, _source_name(request))
    if source.recovery is None:
        raise PointInTimeRecoveryUnavailableException(
            f"Point in time recovery is not enabled for table '{source.name}'"
        )
    _check_target(service, request["TargetTableName"])
    stamp = _moment(service, source, request)
    origin = Origin(
        table_arn=service.table_arn(source.name),
        table_id=source.table_id,
        restored_to=stamp / MICROSECONDS if stamp else service.clock(),
        stamp=stamp,
    )
    return _begin(context, source, request, origin)


def _source_name(request: Request) -> str:
    names = [request[name] for name in ("SourceTableName", "SourceTableArn") if name in request]
    if not names:
        raise ValidationException(f"{INVALID}SourceTableArn or SourceTableName must be specified")
    if len({table_name(name) for name in names}) > 1:
        raise ValidationException(
            f"{INVALID}SourceTableArn and SourceTableName must name the same table"
        )
    return str(names[0])


def _moment(service: Service, source: Table, request: Request) -> int:
    """The stamp to restore to; 0 for the latest while there is no base yet."""
    asked, is_latest = request.get("RestoreDateTime"), request.get("UseLatestRestorableTime", False)
    if (asked is None) == (not is_latest):
        raise ValidationException(
            f"{INVALID}Exactly one of RestoreDateTime and UseLatestRestorableTime must be specified"
        )
    moments = restorable(service, source)
    if asked is None:
        return moments[1] if moments else 0
    stamp = round(float(asked) * MICROSECONDS)
    if moments is None or not moments[0] <= stamp <= moments[1]:
        raise InvalidRestoreTimeException(
            "RestoreDateTime must be between EarliestRestorableDateTime and "
            "LatestRestorableDateTime"
        )
    return stamp


def _check_target(service: Service, name: str) -> None:
    table = service.catalog.find(name)
    if table is not None:
        if table.status(service.clock()) in (CREATING, DELETING):
            raise TableInUseException(f"Table is being created or deleted: {name}")
        raise TableAlreadyExistsException(f"Table already exists: {name}")
    restoring = [one for one in service.catalog if one.origin and one.origin.is_in_progress]
    if len(restoring) >= RESTORES_MAX:
        raise LimitExceededException(
            f"Subscriber limit exceeded: {RESTORES_MAX} restores are in progress already"
        )


def _begin(context: WriteContext, source: Table, request: Request, origin: Origin) -> bytes:
    table = _restored_table(context.service, source, request, origin)
    table = replace(table, number=next_table_number(context.write_batch))
    context.service.catalog.save(context.write_batch, table)
    described = description_of(context.service, context.write_batch, table, CREATING)
    return encode({"TableDescription": described})


def _restored_table(service: Service, source: Table, request: Request, origin: Origin) -> Table:
    mode = request.get("BillingModeOverride", source.billing_mode)
    units = request.get("ProvisionedThroughputOverride")
    if mode == PAY_PER_REQUEST or units is not None or source.billing_mode != mode:
        definitions.check_throughput(mode, units)
    on_demand = request.get("OnDemandThroughputOverride")
    definitions.check_on_demand_throughput(on_demand, mode)
    if "VectorIndexOverride" in request:
        raise ValidationException(f"{INVALID}VectorIndexOverride is not supported")
    sse = request.get("SSESpecificationOverride")
    check_sse(service, sse)
    indexes = [
        *_indexes(source.local_indexes, request.get("LocalSecondaryIndexOverride"), mode),
        *_indexes(source.global_indexes, request.get("GlobalSecondaryIndexOverride"), mode),
    ]
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
        table_class=source.table_class,
        sse=source.sse if sse is None else sse_description(service, sse),
        # Items keep their places, which depend on it.
        key_secret=source.key_secret,
        origin=origin,
    )


def _units(mode: str, asked: dict[str, int] | None, source: Throughput) -> Throughput:
    if mode != PROVISIONED:
        return Throughput()
    if asked is not None:
        return definitions.throughput(asked)
    return Throughput(source.read_units, source.write_units)


def _maximums(
    mode: str, asked: dict[str, int] | None, source: dict[str, int] | None
) -> dict[str, int] | None:
    if mode != PAY_PER_REQUEST:
        return None
    return source if asked is None else asked


def _indexes(present: list[Index], asked: list[dict[str, Any]] | None, mode: str) -> list[Index]:
    """The indexes of the source, or those of them that were asked for, with their units."""
    kept = [index for index in present if index.status not in (CREATING, DELETING)]
    if asked is None:
        return [_fresh(index, mode, None) for index in kept]
    by_name = {index.name: index for index in kept}
    names = [one["IndexName"] for one in asked]
    if len(set(names)) < len(names):
        raise ValidationException(f"{INVALID}Duplicate index name in the override")
    return [_fresh(_matching(by_name.get(one["IndexName"]), one), mode, one) for one in asked]


def _matching(index: Index | None, asked: dict[str, Any]) -> Index:
    name = asked["IndexName"]
    if index is None:
        raise ValidationException(
            f"{INVALID}Index {name} does not exist in the source; only existing indexes can be "
            "restored"
        )
    projection = {key: value for key, value in asked["Projection"].items() if value}
    if asked["KeySchema"] != key_schema(index.partition, index.sort) or _sorted(
        projection
    ) != _sorted(projection_of(index)):
        raise ValidationException(
            f"{INVALID}Index {name} does not match the index of the source with that name"
        )
    return index


def _sorted(projection: dict[str, Any]) -> dict[str, Any]:
    names = projection.get("NonKeyAttributes")
    return projection | ({"NonKeyAttributes": sorted(names)} if names else {})


def _fresh(index: Index, mode: str, asked: dict[str, Any] | None) -> Index:
    """An index without the history and the policies of the one that it is made after."""
    asked = asked or {}
    units = None if index.is_local else asked.get("ProvisionedThroughput")
    if units is not None:
        definitions.check_index_throughput(index.name, units, mode)
    maximums = asked.get("OnDemandThroughput")
    definitions.check_on_demand_throughput(maximums, mode, f"index {index.name}")
    granted = _units(mode, units, index.throughput)
    warm = asked.get("WarmThroughput")
    start = warm_throughput(mode, granted, None)
    definitions.check_warm_throughput(warm, start, f"index {index.name}")
    return Index(
        name=index.name,
        number=index.number,
        is_local=index.is_local,
        partition=index.partition,
        sort=index.sort,
        projection_type=index.projection_type,
        non_key_attributes=index.non_key_attributes,
        status=ACTIVE,
        throughput=granted,
        on_demand_throughput=_maximums(mode, maximums, index.on_demand_throughput),
        warm_throughput=warm,
    )
