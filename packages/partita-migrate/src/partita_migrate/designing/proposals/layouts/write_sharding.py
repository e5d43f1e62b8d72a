"""Write sharding: the number of keys that one hot partition key is spread over."""

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
    """Returns the number of shards of a partition key, and the reason when there is more than
    one."""
    share, which = _top_share(plan, entity, refs)
    # Versions and unique values are written in transactions, which doubles the cost of an item.
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
    """Returns the share of the most frequent key, and a phrase that says which key that is."""
    volumes = plan.inputs.volumes
    columns = [column_source(plan.inputs, entity, ref).column for ref in refs]
    names = [ref.column for ref in columns]
    # New rows have the current date, so one key takes all of them.
    if all(volumes.kind(ref) in (*DATES, "time") for ref in columns):
        return 1.0, f"the current {' and '.join(names)}"
    if any(ref.table != entity for ref in columns):
        return 0.0, ""
    skew = volumes.skew(entity, names)
    return (skew.top_share if skew else 0.0), f"the most frequent {' and '.join(names)}"
