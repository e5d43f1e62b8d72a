"""The graph of foreign keys: who refers to whom, and which columns mean the same thing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from copy import copy

from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn, SourceTable
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink


class SchemaGraph:
    """An inventory with its foreign keys followed in both directions."""

    def __init__(
        self,
        inventory: Inventory,
        exclude: list[str] | None = None,
        preferred: Iterable[str] = (),
    ) -> None:
        """`preferred`: tables and columns; of several ways to a table, those through them first."""
        kept = [
            table
            for table in inventory.tables
            # PostgreSQL has tables without columns.
            if table.columns and table.name not in (exclude or [])
        ]
        self.database = inventory.database
        self.inventory = inventory
        self.tables = {table.name: table for table in kept}
        self.natural: Mapping[ColumnRef, ColumnRef] = {}
        """A surrogate key's column, and the one that stands for it everywhere."""
        self._columns = {
            ColumnRef(table.name, column.name): column for table in kept for column in table.columns
        }
        self._preferred = set(preferred)
        self._parents = {table.name: self._links(table) for table in kept}
        self._children: dict[str, list[ForeignKeyLink]] = {table.name: [] for table in kept}
        for links in self._parents.values():
            for link in links:
                if link.child != link.parent:
                    self._children[link.parent].append(link)
        self._origins: dict[ColumnRef, ColumnRef] = {}

    def with_natural_keys(self, natural: Mapping[ColumnRef, ColumnRef]) -> SchemaGraph:
        """The same graph, with natural keys in place of surrogate ones."""
        other = copy(self)
        other.natural = natural
        return other

    def table(self, name: str) -> SourceTable:
        return self.tables[name]

    def column(self, ref: ColumnRef) -> SourceColumn | None:
        return self._columns.get(ref)

    def parents(self, table: str) -> list[ForeignKeyLink]:
        """What a row belongs to: by its primary key first, and by what may be absent last."""
        return self._parents[table]

    def children(self, table: str) -> list[ForeignKeyLink]:
        return self._children[table]

    def _links(self, table: SourceTable) -> list[ForeignKeyLink]:
        links = [
            ForeignKeyLink(table.name, key)
            for key in table.foreign_keys
            # SQLite takes foreign keys that do not fit what they refer to.
            if key.referenced_table in self.tables
            and len(key.columns) == len(key.referenced_columns)
        ]
        return sorted(
            links,
            key=lambda link: (
                not self._preferred & {link.child, link.parent, *link.columns},
                not self.is_identifying(link),
                self._may_lack(link),
            ),
        )

    def is_identifying(self, link: ForeignKeyLink) -> bool:
        return set(link.key.columns) <= set(self.table(link.child).primary_key)

    def _may_lack(self, link: ForeignKeyLink) -> bool:
        columns = [self.column(ColumnRef(link.child, name)) for name in link.key.columns]
        return any(column is not None and column.is_nullable for column in columns)

    def path_up(self, child: str, parent: str) -> list[ForeignKeyLink] | None:
        """The fewest foreign keys from a row to the one row of `parent` that it belongs to."""
        if child == parent:
            return []
        found: dict[str, list[ForeignKeyLink]] = {child: []}
        waiting = deque([child])
        while waiting:
            table = waiting.popleft()
            for link in self.parents(table):
                if link.parent not in found:
                    found[link.parent] = [*found[table], link]
                    waiting.append(link.parent)
        return found.get(parent)

    def sides(self, table: str) -> tuple[ForeignKeyLink, ForeignKeyLink] | None:
        """The two foreign keys of an intersection table, in the order of its primary key."""
        key = self.table(table).primary_key
        within = [link for link in self.parents(table) if set(link.key.columns) <= set(key)]
        if len(within) != 2 or {name for link in within for name in link.key.columns} != set(key):
            return None
        within.sort(key=lambda link: min(key.index(name) for name in link.key.columns))
        return within[0], within[1]

    def unique_keys(self, table: str) -> list[list[str]]:
        """The primary key first, then every unique index that has no conditions."""
        found = self.table(table)
        keys = [found.primary_key] if found.primary_key else []
        for index in found.indexes:
            is_plain = index.is_unique and not index.expressions and not index.where
            if is_plain and index.columns and sorted(index.columns) not in map(sorted, keys):
                keys.append(index.columns)
        return keys

    def link_of(self, ref: ColumnRef) -> ForeignKeyLink | None:
        """The foreign key of one column that this column is."""
        if ref.table not in self.tables:
            return None
        return next(
            (link for link in self.parents(ref.table) if link.key.columns == [ref.column]), None
        )

    def canonical(self, ref: ColumnRef) -> ColumnRef:
        """The column that this one repeats; of a surrogate key, what stands for it."""
        origin = self.origin(ref)
        return self.natural.get(origin, origin)

    def origin(self, ref: ColumnRef) -> ColumnRef:
        """The column that this one repeats, as far up as there is only one way to go.

        Of two columns that lead to the same one, the nearer repeats it; the other may differ.
        """
        if ref.table in self.tables and ref not in self._origins:
            self._find_origins(ref.table)
        return self._origins.get(ref, ref)

    def _find_origins(self, table: str) -> None:
        ways: dict[ColumnRef, list[tuple[int, ColumnRef]]] = {}
        for column in self.table(table).columns:
            own = ColumnRef(table, column.name)
            end, steps = self._walk(own)
            ways.setdefault(end, []).append((steps, own))
        for end, found in ways.items():
            nearest = min(steps for steps, _ in found)
            for position, (steps, own) in enumerate(found):
                is_first = all(other != nearest for other, _ in found[:position])
                self._origins[own] = end if steps == nearest and is_first else own

    def _walk(self, ref: ColumnRef) -> tuple[ColumnRef, int]:
        seen: set[ColumnRef] = set()
        while ref not in seen:
            seen.add(ref)
            ref = self._referenced(ref) or ref
        return ref, len(seen)

    def _referenced(self, ref: ColumnRef) -> ColumnRef | None:
        if ref.table not in self.tables:
            return None
        for link in self.parents(ref.table):
            if ref.column in link.key.columns and self._is_the_way(link):
                position = link.key.columns.index(ref.column)
                return ColumnRef(link.parent, link.key.referenced_columns[position])
        return None

    def _is_the_way(self, link: ForeignKeyLink) -> bool:
        """Whether a link means the row that its table belongs to, and no other.

        A table that refers twice to another means different rows; only one of the two may be a
        part of its primary key.
        """
        if link.parent == link.child:
            return False
        others = [parent for parent in self.parents(link.child) if parent.parent == link.parent]
        identifying = [other for other in others if self.is_identifying(other)]
        return len(others) == 1 or identifying == [link]
