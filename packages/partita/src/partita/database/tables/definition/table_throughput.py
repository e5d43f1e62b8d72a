"""The throughput of a table or index according to the catalog: its units and its partitions."""

from __future__ import annotations

from partita.database.capacity.capacity_accounts import Entitlement
from partita.database.capacity.partition_sizing import on_demand_partitions_for
from partita.database.storage.engine import Reader
from partita.database.tables.definition.table_schema import (
    PAY_PER_REQUEST,
    PROVISIONED,
    Index,
    ProvisionedThroughput,
    Table,
)
from partita.database.tables.table_statistics import read_statistics
from partita.foundation.service_limits import ON_DEMAND_READ_UNITS, ON_DEMAND_WRITE_UNITS

ON_DEMAND_PARTITIONS = on_demand_partitions_for(ON_DEMAND_READ_UNITS, ON_DEMAND_WRITE_UNITS)
"""The partitions of a new on-demand table."""


def warm_throughput(
    billing_mode: str, units: ProvisionedThroughput, requested: dict[str, int] | None
) -> dict[str, int]:
    """Returns what a table can serve at once: the requested warm throughput, or the initial one
    of its billing mode."""
    if billing_mode == PROVISIONED:
        start = {"ReadUnitsPerSecond": units.read_units, "WriteUnitsPerSecond": units.write_units}
    else:
        start = {
            "ReadUnitsPerSecond": ON_DEMAND_READ_UNITS,
            "WriteUnitsPerSecond": ON_DEMAND_WRITE_UNITS,
        }
    return start | (requested or {})


def entitlement(table: Table, index: Index | None = None) -> Entitlement:
    """Returns what a table, or one of its global indexes, may consume.

    A local index has no entitlement: it consumes its table's.
    """
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
    """Returns how many partitions a table or global index needs for its units and its data."""
    size = read_statistics(reader, table.number, index.number if index else 0).size_bytes
    return entitlement(table, index).partitions(size)


def _maximum(units: int | None) -> int | None:
    """Returns the maximum, or None for -1, by which a request removes it (guide)."""
    return None if units is None or units < 0 else units
