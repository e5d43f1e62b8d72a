"""The graph of foreign keys: which tables refer to each other, and which columns mean the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from copy import copy

from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn, SourceTable
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink


class SchemaGraph:
    """An inventory with its foreign keys, followed in both directions."""

    def __init__(
        self,
        inventory: Inventory,
        exclude: list[str] | None = None,
        preferred: Iterable[str] = (),
    ) -> None:
        """`preferred` has tables and columns. If several foreign keys lead to a table, those
        through them come first."""
        kept = [
            table
            for table in inventory.tables
            # PostgreSQL allows tables without columns.
            if table.columns and table.name not in (exclude or [])
        ]
        self.database = inventory.database
        self.inventory = inventory
        self.tables = {table.name: table for table in kept}
        self.natural: Mapping[ColumnRef, ColumnRef] = {}
        """Columns of surrogate keys, each with the column that replaces it."""
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
        """Returns the same graph with natural keys in place of surrogate keys."""
        # Shallow: only the mapping differs, and the tables and links are shared.
        other = copy(self)
        other.natural = natural
        return other

    def table(self, name: str) -> SourceTable:
        return self.tables[name]

    def column(self, ref: ColumnRef) -> SourceColumn | None:
        return self._columns.get(ref)

    def is_nullable(self, ref: ColumnRef) -> bool:
        column = self.column(ref)
        return column is not None and column.is_nullable

    def parents(self, table: str) -> list[ForeignKeyLink]:
        """Returns the links to the tables that a row belongs to: those of its primary key first,
        nullable ones last."""
        return self._parents[table]

    def children(self, table: str) -> list[ForeignKeyLink]:
        return self._children[table]

    def _links(self, table: SourceTable) -> list[ForeignKeyLink]:
        links = [
            ForeignKeyLink(table.name, key)
            for key in table.foreign_keys
            # SQLite allows foreign keys that do not match what they refer to.
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
        return any(self.is_nullable(ColumnRef(link.child, name)) for name in link.key.columns)

    def path_up(self, child: str, parent: str) -> list[ForeignKeyLink] | None:
        """Returns the shortest list of foreign keys from a row to the one row of `parent` that it
        belongs to."""
        if child == parent:
            return []
        paths: dict[str, list[ForeignKeyLink]] = {child: []}
        waiting = deque([child])
        while waiting:
            table = waiting.popleft()
            for link in self.parents(table):
                if link.parent not in paths:
                    paths[link.parent] = [*paths[table], link]
                    waiting.append(link.parent)
        return paths.get(parent)

    def sides(self, table: str) -> tuple[ForeignKeyLink, ForeignKeyLink] | None:
        """Returns the two foreign keys of an intersection table, in the order of its primary
        key."""
        key = self.table(table).primary_key
        within = [link for link in self.parents(table) if set(link.key.columns) <= set(key)]
        if len(within) != 2 or {name for link in within for name in link.key.columns} != set(key):
            return None
        within.sort(key=lambda link: min(key.index(name) for name in link.key.columns))
        return within[0], within[1]

    def unique_keys(self, table: str) -> list[list[str]]:
        """Returns the primary key, and then the columns of every unconditional unique index."""
        definition = self.table(table)
        keys = [definition.primary_key] if definition.primary_key else []
        for index in definition.indexes:
            is_plain = index.is_unique and not index.expressions and not index.where
            if is_plain and index.columns and sorted(index.columns) not in map(sorted, keys):
                keys.append(index.columns)
        return keys

    def link_of(self, ref: ColumnRef) -> ForeignKeyLink | None:
        """Returns the foreign key that consists of this column alone."""
        if ref.table not in self.tables:
            return None
        return next(
            (link for link in self.parents(ref.table) if link.key.columns == [ref.column]), None
        )

    def canonical(self, ref: ColumnRef) -> ColumnRef:
        """Returns the column that this one repeats; for a surrogate key, the column that replaces
        it."""
        origin = self.origin(ref)
        return self.natural.get(origin, origin)

    def origin(self, ref: ColumnRef) -> ColumnRef:
        """Returns the column that this one repeats, followed upwards as long as there is only one
        way.

        If two columns of a table lead to the same origin, only the nearer one repeats it; the other
        one can differ.
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
            # Several columns of a table may lead to the same end; only one of them can stand for
            # it.
            nearest = min(steps for steps, _ in found)
            for position, (steps, own) in enumerate(found):
                is_first = all(other != nearest for other, _ in found[:position])
                self._origins[own] = end if steps == nearest and is_first else own

    def _walk(self, ref: ColumnRef) -> tuple[ColumnRef, int]:
        visited: set[ColumnRef] = set()
        while ref not in visited:
            visited.add(ref)
            ref = self._referenced(ref) or ref
        return ref, len(visited)

    def _referenced(self, ref: ColumnRef) -> ColumnRef | None:
        if ref.table not in self.tables:
            return None
        for link in self.parents(ref.table):
            if ref.column in link.key.columns and self._is_the_way(link):
                position = link.key.columns.index(ref.column)
                return ColumnRef(link.parent, link.key.referenced_columns[position])
        return None

    def _is_the_way(self, link: ForeignKeyLink) -> bool:
        """True when the link is the only one between the two tables, or the only one in the primary
        key.

        Two references to the same table mean different rows.
        """
        if link.parent == link.child:
            return False
        others = [parent for parent in self.parents(link.child) if parent.parent == link.parent]
        identifying = [other for other in others if self.is_identifying(other)]
        return len(others) == 1 or identifying == [link]
