"""The roles that a table can have: items of its own, or a part of another table's items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink


@dataclass(frozen=True)
class VersionHistory:
    """A child table with a row for every version of its parent."""

    parent: str
    column: str
    link: ForeignKeyLink


@dataclass(frozen=True)
class CollectedChild:
    """A child table whose rows become one attribute of their owner."""

    owner: str
    name: str
    type: Literal["SS", "NS", "L"]
    columns: list[ColumnRef]
    through: list[str]
    why: str


@dataclass(frozen=True)
class TableRoles:
    """The roles of all tables. A table in none of these mappings has plain items."""

    twins: dict[str, str] = field(default_factory=dict)
    """Tables of the same shape, each with the first of them."""
    bypassed: dict[str, str] = field(default_factory=dict)
    """Tables that only connect others, with the reason why they are left out."""
    versions: dict[str, VersionHistory] = field(default_factory=dict)
    merged: dict[str, ForeignKeyLink] = field(default_factory=dict)
    """One-to-one children that are part of their parent's items."""
    collected: dict[str, CollectedChild] = field(default_factory=dict)
    embedded: dict[str, str] = field(default_factory=dict)
    """Tables whose rows are copied to where they are referred to, with the reason."""
    folded: dict[str, ForeignKeyLink] = field(default_factory=dict)
    """Sides of a many-to-many relationship that every item of the association repeats."""

    def is_free(self, table: str) -> bool:
        """True when no rule has given the table a role yet."""
        taken = (self.bypassed, self.versions, self.merged, self.collected, self.embedded)
        return not any(table in role for role in taken)

    def entity_of(self, table: str) -> str | None:
        """Returns the table whose items hold a table's rows, or None if there are no such items."""
        visited: set[str] = set()
        while table not in visited:
            visited.add(table)
            if table in self.bypassed or table in self.embedded or table in self.collected:
                return None
            table = self._holder(table)
        return table

    def _holder(self, table: str) -> str:
        for child, version in self.versions.items():
            if version.parent == table:
                return child
        if table in self.merged:
            return self.merged[table].parent
        if table in self.folded:
            return self.folded[table].child
        return self.twins.get(table, table)

    def of_first_twin(self, ref: ColumnRef) -> ColumnRef:
        """Returns the same column in the first of the tables of one shape."""
        return ColumnRef(self.twins.get(ref.table, ref.table), ref.column)
