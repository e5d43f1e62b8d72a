"""What a table or an index may use, as the catalog has it: its units, and what serves these."""

from __future__ import annotations

from partita.database.capacity.accounts import Entitlement
from partita.database.capacity.sizing import on_demand_partitions_for
from partita.database.storage.engine import Reader
from partita.database.tables.schema import PAY_PER_REQUEST, PROVISIONED, Index, Table, Throughput
from partita.database.tables.statistics import read_statistics
from partita.limits import ON_DEMAND_READ_UNITS, ON_DEMAND_WRITE_UNITS

ON_DEMAND_PARTITIONS = on_demand_partitions_for(ON_DEMAND_READ_UNITS, ON_DEMAND_WRITE_UNITS)
"""Of a new on-demand table."""


def warm_throughput(
    billing_mode: str, units: Throughput, asked: dict[str, int] | None
) -> dict[str, int]:
    """What a table can serve at once: what was asked for, or what its billing mode starts with."""
    if billing_mode == PROVISIONED:
        start = {"ReadUnitsPerSecond": units.read_units, "WriteUnitsPerSecond": units.write_units}
    else:
        start = {
            "ReadUnitsPerSecond": ON_DEMAND_READ_UNITS,
            "WriteUnitsPerSecond": ON_DEMAND_WRITE_UNITS,
        }
    return start | (asked or {})


def entitlement(table: Table, index: Index | None = None) -> Entitlement:
    """Of a table, or of one of its global indexes: local ones use what their table has."""
    owner = index or table
    if table.billing_mode == PAY_PER_REQUEST:
        warm = warm_throughput(table.billing_mode, owner.throughput, owner.warm_throughput)
        maximums = owner.on_demand_throughput or {}
        return Entitlement(
            True,
            warm["ReadUnitsPerSecond"],
            warm["WriteUnitsPerSecond"],
            _maximum(maximums.get("MaxReadRequestUnits")),
            _maximum(maximums.get("MaxWriteRequestUnits")),
        )
    units = owner.throughput
    since = max(table.created_at, units.increased_at or 0.0, units.decreased_at or 0.0)
    before = 1 if table.on_demand_since is None else ON_DEMAND_PARTITIONS
    return Entitlement(
        False, units.read_units, units.write_units, since=since, partitions_min=before
    )


def partition_count(reader: Reader, table: Table, index: Index | None = None) -> int:
    """How many partitions the units and the data of a table, or of a global index, ask for."""
    size = read_statistics(reader, table.number, index.number if index else 0).size_bytes
    return entitlement(table, index).partitions(size)


def _maximum(units: int | None) -> int | None:
    """-1 takes a maximum away (guide)."""
    return None if units is None or units < 0 else units
