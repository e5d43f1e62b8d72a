"""UpdateTable as functions from a table to a table: changes of capacity, settings and indexes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from partita.database.operations.control_plane.server_side_encryption import (
    check_sse,
    sse_description,
)
from partita.database.operations.control_plane.tables import table_definitions
from partita.database.operations.operation_context import DatabaseService, Request
from partita.database.tables.definition.table_schema import (
    CREATING,
    DELETING,
    PAY_PER_REQUEST,
    PROVISIONED,
    Index,
    ProvisionedThroughput,
    Table,
)
from partita.database.tables.definition.table_throughput import warm_throughput
from partita.errors import (
    INVALID,
    LimitExceededException,
    ResourceNotFoundException,
    ValidationException,
)
from partita.foundation.service_limits import (
    DECREASE_SECONDS,
    DECREASES_PER_DAY,
    GLOBAL_INDEXES_PER_TABLE_MAX,
)

ONE_INDEX_AT_A_TIME = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously "
    "per table"
)
UNITS_MISSING = f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
NOTHING_TO_UPDATE = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, "
    "ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, "
    "OnDemandThroughput, WarmThroughput or TableClass is required"
)
UPDATES = (
    "ProvisionedThroughput",
    "BillingMode",
    "StreamSpecification",
    "GlobalSecondaryIndexUpdates",
    "SSESpecification",
    "DeletionProtectionEnabled",
    "OnDemandThroughput",
    "WarmThroughput",
    "TableClass",
)
# Changes that must be the only change in a request, with the service's names for them.
ALONE = {
    "SSESpecification": "Server-Side Encryption",
    "TableClass": "TableClass",
    "DeletionProtectionEnabled": "DeletionProtection",
}


# Changes that cannot be combined in one request.
EXCLUSIVE_CHANGES = {
    ("StreamSpecification", "ProvisionedThroughput"): (
        "You cannot modify stream status while updating table IOPS"
    ),
    ("index", "ProvisionedThroughput"): (
        "You cannot create or delete index while updating table IOPS"
    ),
    ("index", "StreamSpecification"): (
        "You cannot create or delete index while changing stream status"
    ),
}


def check_request(request: Request) -> None:
    """Do the checks that do not need the table."""
    if not any(request.get(name) not in (None, []) for name in UPDATES):
        raise ValidationException(NOTHING_TO_UPDATE)
    if "ProvisionedThroughput" in request:
        table_definitions.check_units(request["ProvisionedThroughput"])
    _index_updates(request)


def changed_table(service: DatabaseService, table: Table, request: Request) -> Table:
    _check_alone(request)
    table = _with_capacity(service, table, request)
    table = _with_settings(service, table, request)
    for kind, index_request in _index_updates(request):
        table = _INDEX_CHANGES[kind](service, table, index_request, request)
    return table


def _check_alone(request: Request) -> None:
    changes = [name for name in UPDATES if name in request]
    for name, shown in ALONE.items():
        if name in changes and len(changes) > 1:
            raise ValidationException(
                f"{INVALID}{shown} modification must be the only operation in the request"
            )
    for kinds, text in EXCLUSIVE_CHANGES.items():
        if all(_is_changed(request, kind) for kind in kinds):
            raise ValidationException(f"{INVALID}{text}")
    if "OnDemandThroughput" in changes and set(changes) - {"OnDemandThroughput", "BillingMode"}:
        raise ValidationException(
            f"{INVALID}OnDemandThroughput can only be combined with BillingMode in an "
            "UpdateTable request"
        )


def _is_changed(request: Request, kind: str) -> bool:
    if kind == "index":
        return any(change != "Update" for change, _ in _index_updates(request))
    return kind in request


def _with_capacity(service: DatabaseService, table: Table, request: Request) -> Table:
    """Returns the table after a change of billing mode, units, maximums or warm throughput."""
    mode = request.get("BillingMode", table.billing_mode)
    requested = request.get("ProvisionedThroughput")
    if mode == PAY_PER_REQUEST:
        table_definitions.check_throughput(mode, requested)
    table_definitions.check_on_demand_throughput(request.get("OnDemandThroughput"), mode)
    table_definitions.check_warm_throughput(
        request.get("WarmThroughput"),
        warm_throughput(table.billing_mode, table.throughput, table.warm_throughput),
    )
    now = service.clock()
    if mode != table.billing_mode:
        table = _with_billing_mode(table, request, mode, now)
    elif requested is not None:
        units = _changed_units(service, table.throughput, requested, "the table")
        table = replace(table, throughput=units)
    elif request.get("BillingMode") == PROVISIONED:
        raise ValidationException(UNITS_MISSING)
    if "OnDemandThroughput" in request:
        units = (table.on_demand_throughput or {}) | request["OnDemandThroughput"]
        table = replace(table, on_demand_throughput=units)
    if "WarmThroughput" in request:
        units = (table.warm_throughput or {}) | request["WarmThroughput"]
        table = replace(table, warm_throughput=units)
    return table


def _with_billing_mode(table: Table, request: Request, mode: str, now: float) -> Table:
    if mode == PAY_PER_REQUEST:
        return replace(
            table,
            billing_mode=mode,
            on_demand_since=now,
            throughput=ProvisionedThroughput(),
            indexes=tuple(
                replace(index, throughput=ProvisionedThroughput()) for index in table.indexes
            ),
        )
    requested = request.get("ProvisionedThroughput")
    if requested is None:
        raise ValidationException(UNITS_MISSING)
    updated_names = {
        update["Update"]["IndexName"]
        for update in request.get("GlobalSecondaryIndexUpdates", ())
        if "Update" in update
    }
    missing = [index.name for index in table.global_indexes if index.name not in updated_names]
    if missing:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified for index: {','.join(missing)}"
        )
    return replace(
        table,
        billing_mode=mode,
        throughput=table_definitions.throughput(requested),
        on_demand_throughput=None,
        indexes=tuple(replace(index, on_demand_throughput=None) for index in table.indexes),
    )


def _changed_units(
    service: DatabaseService,
    current: ProvisionedThroughput,
    requested: dict[str, int],
    subject: str,
) -> ProvisionedThroughput:
    now = service.clock()
    read_units, write_units = requested["ReadCapacityUnits"], requested["WriteCapacityUnits"]
    if (read_units, write_units) == (current.read_units, current.write_units):
        raise ValidationException(
            f"The provisioned throughput for {subject} will not change. The requested value "
            "equals the current value. Current ReadCapacityUnits provisioned for the table: "
            f"{read_units}. Requested ReadCapacityUnits: {read_units}. Current "
            f"WriteCapacityUnits provisioned for the table: {write_units}. Requested "
            f"WriteCapacityUnits: {write_units}. Refer to the Amazon DynamoDB Developer Guide "
            "for current limits and how to request higher limits."
        )
    if read_units < current.read_units or write_units < current.write_units:
        _refuse_many_decreases(service, current, now)
    return current.changed_to(read_units, write_units, now)


def _refuse_many_decreases(
    service: DatabaseService, current: ProvisionedThroughput, now: float
) -> None:
    """Refuse too many decreases in a day, but only if capacity is enforced."""
    next_at = current.next_decrease_at(now)
    if not service.ledger.is_enforced or next_at is None or current.decreased_at is None:
        return
    raise LimitExceededException(
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given "
        f"UTC day. After the first {DECREASES_PER_DAY} decreases, each subsequent decrease in the "
        f"same UTC day can be performed at most once every {DECREASE_SECONDS} seconds. Number of "
        f"decreases today: {current.decreases_today(now)}. Last decrease at "
        f"{_spoken(current.decreased_at)}. Next decrease can be made at {_spoken(next_at)}."
    )


def _spoken(moment: float) -> str:
    """Returns a time such as "Friday, October 9, 2026 at 12:21:34 AM Coordinated Universal Time"
    (recorded)."""
    when = datetime.fromtimestamp(moment, UTC)
    hour = when.hour % 12 or 12
    return (
        f"{when:%A, %B} {when.day}, {when.year} at {hour}:{when:%M:%S %p} "
        "Coordinated Universal Time"
    )


def _with_settings(service: DatabaseService, table: Table, request: Request) -> Table:
    if "StreamSpecification" in request:
        table = _with_stream(table, request["StreamSpecification"])
    if "SSESpecification" in request:
        check_sse(service, request["SSESpecification"])
        if not request["SSESpecification"].get("Enabled") and table.sse is None:
            raise ValidationException(f"{INVALID}Table is already encrypted by default")
        table = replace(table, sse=sse_description(service, request["SSESpecification"]))
    if "DeletionProtectionEnabled" in request:
        table = replace(table, deletion_protection=request["DeletionProtectionEnabled"])
    if "TableClass" in request:
        now = service.clock()
        table = replace(table, table_class=request["TableClass"], table_class_changed_at=now)
    return table


def _with_stream(table: Table, specification: dict[str, Any]) -> Table:
    view_type = specification.get("StreamViewType")
    if specification["StreamEnabled"]:
        if table.stream_view_type is not None:
            raise ValidationException(
                f"Table already has an enabled stream: TableName: {table.name}"
            )
        if view_type is None:
            raise ValidationException(
                f"{INVALID}If stream is being enabled then UpdateViewType is required"
            )
        return replace(table, stream_view_type=view_type)
    if view_type is not None:
        raise ValidationException(
            f"{INVALID}If stream is being disabled, then UpdateViewType must not be specified"
        )
    if table.stream_view_type is None:
        raise ValidationException(f"Table has no stream to disable: TableName: {table.name}")
    return replace(table, stream_view_type=None)


def _index_updates(request: Request) -> list[tuple[str, dict[str, Any]]]:
    """Returns the changes of indexes, each as Create, Update or Delete with its parameters."""
    updates: list[tuple[str, dict[str, Any]]] = []
    names: set[str] = set()
    for update in request.get("GlobalSecondaryIndexUpdates", ()):
        if not update:
            raise ValidationException(
                f"{INVALID}One of GlobalSecondaryIndexUpdate.Update, "
                "GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not "
                "be null"
            )
        if len(update) > 1:
            raise ValidationException(
                f"{INVALID}Only one global secondary index action is allowed per "
                "GlobalSecondaryIndexUpdate object"
            )
        ((kind, index_request),) = update.items()
        name = index_request["IndexName"]
        if name in names:
            raise ValidationException(
                f"{INVALID}Only one global secondary index update per index is allowed "
                f"simultaneously. Index: {name}"
            )
        names.add(name)
        updates.append((kind, index_request))
    if sum(kind != "Update" for kind, _ in updates) > 1:
        raise LimitExceededException(ONE_INDEX_AT_A_TIME)
    return updates


def _create_index(
    service: DatabaseService, table: Table, index_request: dict[str, Any], request: Request
) -> Table:
    name = index_request["IndexName"]
    if "AttributeDefinitions" not in request:
        raise ValidationException(
            f"{INVALID}AttributeDefinitions is not specified for index: {name}"
        )
    if table.index(name) is not None:
        raise ValidationException("Attempting to create an index which already exists")
    _refuse_while_indexes_change(table)
    if len(table.global_indexes) >= GLOBAL_INDEXES_PER_TABLE_MAX:
        raise LimitExceededException(table_definitions.TOO_MANY_GLOBAL_INDEXES)
    requested = table_definitions.attribute_types(request["AttributeDefinitions"])
    # Attributes that the table already defines keep their types, even if the request has others
    # (recorded).
    types = requested | {
        key: kind for key, kind in table.attribute_types.items() if key in requested
    }
    _refuse_redefinition(table, index_request["KeySchema"], requested)
    index = table_definitions.global_index(index_request, types, table.next_index_number)
    table_definitions.check_index_settings(index, index_request, table.billing_mode)
    table_definitions.check_index_set([*table.indexes, index])
    return replace(
        table,
        attribute_types=table.attribute_types | dict(index.key_attributes),
        indexes=(*table.indexes, replace(index, status=CREATING)),
        next_index_number=table.next_index_number + 1,
    )


def _refuse_redefinition(
    table: Table, key_schema: list[dict[str, str]], requested: dict[str, str]
) -> None:
    """Refuse an index key with another type than the table already defines for it."""
    for element in key_schema:
        name, role = element["AttributeName"], element["KeyType"]
        defined = table.attribute_types.get(name)
        if defined is not None and requested.get(name, defined) != defined:
            raise ValidationException(
                f"{INVALID}Attributes cannot be redefined. Please check that your attribute has "
                "the same type as previously defined. Existing schema: "
                f"Schema:[SchemaElement: key{{{name}:{defined}:{role}}}] New schema: "
                f"Schema:[SchemaElement: key{{{name}:{requested[name]}:{role}}}]"
            )


def _update_index(
    service: DatabaseService, table: Table, index_request: dict[str, Any], request: Request
) -> Table:
    index = _global_index(table, index_request["IndexName"], "update")
    subject = f"index {index.name}"
    if "ProvisionedThroughput" in index_request:
        requested = index_request["ProvisionedThroughput"]
        table_definitions.check_index_throughput(index.name, requested, table.billing_mode)
        if index.throughput.read_units:
            units = _changed_units(service, index.throughput, requested, f"the {subject}")
        else:
            units = table_definitions.throughput(requested)
        index = replace(index, throughput=units)
    if "OnDemandThroughput" in index_request:
        maximums = index_request["OnDemandThroughput"]
        table_definitions.check_on_demand_throughput(maximums, table.billing_mode, subject)
        index = replace(index, on_demand_throughput=(index.on_demand_throughput or {}) | maximums)
    if "WarmThroughput" in index_request:
        warm = index_request["WarmThroughput"]
        current = warm_throughput(table.billing_mode, index.throughput, index.warm_throughput)
        table_definitions.check_warm_throughput(warm, current, subject)
        index = replace(index, warm_throughput=current | warm)
    return table.with_index(index)


def _delete_index(
    service: DatabaseService, table: Table, index_request: dict[str, Any], request: Request
) -> Table:
    index = _global_index(table, index_request["IndexName"], "delete")
    _refuse_while_indexes_change(table)
    return table.with_index(replace(index, status=DELETING))


_INDEX_CHANGES = {"Create": _create_index, "Update": _update_index, "Delete": _delete_index}


def _refuse_while_indexes_change(table: Table) -> None:
    if table.has_changing_index:
        raise LimitExceededException(ONE_INDEX_AT_A_TIME)


def _global_index(table: Table, name: str, verb: str) -> Index:
    index = table.index(name)
    if index is None and verb == "update":
        raise ValidationException(
            "This operation cannot be performed with given input values. Please contact DynamoDB "
            "service team for more info: Action Blocked: IndexUpdate"
        )
    if index is None:
        raise ResourceNotFoundException("Requested resource not found")
    if index.is_local:
        raise ValidationException(
            f"Cannot {verb} an index that is not a GlobalSecondaryIndex: {name}"
        )
    return index
