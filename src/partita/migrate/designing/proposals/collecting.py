"""Rows of a child as a set or list in the items of its owner: whose, of what, and when."""

from __future__ import annotations

from collections.abc import Collection

from partita.limits import KB
from partita.migrate.designing.naming import role
from partita.migrate.designing.proposals.questions import Questions
from partita.migrate.designing.proposals.roles import Collected
from partita.migrate.designing.settings import ModelSettings
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.graph import SchemaGraph
from partita.migrate.understanding.schema.join_paths import Link
from partita.migrate.understanding.schema.words import name_parts, plural, singular

COLLECTED_BYTES_MAX = 64 * KB
"""Of a set or list in an item: beyond it, every read and write of the item pays for it."""


class Collector:
    def __init__(
        self,
        schema: SchemaGraph,
        questions: Questions,
        volumes: Volumes,
        settings: ModelSettings,
        passed: Collection[str],
    ) -> None:
        self.schema = schema
        self.questions = questions
        self.volumes = volumes
        self.settings = settings
        self.passed = passed
        """Tables that only connect others, and go."""

    def collect(self, table: str) -> Collected | None:
        """The attribute that a table's rows become; None when they had better stay items."""
        sides = self.schema.sides(table)
        if sides is None:
            parents = self.schema.parents(table)
            return self._collected(table, parents[0], None) if parents else None
        first, second = sides
        if self.questions.cross(table, {first.parent, second.parent}):
            # No set has keys.
            return None
        owning = self._owning(first, second)
        other = next((side for side in sides if side != owning), None)
        return self._collected(table, owning, other)

    def _collected(self, table: str, link: Link, other: Link | None) -> Collected | None:
        is_wanted = self.questions.join(table) or (
            other is not None and self.questions.join(other.parent)
        )
        skew = self.volumes.skew(table, link.key.columns)
        most = (
            skew.rows_per_value_max
            if skew
            else self.volumes.rows_per_value(table, link.key.columns, link.parent)
        )
        size = most * self.volumes.row_bytes(table)
        if not is_wanted or most > self.settings.collect_rows_max or size > COLLECTED_BYTES_MAX:
            return None
        owner, through = self._owner(link)
        if owner is None:
            return None
        columns, through = self._members(table, link, other, through)
        if not columns:
            return None
        kind = self.volumes.kind(columns[0])
        is_set = len(columns) == 1 and kind in ("string", "enum", "uuid", "integer", "decimal")
        name = self._name(table, other)
        return Collected(
            owner=owner,
            name=self.settings.rename.get(f"{owner}.{name}", name),
            type=("NS" if kind in ("integer", "decimal") else "SS") if is_set else "L",
            columns=columns,
            through=through,
            why=(
                f"A {'set' if is_set else 'list'}, because no pattern asks for {table} alone and"
                f" one of {owner} has at most {most:.0f} of them."
            ),
        )

    def _owning(self, first: Link, second: Link) -> Link:
        """The side of an intersection that gets the set: the one that is read with the other."""
        if second.parent in self.passed:
            return second
        named = {name for pattern in self.questions.patterns for name in pattern.through}
        for link in (first, second):
            if named & set(link.columns):
                return link
        for link, other in ((first, second), (second, first)):
            named = {link.child, other.parent}
            if any(named & set(one.joins) for one in self.questions.of(link.parent)):
                return link
        return first

    def _owner(self, link: Link) -> tuple[str | None, list[str]]:
        """The table that gets the set, with the way down from it; around what is passed."""
        if link.parent not in self.passed:
            return link.parent, [link.downwards()]
        for above in self.schema.children(link.parent):
            if self.schema.sides(above.child) is None:
                return above.child, [above.upwards(), link.downwards()]
        return None, []

    def _members(
        self, table: str, link: Link, other: Link | None, through: list[str]
    ) -> tuple[list[Ref], list[str]]:
        own = [
            Ref(table, column.name)
            for column in self.schema.table(table).columns
            if column.name not in link.key.columns
            and (other is None or column.name not in other.key.columns)
            and not (
                column.is_auto_increment and column.name in self.schema.table(table).primary_key
            )
        ]
        if other is None or len(other.key.columns) != 1:
            return own, through
        target = Ref(other.parent, other.key.referenced_columns[0])
        value = self.schema.natural.get(target, target)
        # A map has one member of a name: what both tables have is the nearer one's.
        taken = {ref.column for ref in own}
        if value != target and value.column in taken:
            return [], through
        details = [ref for ref in self._details(link, other, value) if ref.column not in taken]
        if value != target:
            return [value, *own, *details], [*through, other.upwards()]
        beyond = [other.upwards()] if details else []
        return [Ref(table, other.key.columns[0]), *own, *details], [*through, *beyond]

    def _details(self, link: Link, other: Link, value: Ref) -> list[Ref]:
        """What else is read of the other side, when a pattern joins it by name."""
        if other.parent == link.parent or not self.questions.join(other.parent):
            return []
        columns = [Ref(other.parent, one.name) for one in self.schema.table(other.parent).columns]
        keys = {Ref(other.parent, name) for name in other.key.referenced_columns}
        references = {name for one in self.schema.parents(other.parent) for name in one.key.columns}
        wanted = self.questions.columns_read(other.parent)
        return [
            ref
            for ref in columns
            if ref not in {value, *keys}
            and ref.column not in references
            and (wanted is None or ref in wanted)
        ]

    def _name(self, table: str, other: Link | None) -> str:
        """`consumed_metrics` by the column's own word, `related_dimensions` without one."""
        if other is None:
            return plural(table)
        named = role(other.key.columns[0])
        if name_parts(named) == name_parts(singular(other.parent)):
            return f"related_{plural(other.parent)}"
        return plural(named)
