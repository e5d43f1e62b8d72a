"""The roles that tables can have: items of their own, or a part of another table's items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from partita_migrate.understanding.schema.column_refs import Ref
from partita_migrate.understanding.schema.join_paths import Link


@dataclass(frozen=True)
class Version:
    """A child with a row for every version of its parent."""

    parent: str
    column: str
    link: Link


@dataclass(frozen=True)
class Collected:
    """Rows of a child that become one attribute of their owner."""

    owner: str
    name: str
    type: Literal["SS", "NS", "L"]
    columns: list[Ref]
    through: list[str]
    why: str


@dataclass(frozen=True)
class Roles:
    twins: dict[str, str] = field(default_factory=dict)
    """Tables of the same form, and the first of them."""
    bypassed: dict[str, str] = field(default_factory=dict)
    """Tables that only connect others, with the reason why they go."""
    versions: dict[str, Version] = field(default_factory=dict)
    merged: dict[str, Link] = field(default_factory=dict)
    """One-to-one children, part of their parent's item."""
    collected: dict[str, Collected] = field(default_factory=dict)
    embedded: dict[str, str] = field(default_factory=dict)
    """Tables whose every row is copied to where it is referred to, with the reason."""
    folded: dict[str, Link] = field(default_factory=dict)
    """Sides of a many-to-many relationship whose columns are in every item of the association."""

    def is_free(self, table: str) -> bool:
        """Whether no rule has decided yet that a table is more or less than plain items."""
        taken = (self.bypassed, self.versions, self.merged, self.collected, self.embedded)
        return not any(table in role for role in taken)

    def entity_of(self, table: str) -> str | None:
        """The table whose items hold a table's rows; None when no items do."""
        seen: set[str] = set()
        while table not in seen:
            seen.add(table)
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

    def of_first_twin(self, ref: Ref) -> Ref:
        """The same column of the first of several tables of the same form."""
        return Ref(self.twins.get(ref.table, ref.table), ref.column)
