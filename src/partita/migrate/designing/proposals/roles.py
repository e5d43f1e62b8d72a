"""What can become of a table: items of its own, or a part of another's."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.join_paths import Link


class Version(Struct, frozen=True):
    """A child with a row for every version of its parent."""

    parent: str
    column: str
    link: Link


class Collected(Struct, frozen=True):
    """Rows of a child that become one attribute of their owner."""

    owner: str
    name: str
    type: Literal["SS", "NS", "L"]
    columns: list[Ref]
    through: list[str]
    why: str


class Roles(Struct):
    passed: dict[str, str] = field(default_factory=dict)
    """Tables that only connect others, with the reason why they go."""
    versions: dict[str, Version] = field(default_factory=dict)
    merged: dict[str, Link] = field(default_factory=dict)
    """One-to-one children, part of their parent's item."""
    collected: dict[str, Collected] = field(default_factory=dict)
    embedded: dict[str, str] = field(default_factory=dict)
    """Tables whose every row is copied to where it is referred to."""
    folded: dict[str, Link] = field(default_factory=dict)
    """Sides of a many-to-many relationship whose columns are in every item of the association."""
    twins: dict[str, str] = field(default_factory=dict)
    """Tables of the same form, and the first of them."""

    def entity_of(self, table: str) -> str | None:
        """The table whose items hold a table's rows; None when no items do."""
        seen: set[str] = set()
        while table not in seen:
            seen.add(table)
            if table in self.passed or table in self.embedded or table in self.collected:
                return None
            table = self._next(table)
        return table

    def _next(self, table: str) -> str:
        for child, version in self.versions.items():
            if version.parent == table:
                return child
        if table in self.merged:
            return self.merged[table].parent
        if table in self.folded:
            return self.folded[table].child
        return self.twins.get(table, table)
