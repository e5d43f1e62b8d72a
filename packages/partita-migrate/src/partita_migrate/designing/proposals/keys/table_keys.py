"""Chooses the table's own key.

Candidates are the ways to identify a row, and the collections that patterns read. The candidate
that serves the highest rate without an index wins, provided that every write knows its columns and
no write changes them.
"""

from __future__ import annotations

from partita_migrate.designing.proposals.keys.key_plan import EntityWorkload, PlannedKey, is_exact
from partita_migrate.designing.proposals.workload import PatternWrite
from partita_migrate.understanding.schema.column_refs import ColumnRef


def choose_table_key(subject: EntityWorkload) -> PlannedKey:
    candidates = enumerate(_candidates(subject))
    return max(candidates, key=lambda candidate: _worth(subject, *candidate))[1]


def _candidates(subject: EntityWorkload) -> list[PlannedKey]:
    if subject.fixed is not None:
        return [subject.fixed]
    candidates = (
        _rotations(subject) if subject.is_identified else [PlannedKey(tuple(subject.identities[0]))]
    )
    for read in subject.reads:
        if read.is_any_item:
            continue
        for identity in subject.identities:
            partition = read.equality
            sort = (*read.order, *(ref for ref in identity if ref not in partition))
            key = PlannedKey(partition, tuple(dict.fromkeys(sort)))
            # A longer key than the unique one would let in duplicates that the source refuses.
            if not subject.is_unique_in_source or set(key.columns) == set(identity):
                candidates.append(key)
    unique = list(dict.fromkeys(candidates))
    return [key for key in unique if _is_possible(subject, key)] or unique[:1]


def _rotations(subject: EntityWorkload) -> list[PlannedKey]:
    """Returns keys with one column of an identity as partition key and the others as sort key."""
    return [
        PlannedKey((ref,), tuple(other for other in identity if other != ref))
        for identity in subject.identities
        for ref in identity
    ]


def _is_possible(subject: EntityWorkload, key: PlannedKey) -> bool:
    changed = {ref for write in subject.writes for ref in _changed(write)}
    # DynamoDB cannot change a key: the item would have to be deleted and put anew.
    if changed & set(key.columns) or not set(key.columns) <= _own_columns(subject):
        return False
    if not subject.is_identified and key.columns == tuple(subject.identities[0]):
        return True
    declared = {ref for identity in subject.identities for ref in identity}
    if subject.is_identified and set(key.columns) <= declared:
        return True
    return not any(_may_be_null(subject, ref) for ref in key.columns if ref not in declared)


def _changed(write: PatternWrite) -> frozenset[ColumnRef]:
    return write.changed if write.pattern.operation == "update" else frozenset()


def _own_columns(subject: EntityWorkload) -> set[ColumnRef]:
    """Returns the row's own columns. A column of another row could change without this row."""
    columns = subject.schema.table(subject.entity).columns
    own = {subject.schema.canonical(ColumnRef(subject.entity, column.name)) for column in columns}
    return own | {ref for identity in subject.identities for ref in identity}


def _may_be_null(subject: EntityWorkload, ref: ColumnRef) -> bool:
    """True when the sample has a NULL; without a sample, when the source allows one."""
    ref = _own(subject, ref)
    if subject.volumes.column(ref) is not None:
        return subject.volumes.null_share(ref) > 0
    return subject.schema.is_nullable(ref)


def _own(subject: EntityWorkload, ref: ColumnRef) -> ColumnRef:
    """Returns the entity's own column for a column that it refers to: the foreign key can be NULL,
    while the key that it refers to never is."""
    columns = subject.schema.table(subject.entity).columns
    own = (ColumnRef(subject.entity, column.name) for column in columns)
    return next((column for column in own if subject.schema.canonical(column) == ref), ref)


def _worth(subject: EntityWorkload, position: int, key: PlannedKey) -> tuple[float, ...]:
    """Rates a candidate: writes that do not know the key count against it, then served reads for
    it."""
    unknown = sum(
        write.rate
        for write in subject.writes
        if write.pattern.operation != "insert" and not set(key.columns) <= write.known
    )
    served = [read for read in subject.reads if is_exact(key, read)]
    consistent = sum(read.rate for read in served if read.pattern.is_consistent)
    beside = sum(read.rate for read in subject.neighbours if read.equality == key.partition)
    return (
        -unknown,
        consistent,
        beside + sum(read.rate for read in served),
        -len(key.columns),
        -position,
    )


def explain_table_key(subject: EntityWorkload, base: PlannedKey) -> str:
    if not subject.reads:
        return f"No pattern reads {subject.entity}: its items are found by what identifies a row."
    rates = _rates(subject, base)
    own = rates.pop(str(base.partition[0]), 0.0)
    text = f"{subject.names(base.partition)} is looked up {own:g} times a second"
    others = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
    if others and own >= max(rates.values()):
        text += f", more than others ({others})"
    elif others:
        text += f"; {others} times, but no key that begins with it identifies one item"
    if base.sort:
        text += f"; with {subject.names(base.sort)} it identifies an item"
    return text + "."


def _rates(subject: EntityWorkload, base: PlannedKey) -> dict[str, float]:
    """Returns how often each column is looked up, for columns that could be a partition key."""
    rates: dict[str, float] = {}
    beside = [read for read in subject.neighbours if read.equality == base.partition]
    for read in [*subject.reads, *beside]:
        # The second request of a tree read starts from an item whose lookup is already counted.
        is_again = read.is_further and bool(read.pattern.hierarchy)
        for ref in () if is_again else read.equality[:1]:
            rates[str(ref)] = rates.get(str(ref), 0.0) + read.rate
    return rates
