"""How one table leads to another: by foreign keys, up or down, or by a table between them."""

from __future__ import annotations

from typing import NamedTuple

from partita.migrate.understanding.schema.column_refs import Ref, format_join
from partita.migrate.understanding.schema.inventory import ForeignKey, Inventory, Table


class Link(NamedTuple):
    """A foreign key with the table that has it."""

    child: str
    key: ForeignKey

    @property
    def parent(self) -> str:
        return self.key.referenced_table

    @property
    def columns(self) -> list[str]:
        """As people name them, with their table."""
        return [str(ref) for ref in self._child_refs()]

    def pairs(self) -> set[frozenset[str]]:
        """The columns that a join by this foreign key compares."""
        sides = zip(self._child_refs(), self._parent_refs(), strict=False)
        return {frozenset((str(child), str(parent))) for child, parent in sides}

    def upwards(self) -> str:
        return format_join(self._child_refs(), self._parent_refs())

    def downwards(self) -> str:
        return format_join(self._parent_refs(), self._child_refs())

    def _child_refs(self) -> list[Ref]:
        return [Ref(self.child, name) for name in self.key.columns]

    def _parent_refs(self) -> list[Ref]:
        return [Ref(self.parent, name) for name in self.key.referenced_columns]


def self_reference(table: Table, column: str) -> Link | None:
    """The foreign key of one column by which a table refers to itself."""
    return next(
        (
            Link(table.name, key)
            for key in table.foreign_keys
            if key.columns == [column] and key.referenced_table == table.name
        ),
        None,
    )


Way = list[Link]


class Ways:
    """All shortest ways between the tables of an inventory."""

    def __init__(self, inventory: Inventory) -> None:
        self.keys = {table.name: set(table.primary_key) for table in inventory.tables}
        names = {table.name for table in inventory.tables}
        self.links = {
            table.name: [
                Link(table.name, key)
                for key in table.foreign_keys
                if key.referenced_table in names and key.referenced_table != table.name
            ]
            for table in inventory.tables
        }

    def between(self, table: str, other: str) -> list[Way]:
        """Up, and down, else through the tables that refer to both."""
        direct = [*self._up(table, other), *self._up(other, table)]
        shortest = min(map(len, direct), default=0)
        found = [way for way in direct if len(way) == shortest]
        belonging = [way for way in found if all(map(self._is_identifying, way))]
        # A row belongs to what its primary key names; other references are to other rows.
        return (belonging if len(belonging) == 1 else found) or [
            [first, second]
            for links in self.links.values()
            for first in links
            for second in links
            if (first.parent, second.parent) == (table, other)
        ]

    def _is_identifying(self, link: Link) -> bool:
        return set(link.key.columns) <= self.keys[link.child]

    def _up(self, child: str, parent: str) -> list[Way]:
        """All ways with the fewest foreign keys."""
        reached: list[Way] = [[link] for link in self.links[child]]
        seen = {child}
        while reached:
            found = [way for way in reached if way[-1].parent == parent]
            if found:
                return found
            seen |= {way[-1].parent for way in reached}
            reached = [
                [*way, link]
                for way in reached
                for link in self.links[way[-1].parent]
                if link.parent not in seen
            ]
        return []


def named(ways: list[Way], through: list[str]) -> list[Way]:
    """Those that go through a table or a column of a pattern; all when it names none of theirs."""
    return [way for way in ways if _is_named(way, through)] or ways


def _is_named(way: Way, through: list[str]) -> bool:
    inner = {link.child for link in way} | {link.parent for link in way[:-1]}
    return any(one in inner or any(one in link.columns for link in way) for one in through)


def told_apart(ways: list[Way]) -> list[str]:
    """What each way has and no other: the table between, or the column that it begins with."""
    tables = [way[0].child for way in ways]
    if len(set(tables)) == len(tables):
        return tables
    shared = set.intersection(*({name for link in way for name in link.columns} for way in ways))
    return [
        next((name for link in way for name in link.columns if name not in shared), way[0].child)
        for way in ways
    ]
