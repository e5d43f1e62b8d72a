"""The background job of auto scaling, scheduled capacity, and partition splits by size.

It runs once a second. Consumption is in the ledger, provisioned units are in the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from partita.database.capacity.ledger import Ledger
from partita.database.capacity.scaling.auto_scaling import ScalingPolicy, scaled_units
from partita.database.capacity.scaling.capacity_schedules import ScheduledChange
from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import ACTIVE, PROVISIONED, Index, Table
from partita.database.tables.table_statistics import read_statistics
from partita.foundation.clock import Clock


class _Kind(NamedTuple):
    """Reads or writes, with the names of their members in the schema."""

    name: str
    units: str
    policy: str


KINDS = (
    _Kind("read", "read_units", "read_scaling"),
    _Kind("write", "write_units", "write_scaling"),
)


class AutoScalingJob:
    """The job that changes provisioned units and splits partitions that store too much."""

    def __init__(
        self,
        catalog: TableCatalog,
        snapshot: Snapshot,
        clock: Clock,
        ledger: Ledger,
        schedules: Sequence[ScheduledChange] = (),
    ) -> None:
        self._catalog = catalog
        self._snapshot = snapshot
        self._clock = clock
        self._ledger = ledger
        self._schedules = schedules
        self._checked_at = clock()
        self._scaled_at: dict[tuple[int, str | None, str], float] = {}

    def work(self, write_batch: WriteBatch) -> bool:
        if not (self._ledger.is_on or self._ledger.tables or self._schedules):
            return False
        now = self._clock()
        self._ledger.keep_only(table.number for table in self._catalog)
        self._fit_partitions(now)
        write_batch.after_merge(partial(self._check_at, now))
        due = [change for change in self._schedules if change.is_due_between(self._checked_at, now)]
        changed = [
            after
            for table in self._catalog
            if table.status(now) == ACTIVE
            for after in [self._scaled(_rescheduled(table, due, now), now)]
            if after is not table and after != table
        ]
        for table in changed:
            self._catalog.save(write_batch, table)
        return bool(changed)

    def _check_at(self, now: float) -> None:
        self._checked_at = now

    def _fit_partitions(self, now: float) -> None:
        for table in self._catalog:
            accounts = self._ledger.tables.get(table.number)
            numbers = {index.name: index.number for index in table.indexes}
            for account in accounts or ():
                number = numbers.get(account.index_name, 0) if account.index_name else 0
                size = read_statistics(self._snapshot, table.number, number).size_bytes
                account.partitions.fit(size, now)

    def _scaled(self, table: Table, now: float) -> Table:
        """Returns the table with the units that its auto scaling policies want."""
        if table.billing_mode != PROVISIONED:
            return table
        for owner in table.capacity_owners:
            targets = [self._target_units(table, owner, kind, now) for kind in KINDS]
            table = _with_units(table, owner, targets, now)
        return table

    def _target_units(self, table: Table, owner: Table | Index, kind: _Kind, now: float) -> int:
        units: int = getattr(owner.throughput, kind.units)
        policy: ScalingPolicy | None = getattr(owner, kind.policy)
        if policy is None:
            return units
        index_name = owner.name if isinstance(owner, Index) else None
        accounts = self._ledger.tables.get(table.number)
        account = accounts and accounts.find(index_name)
        minutes = account.side(kind.name == "write").minutes if account else {}
        key = (table.number, index_name, kind.name)
        target = scaled_units(policy, units, minutes, now, self._scaled_at.get(key))
        if target < units and self._ledger.is_enforced and owner.throughput.next_decrease_at(now):
            return units
        if target != units:
            self._scaled_at[key] = now
        return target


def _rescheduled(table: Table, due: Sequence[ScheduledChange], now: float) -> Table:
    """Returns the table after the scheduled changes that are due.

    A change sets new bounds for auto scaling, and moves the units between them.
    """
    for change in due:
        owner = table.index(change.index) if change.index else table
        if change.table != table.name or owner is None:
            continue
        bounds = {kind: _bounds(owner, change, kind) for kind in KINDS}
        policies = {
            kind.policy: replace(policy, minimum=bounds[kind][0], maximum=bounds[kind][1])
            for kind in KINDS
            if (policy := getattr(owner, kind.policy))
        }
        units = [
            max(bounds[kind][0], min(bounds[kind][1], getattr(owner.throughput, kind.units)))
            for kind in KINDS
        ]
        owner = replace(owner, **policies)
        table = _with(table, owner)
        if table.billing_mode == PROVISIONED:
            table = _with_units(table, owner, units, now)
    return table


def _bounds(owner: Table | Index, change: ScheduledChange, kind: _Kind) -> tuple[int, int]:
    """Returns the new minimum and maximum units; a bound that a change leaves out is kept."""
    units: int = getattr(owner.throughput, kind.units)
    policy: ScalingPolicy | None = getattr(owner, kind.policy)
    before = (policy.minimum, policy.maximum) if policy else (units, units)
    minimum = change.units.get(f"{kind.name}_minimum")
    maximum = change.units.get(f"{kind.name}_maximum")
    lowest = before[0] if minimum is None else minimum
    highest = before[1] if maximum is None else maximum
    if minimum is None:
        lowest = min(lowest, highest)
    return lowest, max(lowest, highest)


def _with_units(table: Table, owner: Table | Index, units: Sequence[int], now: float) -> Table:
    if tuple(units) == (owner.throughput.read_units, owner.throughput.write_units):
        return table
    read_units, write_units = units
    throughput = owner.throughput.changed_to(read_units, write_units, now)
    return _with(table, replace(owner, throughput=throughput))


def _with(table: Table, owner: Table | Index) -> Table:
    if isinstance(owner, Index):
        return table.with_index(owner)
    # `owner` is an older version of `table`, whose indexes may have been changed since.
    return replace(owner, indexes=table.indexes)
