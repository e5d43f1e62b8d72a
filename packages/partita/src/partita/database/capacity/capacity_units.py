"""Capacity units, and their report in a response (ConsumedCapacity).

A write unit covers 1 KB, a read unit 4 KB. An eventually consistent read costs half, a transaction
double. Sizes are rounded up, and even a missing item costs as much as a small one. (Guide, "Read
and write operations".)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from partita.foundation.service_limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES


def write_units(size_bytes: int) -> int:
    """Returns the units of writing an item of this size outside of a transaction."""
    return max(1, -(-size_bytes // WRITE_UNIT_BYTES))


def read_units(size_bytes: int, *, consistent: bool) -> float:
    """Returns the units of reading this many bytes outside of a transaction."""
    return max(1, -(-size_bytes // READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


@dataclass(slots=True)
class ConsumedCapacity:
    """The units that one request consumed on one table; indexes without any are missing."""

    table: float = 0.0
    local_indexes: dict[str, float] = field(default_factory=dict)
    global_indexes: dict[str, float] = field(default_factory=dict)

    def add_index(self, name: str, units: float, *, is_local: bool) -> None:
        indexes = self.local_indexes if is_local else self.global_indexes
        indexes[name] = indexes.get(name, 0.0) + units

    def add(self, other: ConsumedCapacity) -> None:
        self.table += other.table
        for name, units in other.local_indexes.items():
            self.add_index(name, units, is_local=True)
        for name, units in other.global_indexes.items():
            self.add_index(name, units, is_local=False)

    @property
    def total(self) -> float:
        return self.table + sum(self.local_indexes.values()) + sum(self.global_indexes.values())

    def report(
        self, table_name: str, mode: str | None, transaction_member: str | None = None
    ) -> dict[str, Any] | None:
        """Returns the ConsumedCapacity member, or None if the request does not ask for it.

        Transactions repeat the units in `ReadCapacityUnits` or `WriteCapacityUnits`, which
        `transaction_member` is then; other operations never do (recorded).
        """
        if mode not in ("TOTAL", "INDEXES"):
            return None

        def capacity(units: float) -> dict[str, float]:
            shown = {"CapacityUnits": float(units)}
            return shown | {transaction_member: float(units)} if transaction_member else shown

        report: dict[str, Any] = {"TableName": table_name, **capacity(self.total)}
        if mode == "INDEXES":
            report["Table"] = capacity(self.table)
            report |= _index_reports("LocalSecondaryIndexes", self.local_indexes, capacity)
            report |= _index_reports("GlobalSecondaryIndexes", self.global_indexes, capacity)
        return report


def _index_reports(
    member: str, units: Mapping[str, float], capacity: Callable[[float], dict[str, float]]
) -> dict[str, dict[str, dict[str, float]]]:
    return {member: {name: capacity(used) for name, used in units.items()}} if units else {}
