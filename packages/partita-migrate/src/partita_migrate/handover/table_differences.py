"""Compares an existing table with the design, and says which updates would make it equal.

Things that somebody added, such as more tags, do not count as differences. An extra index does,
because every write pays for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from partita_migrate.handover.auto_scaling_updates import (
    TableUpdate,
    bounds_text,
    region_of,
    scaling_update,
)
from partita_migrate.handover.table_requests import AutoScalingBounds, TableRequest, tag_list

ON_DEMAND = "PAY_PER_REQUEST"


class TableDifference(Struct, frozen=True, kw_only=True):
    what: str
    """One sentence: what the table has, and what the design says."""
    update: TableUpdate | None = None
    """None if the table has to be created anew."""


class ExistingTable(Struct, frozen=True, kw_only=True):
    """The description of an existing table, as the server gives it."""

    description: dict[str, Any]
    tags: dict[str, str] | None
    time_to_live: str | None
    point_in_time_recovery: bool | None
    """None, like `tags`, if the server does not know the feature."""
    scaling: list[AutoScalingBounds] | None = None

    @property
    def arn(self) -> str:
        return str(self.description.get("TableArn", ""))


def differences(designed: TableRequest, existing: ExistingTable) -> list[TableDifference]:
    looks = (
        _keys, _local_indexes, _capacity, _scaling, _global_indexes, _stream, _time_to_live, _tags,
        _table_class, _deletion_protection, _recovery,
    )  # fmt: skip
    return [difference for look in looks for difference in look(designed, existing)]


def _keys(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    here = key_text(existing.description, existing.description)
    there = key_text(designed.create, designed.create)
    if here != there:
        yield TableDifference(
            what=f"Its key is {here}, and the design says {there}: the table has to be created"
            " anew."
        )


def key_text(keyed: dict[str, Any], table: dict[str, Any]) -> str:
    """Returns the key of a table or an index with its types, such as "PK (S), SK (N)"."""
    types = {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in table["AttributeDefinitions"]
    }
    return ", ".join(
        f"{key['AttributeName']} ({types.get(key['AttributeName'], '?')})"
        for key in keyed["KeySchema"]
    )


def _projection_text(index: dict[str, Any]) -> str:
    projection = index["Projection"]
    names = sorted(projection.get("NonKeyAttributes", []))
    return str(projection["ProjectionType"]) + (f" {', '.join(names)}" if names else "")


def _index_texts(
    index: dict[str, Any], table: dict[str, Any], name: str
) -> Iterator[tuple[str, str]]:
    yield f"the key of {name}", key_text(index, table)
    yield f"the projection of {name}", _projection_text(index)


def _otherwise(
    kind: str, designed: TableRequest, existing: ExistingTable, mine: list[dict[str, Any]]
) -> Iterator[TableDifference]:
    """Yields indexes that exist on both sides and differ, and indexes that only the table has."""
    theirs = {index["IndexName"]: index for index in existing.description.get(kind, [])}
    for index in mine:
        name = index["IndexName"]
        if name not in theirs:
            continue
        here = _index_texts(theirs[name], existing.description, name)
        there = _index_texts(index, designed.create, name)
        for (what, is_so), (_, says) in zip(here, there, strict=True):
            if is_so != says:
                yield TableDifference(
                    what=f"{what[0].upper()}{what[1:]} is {is_so}, and the design says {says}: the"
                    " index has to be created anew."
                )
    for name in sorted(theirs.keys() - {index["IndexName"] for index in mine}):
        yield TableDifference(
            what=f"Its index {name} is not in the design; every write pays for it."
        )


def _local_indexes(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    kind = "LocalSecondaryIndexes"
    yield from _otherwise(kind, designed, existing, designed.local_indexes)
    there = {existing["IndexName"] for existing in existing.description.get(kind, [])}
    for index in designed.local_indexes:
        if index["IndexName"] not in there:
            yield TableDifference(
                what=f"The local index {index['IndexName']} is missing, and can only be created"
                " together with its table."
            )


def _global_indexes(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    kind = "GlobalSecondaryIndexes"
    yield from _otherwise(kind, designed, existing, designed.indexes)
    there = {existing["IndexName"] for existing in existing.description.get(kind, [])}
    for index in designed.indexes:
        if index["IndexName"] not in there:
            yield TableDifference(
                what=f"The index {index['IndexName']} is missing.",
                update=_update_table(
                    designed,
                    AttributeDefinitions=designed.create["AttributeDefinitions"],
                    GlobalSecondaryIndexUpdates=[{"Create": index}],
                ),
            )


def _update_table(designed: TableRequest, **changes: Any) -> TableUpdate:
    return TableUpdate(operation="UpdateTable", request={"TableName": designed.name, **changes})


# Capacity.


def _capacity(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    here, there = _mode(existing.description), designed.create["BillingMode"]
    if here != there:
        yield TableDifference(
            what=f"It is paid {_mode_text(here)}, and the design says {_mode_text(there)}.",
            update=_update_table(designed, **_mode_change(designed, existing)),
        )
        return
    if there == ON_DEMAND:
        return
    if designed.scaling:
        return  # The load decides the current units.
    if (is_so := _units(existing.description)) != (says := _units(designed.create)):
        yield TableDifference(
            what=f"It has {_units_text(is_so)}, and the design says {_units_text(says)}.",
            update=_update_table(
                designed, ProvisionedThroughput=designed.create["ProvisionedThroughput"]
            ),
        )
    for index, is_there in _shared(designed, existing):
        if (is_so := _units(is_there)) != (says := _units(index)):
            name = index["IndexName"]
            yield TableDifference(
                what=f"Its index {name} has {_units_text(is_so)}, and the design says"
                f" {_units_text(says)}.",
                update=_update_table(
                    designed,
                    GlobalSecondaryIndexUpdates=[
                        {
                            "Update": {
                                "IndexName": name,
                                "ProvisionedThroughput": index["ProvisionedThroughput"],
                            }
                        }
                    ],
                ),
            )


def _scaling(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    if not designed.scaling or existing.scaling is None:
        return
    there = {(bounds.index, bounds.kind): bounds for bounds in existing.scaling}
    for bounds in designed.scaling:
        current = there.get((bounds.index, bounds.kind))
        if current == bounds:
            continue
        name = (
            f"{bounds.index}'s {bounds.kind.lower()}s"
            if bounds.index
            else f"Its {bounds.kind.lower()}s"
        )
        scaled = bounds_text(current) if current else "not at all"
        yield TableDifference(
            what=f"{name} scale {scaled}, and the design says {bounds_text(bounds)}.",
            update=scaling_update(designed, region_of(existing.arn)),
        )


def _shared(
    designed: TableRequest, existing: ExistingTable
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yields the global indexes that both sides have, as the design and as the table has them."""
    there = {
        index["IndexName"]: index
        for index in existing.description.get("GlobalSecondaryIndexes", [])
    }
    for index in designed.indexes:
        if index["IndexName"] in there:
            yield index, there[index["IndexName"]]


def _mode(description: dict[str, Any]) -> str:
    # A table that was never on-demand may have no summary.
    return str(description.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"))


def _mode_text(mode: str) -> str:
    return "on demand" if mode == ON_DEMAND else "for provisioned capacity"


def _mode_change(designed: TableRequest, existing: ExistingTable) -> dict[str, Any]:
    if designed.create["BillingMode"] == ON_DEMAND:
        return {"BillingMode": ON_DEMAND}
    change: dict[str, Any] = {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": designed.create["ProvisionedThroughput"],
    }
    updates = [
        {
            "Update": {
                "IndexName": index["IndexName"],
                "ProvisionedThroughput": index["ProvisionedThroughput"],
            }
        }
        for index, _ in _shared(designed, existing)
    ]
    return change | ({"GlobalSecondaryIndexUpdates": updates} if updates else {})


def _units(described: dict[str, Any]) -> tuple[int, int]:
    throughput = described.get("ProvisionedThroughput", {})
    return throughput.get("ReadCapacityUnits", 0), throughput.get("WriteCapacityUnits", 0)


def _units_text(units: tuple[int, int]) -> str:
    return f"{units[0]:,} read and {units[1]:,} write units"


# What can be set at any time.


def _stream(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    here = _view(existing.description)
    there = _view(designed.create)
    if here == there:
        return
    specification = designed.create.get("StreamSpecification")
    can_be_switched_on = specification is not None and here == "none"
    yield TableDifference(
        what=f"Its stream is {here}, and the design says {there}"
        + ("." if can_be_switched_on else "; switch it off first, when nobody reads it any more."),
        update=_update_table(designed, StreamSpecification=specification)
        if can_be_switched_on
        else None,
    )


def _view(table: dict[str, Any]) -> str:
    specification = table.get("StreamSpecification") or {}
    return str(specification["StreamViewType"]) if specification.get("StreamEnabled") else "none"


def _time_to_live(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    here, there = existing.time_to_live, designed.time_to_live
    if here == there:
        return
    yield TableDifference(
        what=f"Items expire by {here or 'no attribute'}, and the design says"
        f" {there or 'that they do not expire'}.",
        update=TableUpdate(
            operation="UpdateTimeToLive",
            request={
                "TableName": designed.name,
                "TimeToLiveSpecification": {"AttributeName": there, "Enabled": True},
            },
        )
        if there and not here
        else None,
    )


def _tags(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    if existing.tags is None:
        return
    there = existing.tags
    changed = {key: value for key, value in designed.tags.items() if there.get(key) != value}
    if not changed:
        return
    texts = [
        f"{key} is {there[key]!r} and not {value!r}"
        if key in there
        else f"{key} = {value!r} is missing"
        for key, value in changed.items()
    ]
    yield TableDifference(
        what=f"Of its tags, {'; '.join(texts)}.",
        update=TableUpdate(
            operation="TagResource",
            request={"ResourceArn": existing.arn, "Tags": tag_list(changed)},
        ),
    )


def _table_class(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    here = existing.description.get("TableClassSummary", {}).get("TableClass", "STANDARD")
    if here != designed.create["TableClass"]:
        yield TableDifference(
            what=f"Its class is {here}, and the design says {designed.create['TableClass']}.",
            update=_update_table(designed, TableClass=designed.create["TableClass"]),
        )


def _deletion_protection(
    designed: TableRequest, existing: ExistingTable
) -> Iterator[TableDifference]:
    here = bool(existing.description.get("DeletionProtectionEnabled"))
    there = bool(designed.create["DeletionProtectionEnabled"])
    if here != there:
        yield TableDifference(
            what=f"Its protection from deletion is {_on(here)}, and the design says {_on(there)}.",
            update=_update_table(designed, DeletionProtectionEnabled=there),
        )


def _recovery(designed: TableRequest, existing: ExistingTable) -> Iterator[TableDifference]:
    here, there = existing.point_in_time_recovery, designed.point_in_time_recovery
    if here is not None and here != there:
        yield TableDifference(
            what=f"Its point-in-time recovery is {_on(here)}, and the design says {_on(there)}.",
            update=recovery_update(designed),
        )


def recovery_update(designed: TableRequest) -> TableUpdate:
    return TableUpdate(
        operation="UpdateContinuousBackups",
        request={
            "TableName": designed.name,
            "PointInTimeRecoverySpecification": {
                "PointInTimeRecoveryEnabled": designed.point_in_time_recovery
            },
        },
    )


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"
