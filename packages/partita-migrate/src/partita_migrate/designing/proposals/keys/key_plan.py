"""The key plan of one type of item: the table's key, its indexes, and the reads that each
serves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from partita_migrate.designing.attribute_naming import of_table
from partita_migrate.designing.proposals.workload import PatternRead, PatternWrite
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.foreign_key_graph import SchemaGraph


@dataclass(frozen=True)
class PlannedKey:
    """A partition key with its sort key, in the source's columns."""

    partition: tuple[ColumnRef, ...]
    sort: tuple[ColumnRef, ...] = ()

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        return (*self.partition, *self.sort)


@dataclass(frozen=True)
class KeyMatch:
    """A key's fit for a read: the number of sort columns that the read gives, and the columns that
    are left to filter."""

    given: int
    filtered: tuple[ColumnRef, ...] = ()
    is_full_key: bool = False
    """True when the read gives every column of the key."""


@dataclass(frozen=True)
class IndexPlan:
    name: str
    kind: Literal["global", "local"]
    key: PlannedKey
    why: str
    reads: list[PatternRead] = field(default_factory=list)
    """The reads that the index serves."""


@dataclass(frozen=True)
class ServedRead:
    """A read with the key that serves it; `index` is None for the table's own."""

    read: PatternRead
    index: str | None
    match: KeyMatch


@dataclass(frozen=True)
class KeyPlan:
    base: PlannedKey
    why: str
    indexes: list[IndexPlan]
    served: list[ServedRead]
    advice: list[str]


@dataclass(frozen=True)
class EntityWorkload:
    """One type of item, with everything that its keys depend on."""

    entity: str
    schema: SchemaGraph
    volumes: Volumes
    identities: list[list[ColumnRef]]
    reads: list[PatternRead]
    """The reads, reduced to an identity where they give one."""
    writes: list[PatternWrite]
    neighbours: list[PatternRead]
    """Reads of other entities, whose root items may share this entity's collections."""
    fixed: PlannedKey | None
    """The key that the version history requires, if the entity has versions."""
    is_unique_in_source: bool
    """True when the key has to refuse a second row with the same identity, because nothing else
    does."""
    is_identified: bool
    """True when fewer than all columns identify a row."""

    def names(self, refs: tuple[ColumnRef, ...]) -> str:
        """Returns the columns in words, such as "CustomerId and OrderedOn"."""
        return " and ".join(
            ref.column if ref.table == self.entity else of_table(ref.table, ref.column)
            for ref in refs
        )


def match(key: PlannedKey, read: PatternRead) -> KeyMatch | None:
    """Returns None when the key does not lead to the items of the read."""
    given_columns = set(read.equality)
    if not set(key.partition) <= given_columns:
        return None
    rest = given_columns - set(key.partition)
    count = 0
    # Given columns serve a sort key only from its left, as in an index of a relational database.
    while count < len(key.sort) and key.sort[count] in rest:
        rest.discard(key.sort[count])
        count += 1
    # After the given columns, the items must come in the order that the pattern asks for.
    following = key.sort[count : count + len(read.order)]
    if read.order and following != read.order:
        return None
    filtered = tuple(ref for ref in read.equality if ref in rest)
    return KeyMatch(count, filtered, not rest and count == len(key.sort) and not read.order)


def is_exact(key: PlannedKey, read: PatternRead) -> bool:
    """True when a key serves a read without a filter."""
    key_match = match(key, read)
    return key_match is not None and not key_match.filtered
