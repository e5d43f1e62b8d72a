"""Write sharding: how many keys one hot partition key must become."""

from __future__ import annotations

import math

from partita.foundation.service_limits import (
    PARTITION_WRITE_UNITS,
    TRANSACTION_FACTOR,
    WRITE_UNIT_BYTES,
)
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.column_sources import column_source
from partita_migrate.designing.proposals.pattern_usage import DATES, KEY_LOAD
from partita_migrate.understanding.schema.column_refs import ColumnRef


def shards(plan: ItemPlan, entity: str, refs: tuple[ColumnRef, ...]) -> tuple[int, str]:
    """How many keys one partition key must become, with the reason."""
    share, which = _top_share(plan, entity, refs)
    # A transaction, for versions and unique values, doubles what an item costs.
    units = math.ceil(plan.inputs.volumes.row_bytes(entity) / WRITE_UNIT_BYTES) * TRANSACTION_FACTOR
    writes = plan.workload.writes_of(entity)
    load = share * units * sum(write.rate * write.pattern.items for write in writes)
    if load <= PARTITION_WRITE_UNITS:
        return 1, ""
    count = math.ceil(load / (PARTITION_WRITE_UNITS * KEY_LOAD))
    return count, (
        f"Write sharding over {count} keys: {which} gets {load:,.0f} write units a second, and"
        f" a partition takes {PARTITION_WRITE_UNITS:,}."
    )


def _top_share(plan: ItemPlan, entity: str, refs: tuple[ColumnRef, ...]) -> tuple[float, str]:
    """The share of the most frequent key, and in words which one it is."""
    volumes = plan.inputs.volumes
    columns = [column_source(plan.inputs, entity, ref).column for ref in refs]
    names = [ref.column for ref in columns]
    if all(volumes.kind(ref) in (*DATES, "time") for ref in columns):
        return 1.0, f"the current {' and '.join(names)}"
    if any(ref.table != entity for ref in columns):
        return 0.0, ""
    skew = volumes.skew(entity, names)
    return (skew.top_share if skew else 0.0), f"the most frequent {' and '.join(names)}"
