"""Join paths between tables: along foreign keys up or down, or through a table between them."""

from __future__ import annotations

from typing import NamedTuple

from partita_migrate.understanding.schema.column_refs import ColumnRef, format_join
from partita_migrate.understanding.schema.inventory import ForeignKey, Inventory, SourceTable


class ForeignKeyLink(NamedTuple):
    """A foreign key together with the table that declares it."""

    child: str
    key: ForeignKey

    @property
    def parent(self) -> str:
        return self.key.referenced_table

    @property
    def columns(self) -> list[str]:
        """Returns the columns as people write them, e.g. `orders.customer_id`."""
        return [str(ref) for ref in self._child_refs()]

    def pairs(self) -> set[frozenset[str]]:
        """Returns the pairs of columns that a join along this foreign key compares."""
        sides = zip(self._child_refs(), self._parent_refs(), strict=False)
        return {frozenset((str(child), str(parent))) for child, parent in sides}

    def upwards(self) -> str:
        return format_join(self._child_refs(), self._parent_refs())

    def downwards(self) -> str:
        return format_join(self._parent_refs(), self._child_refs())

    def _child_refs(self) -> list[ColumnRef]:
        return [ColumnRef(self.child, name) for name in self.key.columns]

    def _parent_refs(self) -> list[ColumnRef]:
        return [ColumnRef(self.parent, name) for name in self.key.referenced_columns]


def self_reference(table: SourceTable, column: str) -> ForeignKeyLink | None:
    """Returns the single-column foreign key by which a table refers to itself, or None."""
    return next(
        (
            ForeignKeyLink(table.name, key)
            for key in table.foreign_keys
            if key.columns == [column] and key.referenced_table == table.name
        ),
        None,
    )


JoinPath = list[ForeignKeyLink]


class JoinPaths:
    """All shortest paths between the tables of an inventory."""

    def __init__(self, inventory: Inventory) -> None:
        self.keys = {table.name: set(table.primary_key) for table in inventory.tables}
        names = {table.name for table in inventory.tables}
        self.links = {
            table.name: [
                ForeignKeyLink(table.name, key)
                for key in table.foreign_keys
                if key.referenced_table in names and key.referenced_table != table.name
            ]
            for table in inventory.tables
        }

    def between(self, table: str, other: str) -> list[JoinPath]:
        """Returns paths up or down; if there are none, paths through a table that
        refers to both."""
        direct = [*self._up(table, other), *self._up(other, table)]
        shortest = min(map(len, direct), default=0)
        shortest_paths = [path for path in direct if len(path) == shortest]
        identifying = [path for path in shortest_paths if all(map(self._is_identifying, path))]
        # A row belongs to the rows in its primary key; other foreign keys lead to unrelated rows.
        return (identifying if len(identifying) == 1 else shortest_paths) or [
            [first, second]
            for links in self.links.values()
            for first in links
            for second in links
            if (first.parent, second.parent) == (table, other)
        ]

    def _is_identifying(self, link: ForeignKeyLink) -> bool:
        return set(link.key.columns) <= self.keys[link.child]

    def _up(self, child: str, parent: str) -> list[JoinPath]:
        """Returns all paths up with the fewest foreign keys."""
        reached: list[JoinPath] = [[link] for link in self.links[child]]
        visited = {child}
        while reached:
            complete = [path for path in reached if path[-1].parent == parent]
            if complete:
                return complete
            visited |= {path[-1].parent for path in reached}
            reached = [
                [*path, link]
                for path in reached
                for link in self.links[path[-1].parent]
                if link.parent not in visited
            ]
        return []


def paths_through(paths: list[JoinPath], through: list[str]) -> list[JoinPath]:
    """Returns the paths through a table or column that a pattern names, or all if none matches."""
    return [path for path in paths if _goes_through(path, through)] or paths


def _goes_through(path: JoinPath, through: list[str]) -> bool:
    inner = {link.child for link in path} | {link.parent for link in path[:-1]}
    return any(name in inner or any(name in link.columns for link in path) for name in through)


def distinguishing_names(paths: list[JoinPath]) -> list[str]:
    """Returns a name for each path that no other path has: the table between, or a column."""
    tables = [path[0].child for path in paths]
    if len(set(tables)) == len(tables):
        return tables
    shared = set.intersection(*({name for link in path for name in link.columns} for path in paths))
    return [
        next((name for link in path for name in link.columns if name not in shared), path[0].child)
        for path in paths
    ]
