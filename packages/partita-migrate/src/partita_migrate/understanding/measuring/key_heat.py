"""Key heat: finds keys of which one value would get more traffic than a partition can serve.

A partition serves 1,000 write and 3,000 read units per second, and all items with one partition key
value can be in one partition. How calls spread over values is unknown beforehand. They are assumed
to spread as the rows do, except that everything new has today's date.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from partita.foundation.service_limits import (
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    READ_UNIT_BYTES,
    WRITE_UNIT_BYTES,
)
from partita_migrate.understanding.analysis import KeySkew, significant
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable


@dataclass(frozen=True)
class KeyDemand:
    """The load of the patterns on the items of one table, through one key."""

    reads_per_second: float = 0.0
    read_units: float = 0.0
    writes_per_second: float = 0.0
    write_units: float = 0.0
    insert_units: float = 0.0


def with_heat(
    skew: KeySkew, table: SourceTable, patterns: Sequence[AccessPattern], item_bytes: int
) -> KeySkew:
    """Returns the key with its risk at the rates of the patterns, and a sentence about it."""
    demand = _demand(skew, table, patterns, item_bytes)
    is_day = _is_day(skew, table)
    write_share = 1.0 if is_day and demand.insert_units else skew.top_share
    writes = demand.write_units * write_share
    reads = demand.read_units * skew.top_share
    return replace(
        skew,
        reads_per_second=significant(demand.reads_per_second, 6),
        writes_per_second=significant(demand.writes_per_second, 6),
        is_hot=writes > PARTITION_WRITE_UNITS or reads > PARTITION_READ_UNITS,
        reason=_reason(skew, demand, writes, reads, is_day),
    )


def _demand(
    skew: KeySkew, table: SourceTable, patterns: Iterable[AccessPattern], item_bytes: int
) -> KeyDemand:
    names = {str(ColumnRef(table.name, column)) for column in skew.columns}
    reads = read_units = writes = write_units = insert_units = 0.0
    for pattern in patterns:
        if pattern.table != table.name:
            continue
        items = max(pattern.items, 1)
        if pattern.operation in ("read", "aggregate"):
            # A read that does not give the key is spread over all values. A write always has a key.
            if not names.issubset(pattern.equality):
                continue
            reads += pattern.calls_per_second
            units = math.ceil(items * item_bytes / READ_UNIT_BYTES) or 1
            # An eventually consistent read costs half.
            weight = 1.0 if pattern.is_consistent else 0.5
            read_units += pattern.calls_per_second * units * weight
        else:
            writes += pattern.calls_per_second
            written = (
                pattern.calls_per_second * items * (math.ceil(item_bytes / WRITE_UNIT_BYTES) or 1)
            )
            write_units += written
            if pattern.operation == "insert":
                insert_units += written
    return KeyDemand(reads, read_units, writes, write_units, insert_units)


def _is_day(skew: KeySkew, table: SourceTable) -> bool:
    """A key of nothing but a date: all that is written today has the same one."""
    kinds = {column.name: column.kind for column in table.columns}
    return [kinds.get(name) for name in skew.columns] == ["date"]


def _reason(skew: KeySkew, demand: KeyDemand, writes: float, reads: float, is_day: bool) -> str:
    if not skew.distinct:
        return "No row has a value."
    if is_day and writes > PARTITION_WRITE_UNITS:
        return (
            f"Everything written on one day has the same value: {writes:,.0f} write units a second"
            f" for a partition that serves {PARTITION_WRITE_UNITS:,}."
        )
    top = _top(skew)
    if not demand.reads_per_second and not demand.writes_per_second:
        return f"{top}; no pattern uses it, so its heat is unknown."
    if writes > PARTITION_WRITE_UNITS:
        return (
            f"{top}, which would take {writes:,.0f} of {demand.write_units:,.0f} write units a"
            f" second; a partition serves {PARTITION_WRITE_UNITS:,}."
        )
    if reads > PARTITION_READ_UNITS:
        return (
            f"{top}, which would take {reads:,.0f} of {demand.read_units:,.0f} read units a"
            f" second; a partition serves {PARTITION_READ_UNITS:,}."
        )
    return (
        f"{top}, at most {_few(writes)} write and {_few(reads)} read units a second; a partition"
        f" serves {PARTITION_WRITE_UNITS:,} and {PARTITION_READ_UNITS:,}."
    )


def _top(skew: KeySkew) -> str:
    if skew.is_unique:
        return "Each value identifies one row"
    value = f"the value {skew.top_value}" if skew.top_value is not None else "one value"
    return f"{_percent(skew.top_share)} of the rows share {value}"


def _percent(share: float) -> str:
    percent = share * 100
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"


def _few(units: float) -> str:
    return f"{units:,.0f}" if units >= 10 else f"{units:.2g}"
