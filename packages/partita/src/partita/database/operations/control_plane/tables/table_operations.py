"""CreateTable, DescribeTable, ListTables, UpdateTable, DeleteTable."""

from __future__ import annotations

from itertools import count

from msgspec.structs import replace

from partita.database.logs.change_log.change_streams import close_stream, open_stream
from partita.database.operations.control_plane.resource_policies import new_policy
from partita.database.operations.control_plane.server_side_encryption import (
    check_sse,
    sse_description,
)
from partita.database.operations.control_plane.table_tags import check_tags
from partita.database.operations.control_plane.tables import table_changes, table_definitions
from partita.database.operations.control_plane.tables.table_descriptions import description_of
from partita.database.operations.local_leniency import without_surplus
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
    table_name,
)
from partita.database.operations.response_members import encode
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_catalog import next_table_number
from partita.database.tables.definition.table_schema import (
    ACTIVE,
    CREATING,
    DELETING,
    PAY_PER_REQUEST,
    PROVISIONED,
    UPDATING,
    Index,
    ResourcePolicy,
    Table,
)
from partita.database.tables.definition.table_throughput import partition_count, warm_throughput
from partita.errors import ResourceInUseException, ValidationException
from partita.foundation.service_limits import LIST_TABLES_PAGE_MAX


def create_table(context: WriteContext, request: Request) -> bytes:
    table_definitions.refuse_what_is_not_built(request)
    service = context.service
    if service.is_lenient:
        request = without_surplus(request)
    name = request["TableName"]
    billing_mode = request.get("BillingMode", PROVISIONED)
    table_definitions.check_throughput(billing_mode, request.get("ProvisionedThroughput"))
    table = new_table(service, request, name, billing_mode)
    if service.catalog.find(name) is not None:
        raise ResourceInUseException(f"Table already exists: {name}")
    table = replace(table, number=next_table_number(context.write_batch))
    table = _with_stream(context.write_batch, table, now=table.created_at, is_new=True)
    service.catalog.save(context.write_batch, table)
    return _answer(context, table, CREATING)


def describe_table(context: ReadContext, request: Request) -> bytes:
    table = context.service.catalog.described(table_name(request["TableName"]))
    return encode({"Table": description_of(context.service, context.snapshot, table)})


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
    _refuse_unless_active(service, table)
    if table.has_changing_index:
        raise ResourceInUseException(_in_use(table, UPDATING))
    if table.deletion_protection:
        raise ValidationException(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )
    response = _answer(context, table, DELETING)
    if table.recovery is not None and service.recovery is not None:
        # A late import, because recovery's operations import this module to create tables.
        from partita.database.operations.recovery.table_backups import back_up_deleted_table

        back_up_deleted_table(service, context.write_batch, table)
    if service.transient_seconds:
        service.catalog.save(context.write_batch, _in_transition(service, table, DELETING))
    else:
        service.catalog.remove(context.write_batch, table)
    return response


def update_table(context: WriteContext, request: Request) -> bytes:
    table_definitions.refuse_what_is_not_built(request)
    table_changes.check_request(request)
    service = context.service
    table = service.catalog.described(table_name(request["TableName"]))
    _refuse_unless_active(service, table)
    changed = table_changes.changed_table(service, table, request)
    changed = _with_stream(context.write_batch, changed, now=service.clock(), is_new=False)
    service.catalog.save(context.write_batch, _in_transition(service, changed, UPDATING))
    shown = changed
    if changed.billing_mode == PROVISIONED:
        # The response has the old units; the new ones appear when the table is ACTIVE (recorded).
        units = replace(
            changed.throughput,
            read_units=table.throughput.read_units,
            write_units=table.throughput.write_units,
            decreases=table.throughput.decreases_today(service.clock()),
        )
        shown = replace(changed, throughput=units)
    return _answer(context, shown, UPDATING)


def _with_stream(write_batch: WriteBatch, table: Table, *, now: float, is_new: bool) -> Table:
    """Open or close the table's stream, as its view type requires; return the changed table."""
    if table.stream_view_type is not None and table.stream is None:
        stream = open_stream(
            write_batch,
            next_table_number(write_batch),
            table.name,
            table.stream_view_type,
            table.key_names,
            now,
            is_from_the_start=is_new,
            partitions=partition_count(write_batch, table),
        )
        return replace(table, stream=stream, stream_label=stream.label)
    if table.stream_view_type is None and table.stream is not None:
        close_stream(write_batch, table.name, table.stream)
        return replace(table, stream=None)
    return table


def _answer(context: WriteContext, table: Table, status: str) -> bytes:
    description = description_of(context.service, context.write_batch, table, status)
    return encode({"TableDescription": description})


def _refuse_unless_active(service: DatabaseService, table: Table) -> None:
    status = table.status(service.clock())
    if status != ACTIVE:
        raise ResourceInUseException(_in_use(table, status))


def _in_use(table: Table, status: str) -> str:
    doing = {CREATING: "created", UPDATING: "updated", DELETING: "deleted"}[status]
    return (
        f"Attempt to change a resource which is still in use: Table is being {doing}: {table.name}"
    )


def _in_transition(service: DatabaseService, table: Table, transition: str) -> Table:
    settles_at = service.clock() + service.transient_seconds
    return replace(table, transition=transition, settles_at=settles_at)


def _resource_policy(
    service: DatabaseService, request: Request, name: str
) -> ResourcePolicy | None:
    if "ResourcePolicy" not in request:
        return None
    return new_policy(service, request["ResourcePolicy"], service.table_arn(name))


def new_table(service: DatabaseService, request: Request, name: str, billing_mode: str) -> Table:
    types = table_definitions.attribute_types(request["AttributeDefinitions"])
    keys = table_definitions.table_keys(request["KeySchema"], types)
    numbers = count(1)
    indexes: list[Index] = []
    if "LocalSecondaryIndexes" in request:
        indexes += table_definitions.local_indexes(
            request["LocalSecondaryIndexes"], keys, types, numbers
        )
    if "GlobalSecondaryIndexes" in request:
        indexes += table_definitions.global_indexes(
            request["GlobalSecondaryIndexes"], types, numbers, billing_mode
        )
    table_definitions.check_index_set(indexes)
    table_definitions.check_on_demand_throughput(request.get("OnDemandThroughput"), billing_mode)
    check_sse(service, request.get("SSESpecification"))
    throughput = table_definitions.throughput(request.get("ProvisionedThroughput"))
    table_definitions.check_warm_throughput(
        request.get("WarmThroughput"), warm_throughput(billing_mode, throughput, None)
    )
    now = service.clock()
    table = Table(
        name=name,
        number=0,
        table_id=service.new_id(),
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
        sse=sse_description(service, request.get("SSESpecification")),
        key_secret=service.new_key_secret() if service.encryption_key else b"",
        stream_view_type=table_definitions.stream_view_type(request.get("StreamSpecification")),
        tags=check_tags(request.get("Tags", ())),
        resource_policy=_resource_policy(service, request, name),
    )
    table_definitions.check_all_used(table)
    return _in_transition(service, table, CREATING)
