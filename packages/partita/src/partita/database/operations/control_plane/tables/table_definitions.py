"""Reads keys, indexes and settings from a CreateTable or UpdateTable request, and checks them in
AWS's order.

The error messages are the service's, recorded by public conformance suites and message catalogs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from partita.database.item.key_encoding import KeyAttribute
from partita.database.operations.operation_context import Request
from partita.database.tables.definition.table_schema import (
    INCLUDE,
    PAY_PER_REQUEST,
    PROVISIONED,
    Index,
    ProvisionedThroughput,
    Table,
)
from partita.database.tables.definition.table_throughput import warm_throughput
from partita.errors import INVALID, ValidationException
from partita.foundation.service_limits import (
    GLOBAL_INDEXES_PER_TABLE_MAX,
    INDEX_KEY_ATTRIBUTES_MAX,
    LOCAL_INDEXES_PER_TABLE_MAX,
    PROJECTED_ATTRIBUTES_MAX,
    PROVISIONED_UNITS_MAX,
)

Keys = tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]

TOO_MANY_GLOBAL_INDEXES = (
    f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of "
    f"{GLOBAL_INDEXES_PER_TABLE_MAX}"
)
NOT_BUILT = (
    "VectorIndexes",
    "VectorIndexUpdates",
    "GlobalTableSourceArn",
    "GlobalTableSettingsReplicationMode",
    "GlobalTableWitnessUpdates",
    "ReplicaUpdates",
    "MultiRegionConsistency",
    "DisassociationProtectionEnabled",
)


def refuse_what_is_not_built(request: Request) -> None:
    for name in NOT_BUILT:
        if name in request:
            raise ValidationException(f"{INVALID}{name} is not supported")


def attribute_types(definitions: Iterable[dict[str, str]]) -> dict[str, str]:
    types: dict[str, str] = {}
    for definition in definitions:
        name = definition["AttributeName"]
        if name in types:
            raise ValidationException(f"Attribute Name is duplicated: {name}")
        types[name] = definition["AttributeType"]
    return types


def table_keys(key_schema: list[dict[str, str]], types: dict[str, str]) -> Keys:
    if len(key_schema) > len(types):
        raise ValidationException("Invalid KeySchema: Some index key attribute have no definition")
    return _simple_keys(key_schema, types)


def check_all_used(table: Table) -> None:
    """Check that every defined attribute is a key attribute of the table or an index."""
    used = dict.fromkeys(name for name, _ in table.key_attributes)
    for index in table.indexes:
        used |= dict.fromkeys(name for name, _ in index.key_attributes)
    if len(used) == len(table.attribute_types):
        return
    if not table.indexes:
        raise ValidationException(
            f"{INVALID}Number of attributes in KeySchema does not exactly match number of "
            "attributes defined in AttributeDefinitions"
        )
    raise ValidationException(
        f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: "
        f"{_listed(table.attribute_types)}, keys used: {_listed(used)}"
    )


def local_indexes(
    requested: list[dict[str, Any]],
    table_keys: Keys,
    types: dict[str, str],
    numbers: Iterable[int],
) -> list[Index]:
    (partition,), sort = table_keys
    if not requested:
        raise ValidationException(f"{INVALID}List of LocalSecondaryIndexes is empty")
    if not sort:
        raise ValidationException(
            f"{INVALID}Table KeySchema does not have a range key, which is required when "
            "specifying a LocalSecondaryIndex"
        )
    indexes = []
    for request, number in zip(requested, numbers, strict=False):
        name = request["IndexName"]
        keys = _simple_keys(request["KeySchema"], types)
        if not keys[1]:
            raise ValidationException(
                f"{INVALID}Index KeySchema does not have a range key for index: {name}"
            )
        if keys[0][0] != partition:
            raise ValidationException(
                f"{INVALID}Index KeySchema does not have the same leading hash key as table "
                f"KeySchema for index: {name}. index hash key: {keys[0][0].name}, "
                f"table hash key: {partition.name}"
            )
        indexes.append(_index(request, number, keys, is_local=True))
    _check_names(indexes)
    if len(indexes) > LOCAL_INDEXES_PER_TABLE_MAX:
        raise ValidationException(
            f"{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of "
            f"{LOCAL_INDEXES_PER_TABLE_MAX}"
        )
    return indexes


def global_indexes(
    requested: list[dict[str, Any]],
    types: dict[str, str],
    numbers: Iterable[int],
    billing_mode: str,
) -> list[Index]:
    if not requested:
        raise ValidationException(f"{INVALID}List of GlobalSecondaryIndexes is empty")
    indexes = []
    for request, number in zip(requested, numbers, strict=False):
        index = global_index(request, types, number)
        check_index_settings(index, request, billing_mode)
        indexes.append(index)
    _check_names(indexes)
    if len(indexes) > GLOBAL_INDEXES_PER_TABLE_MAX:
        raise ValidationException(TOO_MANY_GLOBAL_INDEXES)
    return indexes


def global_index(request: dict[str, Any], types: dict[str, str], number: int) -> Index:
    return _index(request, number, _index_keys(request["KeySchema"], types), is_local=False)


def check_index_set(indexes: Sequence[Index]) -> None:
    _check_names(indexes)
    projected = sum(len(index.non_key_attributes) for index in indexes)
    if projected > PROJECTED_ATTRIBUTES_MAX:
        raise ValidationException(
            f"{INVALID}Number of NonKeyAttributes in all indexes exceeds the per-table limit of "
            f"{PROJECTED_ATTRIBUTES_MAX}"
        )


def check_throughput(billing_mode: str, throughput: dict[str, int] | None) -> None:
    if billing_mode == PAY_PER_REQUEST and throughput is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
            "BillingMode is PAY_PER_REQUEST"
        )
    if billing_mode == PROVISIONED and throughput is None:
        raise ValidationException(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when "
            "BillingMode is PROVISIONED"
        )
    if throughput is not None:
        check_units(throughput)


def check_units(throughput: dict[str, int], suffix: str = "") -> None:
    for name in ("ReadCapacityUnits", "WriteCapacityUnits"):
        if throughput[name] > PROVISIONED_UNITS_MAX:
            raise ValidationException(
                f"Given value {throughput[name]} for {name} is out of bounds{suffix}"
            )


def check_index_settings(index: Index, request: dict[str, Any], billing_mode: str) -> None:
    """Check the throughput settings of a global index that is being created."""
    check_index_throughput(index.name, request.get("ProvisionedThroughput"), billing_mode)
    subject = f"index {index.name}"
    check_on_demand_throughput(request.get("OnDemandThroughput"), billing_mode, subject)
    start = warm_throughput(billing_mode, index.throughput, None)
    check_warm_throughput(request.get("WarmThroughput"), start, subject)


def check_index_throughput(name: str, throughput: dict[str, int] | None, billing_mode: str) -> None:
    if billing_mode == PAY_PER_REQUEST and throughput is not None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput should not be specified for index: {name} when "
            "BillingMode is PAY_PER_REQUEST"
        )
    if billing_mode == PROVISIONED and throughput is None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput is not specified for index: {name}"
        )
    if throughput is not None:
        check_units(throughput, f" for index {name}")


def throughput(units: dict[str, int] | None) -> ProvisionedThroughput:
    if units is None:
        return ProvisionedThroughput()
    return ProvisionedThroughput(units["ReadCapacityUnits"], units["WriteCapacityUnits"])


def check_on_demand_throughput(
    maximums: dict[str, int] | None, billing_mode: str, subject: str = "table"
) -> None:
    """Check the maximums of a table, or of the index that `subject` names."""
    if maximums is None:
        return
    for name in ("MaxReadRequestUnits", "MaxWriteRequestUnits"):
        units = maximums.get(name)
        if units is None:
            continue
        if billing_mode == PROVISIONED:
            raise ValidationException(
                f"{INVALID}{name} for OnDemandThroughput cannot be specified when the table "
                "BillingMode is PROVISIONED"
            )
        # -1 removes a maximum.
        if units < 1 and units != -1:
            raise ValidationException(
                f"{INVALID}Requested {name} for OnDemandThroughput for {subject} is outside of "
                "valid range"
            )


def check_warm_throughput(
    requested: dict[str, int] | None, current: dict[str, int], subject: str = "table"
) -> None:
    """Refuse to decrease warm throughput, which can only grow."""
    for name in ("ReadUnitsPerSecond", "WriteUnitsPerSecond"):
        units = (requested or {}).get(name)
        if units is not None and units < current[name]:
            raise ValidationException(
                f"{INVALID}Requested {name} for WarmThroughput for {subject} is lower than current "
                f"WarmThroughput, requested: {units}, current: {current[name]}"
            )


def stream_view_type(specification: dict[str, Any] | None) -> str | None:
    """Returns the view type of a new table's stream, or None without a stream."""
    if specification is None:
        return None
    view_type: str | None = specification.get("StreamViewType")
    if specification["StreamEnabled"] and view_type is None:
        raise ValidationException(
            f"{INVALID}Table is being created with a stream enabled, UpdateViewType is required"
        )
    if not specification["StreamEnabled"] and view_type is not None:
        raise ValidationException(
            f"{INVALID}Table is being created with a stream disabled, UpdateViewType should not "
            "be specified"
        )
    return view_type


def _index(request: dict[str, Any], number: int, keys: Keys, *, is_local: bool) -> Index:
    projection = request["Projection"]
    _check_projection(projection)
    return Index(
        name=request["IndexName"],
        number=number,
        is_local=is_local,
        partition=keys[0],
        sort=keys[1],
        projection_type=projection["ProjectionType"],
        non_key_attributes=tuple(projection.get("NonKeyAttributes", ())),
        throughput=throughput(request.get("ProvisionedThroughput")),
        on_demand_throughput=request.get("OnDemandThroughput"),
        warm_throughput=request.get("WarmThroughput"),
    )


def _check_projection(projection: dict[str, Any]) -> None:
    kind, names = projection.get("ProjectionType"), projection.get("NonKeyAttributes")
    if kind is None:
        raise ValidationException(f"{INVALID}Unknown ProjectionType: null")
    if kind == INCLUDE and names is None:
        raise ValidationException(
            f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified"
        )
    if kind != INCLUDE and names is not None:
        raise ValidationException(
            f"{INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified"
        )
    seen: set[str] = set()
    for name in names or ():
        if name in seen:
            raise ValidationException(f"{INVALID}Duplicate element in NonKeyAttributes: {name}")
        seen.add(name)


def _check_names(indexes: Sequence[Index]) -> None:
    seen = set()
    for index in indexes:
        if index.name in seen:
            raise ValidationException(f"{INVALID}Duplicate index name: {index.name}")
        seen.add(index.name)


def _simple_keys(key_schema: list[dict[str, str]], types: dict[str, str]) -> Keys:
    """Returns the keys of a table or local index: a partition key and perhaps a sort key."""
    names = [element["AttributeName"] for element in key_schema]
    _check_defined(names, types)
    if len(set(names)) < len(names):
        raise ValidationException(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
        )
    if key_schema[0]["KeyType"] != "HASH":
        raise ValidationException(
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
        )
    if len(key_schema) > 1 and key_schema[1]["KeyType"] != "RANGE":
        raise ValidationException(
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
        )
    partition, *sort = [KeyAttribute(name, types[name]) for name in names]
    return (partition,), tuple(sort)


def _index_keys(key_schema: list[dict[str, str]], types: dict[str, str]) -> Keys:
    """Returns the keys of a global index: up to four attributes of each kind."""
    names = [element["AttributeName"] for element in key_schema]
    kinds = [element["KeyType"] for element in key_schema]
    _check_defined(names, types)
    if len(set(names)) < len(names):
        raise ValidationException(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
            if len(names) == 2
            else "The KeySchema contains multiple key attributes with the same name"
        )
    if kinds[0] != "HASH":
        raise ValidationException(
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
        )
    if kinds != sorted(kinds):
        raise ValidationException(
            f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema"
        )
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > INDEX_KEY_ATTRIBUTES_MAX:
            raise ValidationException(
                f"{INVALID}The KeySchema exceeds the maximum allowed number of {kind} key "
                "attributes"
            )
    attributes = [KeyAttribute(name, types[name]) for name in names]
    return tuple(attributes[: kinds.count("HASH")]), tuple(attributes[kinds.count("HASH") :])


def _check_defined(names: list[str], types: dict[str, str]) -> None:
    missing = [name for name in names if name not in types]
    if missing:
        raise ValidationException(
            f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: {_listed(names)}, AttributeDefinitions: {_listed(types)}"
        )


def _listed(names: Iterable[str]) -> str:
    """Returns names in alphabetical order, as the service lists them (recorded)."""
    return f"[{', '.join(sorted(names))}]"
