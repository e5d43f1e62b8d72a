"""The key plan of one type of item: the table's key, its indexes, and which read each serves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from partita_migrate.designing.naming import of_table
from partita_migrate.designing.proposals.workload import Read, Write
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.schema.column_refs import Ref
from partita_migrate.understanding.schema.graph import SchemaGraph


@dataclass(frozen=True)
class Key:
    partition: tuple[Ref, ...]
    sort: tuple[Ref, ...] = ()

    @property
    def columns(self) -> tuple[Ref, ...]:
        return (*self.partition, *self.sort)


@dataclass(frozen=True)
class Match:
    """How a key serves a read: the sort columns that are given, and what is left to filter."""

    given: int
    filtered: tuple[Ref, ...] = ()
    is_full_key: bool = False
    """All columns of the key are given."""


@dataclass(frozen=True)
class IndexPlan:
    name: str
    kind: Literal["global", "local"]
    key: Key
    why: str
    reads: list[Read] = field(default_factory=list)
    """Those that it serves."""


@dataclass(frozen=True)
class Served:
    read: Read
    index: str | None
    match: Match


@dataclass(frozen=True)
class KeyPlan:
    base: Key
    why: str
    indexes: list[IndexPlan]
    served: list[Served]
    advice: list[str]


@dataclass(frozen=True)
class EntityWorkload:
    """One type of item, with everything that its keys depend on."""

    entity: str
    schema: SchemaGraph
    volumes: Volumes
    identities: list[list[Ref]]
    reads: list[Read]
    """Without what they give beyond an identity."""
    writes: list[Write]
    neighbours: list[Read]
    """What is asked of other entities: their root items may lie in the same collection."""
    fixed: Key | None
    """The key that a pattern of design asks for."""
    is_unique_in_source: bool
    """The key must refuse a second row with the same identity, because nothing else does."""
    is_identified: bool
    """Less than all columns tells rows apart."""

    def names(self, refs: tuple[Ref, ...]) -> str:
        """Columns as people read them."""
        return " and ".join(
            ref.column if ref.table == self.entity else of_table(ref.table, ref.column)
            for ref in refs
        )


def match(key: Key, read: Read) -> Match | None:
    """None when the key does not lead to the items at all."""
    given = set(read.equality)
    if not set(key.partition) <= given:
        return None
    rest = given - set(key.partition)
    count = 0
    while count < len(key.sort) and key.sort[count] in rest:
        rest.discard(key.sort[count])
        count += 1
    following = key.sort[count : count + len(read.order)]
    if read.order and following != read.order:
        return None
    filtered = tuple(ref for ref in read.equality if ref in rest)
    return Match(count, filtered, not rest and count == len(key.sort) and not read.order)


def is_exact(key: Key, read: Read) -> bool:
    """Whether a key serves a read with nothing left to filter."""
    found = match(key, read)
    return found is not None and not found.filtered
