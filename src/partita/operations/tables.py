"""CreateTable, DescribeTable, ListTables, UpdateTable, DeleteTable."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from itertools import count
from typing import Any

from msgspec.structs import replace

from partita.errors import (
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from partita.limits import GLOBAL_INDEXES_PER_TABLE_MAX, LIST_TABLES_PAGE_MAX
from partita.operations import definitions
from partita.operations.answers import answer, encode, member
from partita.operations.context import ReadContext, Request, Service, WriteContext, table_name
from partita.operations.descriptions import describe_table as described
from partita.tables.catalog import next_table_number
from partita.tables.keys import INVALID
from partita.tables.schema import (
    ACTIVE,
    CREATING,
    DELETING,
    PAY_PER_REQUEST,
    PROVISIONED,
    UPDATING,
    Index,
    Table,
    Throughput,
)

ONE_INDEX_AT_A_TIME = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously "
    "per table"
)
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
# Changes that the service wants alone in a request, with its name for them.
ALONE = {
    "SSESpecification": "Server-Side Encryption",
    "TableClass": "TableClass",
    "DeletionProtectionEnabled": "DeletionProtection",
}


def create_table(context: WriteContext, request: Request) -> bytes:
    definitions.refuse_what_is_not_built(request)
    service = context.service
    name = table_name(request["TableName"])
    billing_mode = request.get("BillingMode", PROVISIONED)
    definitions.check_throughput(billing_mode, request.get("ProvisionedThroughput"))
    table = _new_table(service, request, name, billing_mode)
    if service.catalog.find(name) is not None:
        raise ResourceInUseException(f"Table already exists: {name}")
    table = replace(table, number=next_table_number(context.draft))
    service.catalog.save(context.draft, table)
    return _answer(context, "TableDescription", table, CREATING)


def describe_table(context: ReadContext, request: Request) -> bytes:
    table = context.service.catalog.described(table_name(request["TableName"]))
    return encode({"Table": described(context.service, context.snapshot, table)})


def list_tables(context: ReadContext, request: Request) -> bytes:
    after = request.get("ExclusiveStartTableName", "")
    limit = request.get("Limit", LIST_TABLES_PAGE_MAX)
    names = [name for name in context.service.catalog.names() if name > after]
    page = {"TableNames": names[:limit]}
    if len(names) > limit:
        page["LastEvaluatedTableName"] = names[limit - 1]
    return encode(page)


def delete_table(context: WriteContext, request: Request) -> bytes:
    service = context.service
    table = service.catalog.described(table_name(request["TableName"]))
    status = table.status(service.clock())
    if status != ACTIVE:
        raise ResourceInUseException(_in_use(table, status))
    if table.deletion_protection:
        raise ValidationException(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )
    response = _answer(context, "TableDescription", table, DELETING)
    if service.transient_seconds:
        service.catalog.save(context.draft, _in_transition(service, table, DELETING))
    else:
        service.catalog.remove(context.draft, table)
    return response


def update_table(context: WriteContext, request: Request) -> bytes:
    definitions.refuse_what_is_not_built(request)
    if not any(request.get(name) not in (None, []) for name in UPDATES):
        raise ValidationException(NOTHING_TO_UPDATE)
    if "ProvisionedThroughput" in request:
        definitions.check_units(request["ProvisionedThroughput"])
    index_updates = _index_updates(request)
    service = context.service
    table = service.catalog.described(table_name(request["TableName"]))
    status = table.status(service.clock())
    if status != ACTIVE:
        raise ResourceInUseException(_in_use(table, status))
    _check_alone(request)
    changed = _with_capacity(service, table, request)
    changed = _with_settings(service, changed, request)
    for kind, asked in index_updates:
        changed = _INDEX_CHANGES[kind](service, changed, asked, request)
    changed = _in_transition(service, changed, UPDATING)
    service.catalog.save(context.draft, changed)
    # The answer still shows the old units (recorded); the new ones show when the table settles.
    shown = replace(
        changed,
        throughput=replace(
            changed.throughput,
            read_units=table.throughput.read_units,
            write_units=table.throughput.write_units,
        ),
    )
    if changed.billing_mode == PAY_PER_REQUEST:
        shown = changed
    return _answer(context, "TableDescription", shown, UPDATING)


def _answer(context: WriteContext, name: str, table: Table, status: str) -> bytes:
    description = described(context.service, context.draft, table, status)
    return answer([member(name, description)])


def _in_use(table: Table, status: str) -> str:
    doing = {CREATING: "created", UPDATING: "updated", DELETING: "deleted"}[status]
    return (
        f"Attempt to change a resource which is still in use: Table is being {doing}: {table.name}"
    )


def _in_transition(service: Service, table: Table, transition: str) -> Table:
    settles_at = service.clock() + service.transient_seconds
    return replace(table, transition=transition, settles_at=settles_at)


def _new_table(service: Service, request: Request, name: str, billing_mode: str) -> Table:
    types = definitions.attribute_types(request["AttributeDefinitions"])
    keys = definitions.table_keys(request["KeySchema"], types)
    numbers = count(1)
    indexes: list[Index] = []
    if "LocalSecondaryIndexes" in request:
        indexes += definitions.local_indexes(request["LocalSecondaryIndexes"], keys, types, numbers)
    if "GlobalSecondaryIndexes" in request:
        indexes += definitions.global_indexes(
            request["GlobalSecondaryIndexes"], types, numbers, billing_mode
        )
    definitions.check_indexes_together(indexes)
    definitions.check_on_demand_throughput(request.get("OnDemandThroughput"), billing_mode)
    definitions.check_sse(request.get("SSESpecification"))
    throughput = definitions.throughput(request.get("ProvisionedThroughput"))
    definitions.check_warm_throughput(
        request.get("WarmThroughput"), definitions.warm_throughput(billing_mode, throughput, None)
    )
    now = service.clock()
    view_type = definitions.stream_view_type(request.get("StreamSpecification"))
    table = Table(
        name=name,
        number=0,
        table_id=str(uuid.uuid4()),
        created_at=now,
        attribute_types=types,
        partition=keys[0][0],
        sort=keys[1][0] if keys[1] else None,
        indexes=tuple(indexes),
        next_index_number=len(indexes) + 1,
        billing_mode=billing_mode,
        on_demand_since=now if billing_mode == PAY_PER_REQUEST else None,
        throughput=throughput,
        on_demand_throughput=request.get("OnDemandThroughput"),
        warm_throughput=request.get("WarmThroughput"),
        deletion_protection=request.get("DeletionProtectionEnabled", False),
        table_class=request.get("TableClass"),
        sse=_sse_description(service, request.get("SSESpecification")),
        stream_view_type=view_type,
        stream_label=_stream_label(now) if view_type else None,
        tags=definitions.check_tags(request.get("Tags", ())),
    )
    definitions.check_all_used(table)
    return _in_transition(service, table, CREATING)


def _stream_label(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]


def _sse_description(
    service: Service, specification: dict[str, Any] | None
) -> dict[str, Any] | None:
    """What is said of encryption; without a key of the user's own, AWS names the account's."""
    if specification is None or not specification.get("Enabled"):
        return None
    key = specification.get("KMSMasterKeyId") or str(uuid.uuid5(uuid.NAMESPACE_DNS, "partita"))
    prefix = f"arn:aws:kms:{service.region}:{service.account_id}:"
    if not key.startswith("arn:"):
        key = prefix + (key if key.startswith("alias/") else f"key/{key}")
    return {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key}


def _check_alone(request: Request) -> None:
    given = [name for name in UPDATES if name in request]
    for name, called in ALONE.items():
        if name in given and len(given) > 1:
            raise ValidationException(
                f"{INVALID}{called} modification must be the only operation in the request"
            )
    if "OnDemandThroughput" in given and set(given) - {"OnDemandThroughput", "BillingMode"}:
        raise ValidationException(
            f"{INVALID}OnDemandThroughput can only be combined with BillingMode in an "
            "UpdateTable request"
        )


def _with_capacity(service: Service, table: Table, request: Request) -> Table:
    """The table after a change of billing mode, units, maximums or warm throughput."""
    mode = request.get("BillingMode", table.billing_mode)
    asked = request.get("ProvisionedThroughput")
    if mode == PAY_PER_REQUEST:
        definitions.check_throughput(mode, asked)
    definitions.check_on_demand_throughput(request.get("OnDemandThroughput"), mode)
    definitions.check_warm_throughput(
        request.get("WarmThroughput"),
        definitions.warm_throughput(table.billing_mode, table.throughput, table.warm_throughput),
    )
    now = service.clock()
    if mode != table.billing_mode:
        table = _with_billing_mode(table, request, mode, now)
    elif asked is not None:
        table = replace(table, throughput=_changed_units(table.throughput, asked, "the table", now))
    elif request.get("BillingMode") == PROVISIONED:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )
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
            throughput=Throughput(),
            indexes=tuple(replace(index, throughput=Throughput()) for index in table.indexes),
        )
    asked = request.get("ProvisionedThroughput")
    if asked is None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )
    given = {
        update["Update"]["IndexName"]
        for update in request.get("GlobalSecondaryIndexUpdates", ())
        if "Update" in update
    }
    missing = [index.name for index in table.global_indexes if index.name not in given]
    if missing:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified for index: {','.join(missing)}"
        )
    throughput = definitions.throughput(asked)
    return replace(table, billing_mode=mode, throughput=throughput, on_demand_throughput=None)


def _changed_units(
    current: Throughput, asked: dict[str, int], subject: str, now: float
) -> Throughput:
    read_units, write_units = asked["ReadCapacityUnits"], asked["WriteCapacityUnits"]
    if (read_units, write_units) == (current.read_units, current.write_units):
        raise ValidationException(
            f"The provisioned throughput for {subject} will not change. The requested value "
            "equals the current value. Current ReadCapacityUnits provisioned for the table: "
            f"{read_units}. Requested ReadCapacityUnits: {read_units}. Current "
            f"WriteCapacityUnits provisioned for the table: {write_units}. Requested "
            f"WriteCapacityUnits: {write_units}. Refer to the Amazon DynamoDB Developer Guide "
            "for current limits and how to request higher limits."
        )
    return current.changed_to(read_units, write_units, now)


def _with_settings(service: Service, table: Table, request: Request) -> Table:
    if "StreamSpecification" in request:
        table = _with_stream(service, table, request["StreamSpecification"])
    if "SSESpecification" in request:
        definitions.check_sse(request["SSESpecification"])
        if not request["SSESpecification"].get("Enabled") and table.sse is None:
            raise ValidationException(f"{INVALID}Table is already encrypted by default")
        table = replace(table, sse=_sse_description(service, request["SSESpecification"]))
    if "DeletionProtectionEnabled" in request:
        table = replace(table, deletion_protection=request["DeletionProtectionEnabled"])
    if "TableClass" in request:
        now = service.clock()
        table = replace(table, table_class=request["TableClass"], table_class_changed_at=now)
    return table


def _with_stream(service: Service, table: Table, specification: dict[str, Any]) -> Table:
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
        label = _stream_label(service.clock())
        return replace(table, stream_view_type=view_type, stream_label=label)
    if view_type is not None:
        raise ValidationException(
            f"{INVALID}If stream is being disabled, then UpdateViewType must not be specified"
        )
    if table.stream_view_type is None:
        raise ValidationException(f"Table has no stream to disable: TableName: {table.name}")
    return replace(table, stream_view_type=None)


def _index_updates(request: Request) -> list[tuple[str, dict[str, Any]]]:
    """The changes to indexes as (Create, Update or Delete, its parameters)."""
    updates: list[tuple[str, dict[str, Any]]] = []
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
        updates += update.items()
    names = [asked["IndexName"] for _, asked in updates]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ValidationException(
                f"{INVALID}Only one global secondary index update per index is allowed "
                f"simultaneously. Index: {name}"
            )
    if sum(kind != "Update" for kind, _ in updates) > 1:
        raise LimitExceededException(ONE_INDEX_AT_A_TIME)
    return updates


def _create_index(service: Service, table: Table, asked: dict[str, Any], request: Request) -> Table:
    name = asked["IndexName"]
    if "AttributeDefinitions" not in request:
        raise ValidationException(
            f"{INVALID}AttributeDefinitions is not specified for index: {name}"
        )
    if table.index(name) is not None:
        raise ValidationException("Attempting to create an index which already exists")
    _refuse_while_indexes_change(table)
    if len(table.global_indexes) >= GLOBAL_INDEXES_PER_TABLE_MAX:
        raise LimitExceededException(
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of "
            f"{GLOBAL_INDEXES_PER_TABLE_MAX}"
        )
    given = definitions.attribute_types(request["AttributeDefinitions"])
    # An attribute that the table knows keeps its type, whatever the request says (recorded).
    types = given | {key: kind for key, kind in table.attribute_types.items() if key in given}
    index = definitions.global_index(asked, types, table.next_index_number)
    definitions.check_index_throughput(name, asked.get("ProvisionedThroughput"), table.billing_mode)
    definitions.check_indexes_together([*table.indexes, index])
    return replace(
        table,
        attribute_types=table.attribute_types | dict(index.key_attributes),
        indexes=(*table.indexes, replace(index, status=CREATING)),
        next_index_number=table.next_index_number + 1,
    )


def _update_index(service: Service, table: Table, asked: dict[str, Any], request: Request) -> Table:
    index = _global_index(table, asked["IndexName"], "update")
    if "ProvisionedThroughput" in asked:
        definitions.check_index_throughput(
            index.name, asked["ProvisionedThroughput"], table.billing_mode
        )
        if index.throughput.read_units:
            units = _changed_units(
                index.throughput,
                asked["ProvisionedThroughput"],
                f"the index {index.name}",
                service.clock(),
            )
        else:
            units = definitions.throughput(asked["ProvisionedThroughput"])
        index = replace(index, throughput=units)
    for member_name, field in (
        ("OnDemandThroughput", "on_demand_throughput"),
        ("WarmThroughput", "warm_throughput"),
    ):
        if member_name in asked:
            units = (getattr(index, field) or {}) | asked[member_name]
            index = replace(index, **{field: units})
    return table.with_index(index)


def _delete_index(service: Service, table: Table, asked: dict[str, Any], request: Request) -> Table:
    index = _global_index(table, asked["IndexName"], "delete")
    _refuse_while_indexes_change(table)
    return table.with_index(replace(index, status=DELETING))


_INDEX_CHANGES = {"Create": _create_index, "Update": _update_index, "Delete": _delete_index}


def _refuse_while_indexes_change(table: Table) -> None:
    if any(index.status in (CREATING, DELETING) for index in table.indexes):
        raise LimitExceededException(ONE_INDEX_AT_A_TIME)


def _global_index(table: Table, name: str, verb: str) -> Index:
    index = table.index(name)
    if index is None:
        raise ResourceNotFoundException("Requested resource not found")
    if index.is_local:
        raise ValidationException(
            f"Cannot {verb} an index that is not a GlobalSecondaryIndex: {name}"
        )
    return index
