"""The indexes that serve what the table's own key does not serve.

The most frequent read that still needs an index gets one first. A filter is used in place of an
index where reading too much costs less than writing to one more index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from partita.foundation.service_limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES
from partita_migrate.designing.proposals.keys.key_plan import (
    EntityWorkload,
    IndexPlan,
    PlannedKey,
    ServedRead,
    is_exact,
    match,
)
from partita_migrate.designing.proposals.workload import PatternRead
from partita_migrate.understanding.schema.column_refs import ColumnRef

WRITE_UNIT_IN_READ_UNITS = 5
"""The price of a write unit in read units. AWS has the same ratio in every region and class."""


@dataclass(frozen=True)
class PlannedIndexes:
    indexes: list[IndexPlan]
    served: list[ServedRead]
    advice: list[str]


def plan_indexes(subject: EntityWorkload, base: PlannedKey) -> PlannedIndexes:
    indexes: list[IndexPlan] = []
    served: list[ServedRead] = []
    # The inverse direction of a many-to-many relationship comes first: with its index, other reads
    # may need none.
    for read in sorted(subject.reads, key=lambda read: not _is_inverted(base, read)):
        served_read = _serve(subject, base, indexes, read)
        if served_read is None:
            index = _new_index(subject, base, indexes, read)
            indexes.append(index)
            full = match(index.key, read)
            assert full is not None
            served_read = ServedRead(read, index.name, full)
        served.append(served_read)
    used = [
        replace(index, reads=[read.read for read in served if read.index == index.name])
        for index in indexes
    ]
    return PlannedIndexes(used, served, list(_advice(subject, used)))


def _is_inverted(base: PlannedKey, read: PatternRead) -> bool:
    return not read.order and read.equality == base.sort


def _serve(
    subject: EntityWorkload, base: PlannedKey, indexes: list[IndexPlan], read: PatternRead
) -> ServedRead | None:
    """Serves a read by an existing key: exactly, or with a filter that costs less than a new
    index."""
    possible = [
        ServedRead(read, name, how)
        for name, key in _keys(base, indexes, read)
        if (name is None or not _loses_rows(subject, key, read))
        and (how := match(key, read)) is not None
        and (not how.filtered or _filter_cost(subject, key, read) < _index_cost(subject))
    ]
    return min(possible, key=lambda served: bool(served.match.filtered), default=None)


def _keys(
    base: PlannedKey, indexes: list[IndexPlan], read: PatternRead
) -> Iterator[tuple[str | None, PlannedKey]]:
    """Yields the keys that a read may use. Of the indexes, only local ones support consistent
    reads."""
    yield None, base
    for index in indexes:
        if not read.pattern.is_consistent or index.kind == "local":
            yield index.name, index.key


def _filter_cost(subject: EntityWorkload, key: PlannedKey, read: PatternRead) -> float:
    """Returns the read units per second for items that are read and then filtered out."""
    rows = _collection_rows(subject, key)
    if read.pattern.limit:
        # A read with a limit stops when enough items have passed the filter. A tenth of the items
        # is assumed to pass.
        rows = min(rows, read.pattern.limit * 10)
    extra = max(rows - read.pattern.items, 0)
    return read.rate * extra * subject.volumes.row_bytes(subject.entity) / READ_UNIT_BYTES / 2


def _collection_rows(subject: EntityWorkload, key: PlannedKey) -> float:
    columns = [ref.column for ref in key.partition if ref.table == subject.entity]
    if len(columns) == len(key.partition):
        return subject.volumes.rows_per_value(subject.entity, columns)
    return subject.volumes.rows(subject.entity)


def _index_cost(subject: EntityWorkload) -> float:
    """Returns what one more index costs in writes per second, expressed in read units."""
    units = max(subject.volumes.row_bytes(subject.entity) / WRITE_UNIT_BYTES, 1)
    rate = sum(write.rate * write.pattern.items for write in subject.writes)
    return rate * units * WRITE_UNIT_IN_READ_UNITS


def _new_index(
    subject: EntityWorkload, base: PlannedKey, indexes: list[IndexPlan], read: PatternRead
) -> IndexPlan:
    key, why = _index_key(subject, base, read)
    key = _with_identity(subject, base, read, key)
    is_local = read.pattern.is_consistent and key.partition == base.partition
    number = 1 + sum(index.kind == ("local" if is_local else "global") for index in indexes)
    return IndexPlan(
        name=f"{'LSI' if is_local else 'GSI'}{number}",
        kind="local" if is_local else "global",
        key=key,
        why=why,
    )


def _index_key(
    subject: EntityWorkload, base: PlannedKey, read: PatternRead
) -> tuple[PlannedKey, str]:
    """Returns the key of a new index, and the reason for it."""
    names = subject.names(read.equality)
    shortest = _shortest_partition(subject, base, read)
    if shortest != read.equality:
        rest = tuple(ref for ref in read.equality if ref not in shortest)
        sort = (*rest, *read.order)
        return PlannedKey(shortest, sort), (
            f"The sort key is a hierarchy ({subject.names(sort)}): one index serves every level"
            f" of it under {subject.names(shortest)}."
        )
    if read.pattern.hierarchy and read.is_further:
        return PlannedKey(read.equality, read.order), (
            "The sort key is the path from the root of a tree to the row, so that one query"
            " reads the whole subtree of a row; moving a row changes the path of every row below"
            " it."
        )
    if read.order:
        how = "between two values" if read.pattern.range else "in order"
        return PlannedKey(read.equality, read.order), (
            f"{read.pattern.name!r} reads the items of one {names}, {how} of"
            f" {subject.names(read.order)}."
        )
    # Any sort key does for a lookup; the rest of the table's key makes the order of the items
    # stable.
    rest = tuple(ref for ref in base.columns if ref not in read.equality)
    if _is_inverted(base, read):
        return PlannedKey(read.equality, base.partition), (
            f"An inverted index: the table's key with its halves exchanged, for all items of"
            f" one {names}."
        )
    return PlannedKey(read.equality, rest[:1]), (
        f"{read.pattern.name!r} looks up by {names}, which the table's key does not cover."
    )


def _loses_rows(subject: EntityWorkload, key: PlannedKey, read: PatternRead) -> bool:
    """True when rows that a read looks for may have NULL in all columns of an index's sort key,
    which keeps them out of the index."""
    given_columns = {*read.equality, *(read.order[:1] if read.pattern.range else ())}
    return bool(key.sort) and all(
        ref not in given_columns and subject.schema.is_nullable(ref) for ref in key.sort
    )


def _with_identity(
    subject: EntityWorkload, base: PlannedKey, read: PatternRead, key: PlannedKey
) -> PlannedKey:
    """Adds the table's key to a sort key that may be NULL, so that every row is in the index."""
    if not _loses_rows(subject, key, read):
        return key
    return PlannedKey(
        key.partition, (*key.sort, *(ref for ref in base.columns if ref not in key.columns))
    )


def _shortest_partition(
    subject: EntityWorkload, base: PlannedKey, read: PatternRead
) -> tuple[ColumnRef, ...]:
    """Returns fewer columns than the read gives, if another unserved pattern gives only those.

    One index with the rest in its sort key then serves both.
    """
    waiting = [
        other.equality
        for other in subject.reads
        if not other.order
        and set(other.equality) < set(read.equality)
        and match(base, other) is None
    ]
    return min(waiting, key=len, default=read.equality)


def _advice(subject: EntityWorkload, indexes: list[IndexPlan]) -> Iterator[str]:
    """Points out the first index that another one could replace, if the application accepts its
    order."""
    for index in indexes:
        for other in indexes:
            if other is index or not index.reads or index.kind != other.kind:
                continue
            if all(is_exact(other.key, read) for read in index.reads):
                yield (
                    f"{subject.entity}: {other.name} could also serve what {index.name} serves"
                    f" ({', '.join(repr(read.pattern.name) for read in index.reads)}), in the"
                    f" order of {subject.names(other.key.sort) or 'nothing'}; without"
                    f" {index.name} every write updates one index less."
                )
                return
