"""What becomes of each table: items of its own, or a part of another's."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct, field

from partita.limits import KB
from partita.migrate.designs import DesignKind, Ref
from partita.migrate.naming import plural, role, singular, words
from partita.migrate.patterns import AccessPattern
from partita.migrate.proposals.schema import Schema
from partita.migrate.proposals.settings import ModelSettings
from partita.migrate.volumes import Volumes
from partita.migrate.ways import Link

COLLECTED_BYTES_MAX = 64 * KB
"""Of a set or list in an item: beyond it, every read and write of the item pays for it."""

NATURAL_KINDS = ("string", "uuid", "enum", "integer", "decimal", "date", "datetime")

WRITES = ("insert", "update", "delete")

_VERSION = re.compile(r"(?i)(^|_)(version|revision|rev|edition)(_?(no|nr|num|number|id))?$")


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


class Assigner:
    """Gives every table its role, the most particular one first."""

    def __init__(
        self,
        schema: Schema,
        patterns: list[AccessPattern],
        volumes: Volumes,
        settings: ModelSettings,
        kind: DesignKind,
    ) -> None:
        self.schema = schema
        self.patterns = patterns
        self.volumes = volumes
        self.settings = settings
        self.kind = kind
        self.roles = Roles()
        self._asked_tables = {ref.table for ref in self._asked()}

    def assign(self) -> Roles:
        self._find_twins()
        self._find_passed()
        self._find_natural_keys()
        self._find_versions()
        self._find_merged()
        self._find_collected()
        self._find_embedded()
        if self.kind == "denormalized":
            self._find_folded()
        return self.roles

    # Patterns.

    def _main(self, table: str) -> list[AccessPattern]:
        return [pattern for pattern in self.patterns if pattern.table == table]

    def _is_joined(self, table: str) -> bool:
        return any(table in pattern.joins for pattern in self.patterns)

    def _is_written(self, table: str) -> bool:
        return any(pattern.operation in WRITES for pattern in self._main(table))

    def _asked(self) -> set[Ref]:
        """Columns whose values patterns give, or sort by."""
        return {
            Ref.parse(name)
            for pattern in self.patterns
            for name in (*pattern.equality, *pattern.range, *pattern.order_by)
        }

    def _is_free(self, table: str) -> bool:
        roles = self.roles
        others = (roles.passed, roles.versions, roles.merged, roles.collected, roles.embedded)
        return not any(table in role for role in others)

    # Roles, in the order in which they are looked for.

    def _find_twins(self) -> None:
        first_of: dict[tuple[object, ...], str] = {}
        for table in self.schema.tables.values():
            if table.foreign_keys or len(table.columns) < 3 or self.schema.children(table.name):
                continue
            form = (
                words(table.name)[0],
                tuple((column.name, column.type, column.kind) for column in table.columns),
                tuple(map(tuple, self.schema.unique_keys(table.name))),
            )
            first = first_of.setdefault(form, table.name)
            if first != table.name:
                self.roles.twins[table.name] = first

    def _find_passed(self) -> None:
        for table in self.schema.tables:
            links = self.schema.children(table)
            crossings = [link for link in links if self.schema.sides(link.child)]
            owners = [link for link in links if link not in crossings]
            if len(owners) != 1 or not crossings or self._main(table):
                continue
            if self.schema.parents(table) or any(self._main(link.child) for link in crossings):
                continue
            owner = owners[0]
            measure = self._one_to_one(owner)
            if measure:
                others = ", ".join(self._other_side(link, table) for link in crossings)
                self.roles.passed[table] = (
                    f"{table} goes: it only connects {owner.child} with {others}, no pattern asks"
                    f" for it, and {measure}; {owner.child} is connected directly instead."
                )

    def _one_to_one(self, link: Link) -> str:
        """In words, when each row of the parent has one child, with one exception at most."""
        columns = link.key.columns
        if any(set(columns) == set(key) for key in self.schema.unique_keys(link.child)):
            return f"each of its rows belongs to one of {link.child}"
        skew = self.volumes.skew(link.child, columns)
        measured = self.volumes.analysis.table(link.child)
        if skew is None or measured is None or skew.distinct < 2:
            return ""
        alone = measured.rows - skew.rows_per_value_max
        # Sampled counts are estimates: 5 % off is still the same.
        if abs(alone - (skew.distinct - 1)) > 0.05 * skew.distinct:
            return ""
        if skew.rows_per_value_max == 1:
            return f"each of its rows has one of {link.child}"
        return (
            f"each of its rows but one has one of {link.child}"
            f" (the exception has {skew.rows_per_value_max})"
        )

    def _other_side(self, link: Link, table: str) -> str:
        sides = self.schema.sides(link.child)
        assert sides is not None
        return next((side.parent for side in sides if side.parent != table), table)

    def _find_natural_keys(self) -> None:
        asked = self._asked()
        for table in self.schema.tables.values():
            if len(table.primary_key) != 1:
                continue
            surrogate = Ref(table.name, table.primary_key[0])
            column = self.schema.column(surrogate)
            if column is None or not (column.is_auto_increment or column.kind == "integer"):
                continue
            is_asked = any(self.schema.canonical(ref) == surrogate for ref in asked)
            for key in self.schema.unique_keys(table.name)[1:]:
                natural = Ref(table.name, key[0])
                other = self.schema.column(natural)
                if len(key) > 1 or other is None or other.is_nullable or is_asked:
                    continue
                if other.kind not in NATURAL_KINDS:
                    continue
                if natural in asked or (self._is_reached(table.name) and other.kind == "string"):
                    self.schema.natural[surrogate] = natural
                    break

    def _is_reached(self, table: str) -> bool:
        """Whether a table is only ever the other end of an intersection table."""
        links = self.schema.children(table)
        return (
            bool(links)
            and not self._main(table)
            and all(self.schema.sides(link.child) for link in links)
        )

    def _find_versions(self) -> None:
        for table in self.schema.tables.values():
            for link in self.schema.parents(table.name):
                if any(version.parent == link.parent for version in self.roles.versions.values()):
                    continue
                rest = [name for name in table.primary_key if name not in link.key.columns]
                if len(rest) != 1 or not set(link.key.columns) < set(table.primary_key):
                    continue
                column = self.schema.column(Ref(table.name, rest[0]))
                if (
                    column is None
                    or column.kind != "integer"
                    or self.schema.link_of(Ref(table.name, rest[0]))
                ):
                    continue
                if _VERSION.search(rest[0]) or self._asks_for_latest(table.name, rest[0]):
                    self.roles.versions[table.name] = Version(link.parent, rest[0], link)

    def _asks_for_latest(self, table: str, column: str) -> bool:
        name = str(Ref(table, column))
        return any(
            pattern.order_by[:1] == [name] and pattern.is_descending and pattern.limit == 1
            for pattern in self.patterns
        )

    def _find_merged(self) -> None:
        for table in self.schema.tables:
            if not self._is_free(table) or self._main(table) or table in self._asked_tables:
                continue
            for link in self.schema.parents(table):
                keys = map(set, self.schema.unique_keys(table))
                if link.parent != table and set(link.key.columns) in keys:
                    if self._is_joined(table) and not self.schema.children(table):
                        self.roles.merged[table] = link
                        break

    def _find_collected(self) -> None:
        for table in self.schema.tables:
            if not self._is_free(table) or self._main(table) or self.schema.children(table):
                continue
            sides = self.schema.sides(table)
            if table in self._asked_tables or (sides and self._is_crossed(table, sides)):
                continue
            links = [self._owning(sides)] if sides else self.schema.parents(table)[:1]
            for link in links:
                collected = self._collected(table, link, sides)
                if collected:
                    self.roles.collected[table] = collected

    def _is_crossed(self, table: str, sides: tuple[Link, Link]) -> bool:
        """Whether a pattern finds what is on one side by a value of the other: no set has keys."""
        ends = {link.parent for link in sides}
        return any(
            pattern.table in ends
            and (not pattern.through or table in pattern.through)
            and any(
                ref.table in ends and ref.table != pattern.table
                for ref in map(Ref.parse, (*pattern.equality, *pattern.range))
            )
            for pattern in self.patterns
        )

    def _owning(self, sides: tuple[Link, Link]) -> Link:
        """The side of an intersection that gets the set: the one that is read with the other."""
        first, second = sides
        if second.parent in self.roles.passed:
            return second
        named = {name for pattern in self.patterns for name in pattern.through}
        for link in sides:
            if named & set(link.columns):
                return link
        for link, other in ((first, second), (second, first)):
            named = {link.child, other.parent}
            if any(named & set(one.joins) for one in self._main(link.parent)):
                return link
        return first

    def _collected(
        self, table: str, link: Link, sides: tuple[Link, Link] | None
    ) -> Collected | None:
        other = next((side for side in sides or () if side != link), None)
        is_wanted = self._is_joined(table) or (other is not None and self._is_joined(other.parent))
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
        name = self._set_name(table, other)
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

    def _owner(self, link: Link) -> tuple[str | None, list[str]]:
        """The table that gets the set, with the way down from it; around what is passed."""
        if link.parent not in self.roles.passed:
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
        if other.parent == link.parent or not self._is_joined(other.parent):
            return []
        columns = [Ref(other.parent, one.name) for one in self.schema.table(other.parent).columns]
        keys = {Ref(other.parent, name) for name in other.key.referenced_columns}
        references = {name for one in self.schema.parents(other.parent) for name in one.key.columns}
        wanted = self._wanted(other.parent)
        return [
            ref
            for ref in columns
            if ref not in {value, *keys}
            and ref.column not in references
            and (wanted is None or ref in wanted)
        ]

    def _wanted(self, table: str) -> set[Ref] | None:
        """What patterns read of a table that has items of its own; None for all of it."""
        joining = [pattern for pattern in self.patterns if table in pattern.joins]
        if not self._main(table) or not all(pattern.columns for pattern in joining):
            return None
        return {Ref.parse(name) for pattern in joining for name in pattern.columns}

    def _set_name(self, table: str, other: Link | None) -> str:
        """`consumed_metrics` by the column's own word, `related_dimensions` without one."""
        if other is None:
            return plural(table)
        named = role(other.key.columns[0])
        if words(named) == words(singular(other.parent)):
            return f"related_{plural(other.parent)}"
        return plural(named)

    def _find_embedded(self) -> None:
        lookups = {
            relationship.parent
            for relationship in self.schema.inventory.relationships
            if relationship.kind == "lookup"
        }
        for table in self.schema.tables:
            if not self._is_free(table) or self._main(table) or table in self._asked_tables:
                continue
            links = self.schema.children(table)
            gone = [link for link in links if link.child in self.roles.collected]
            if links and gone == links and self._is_carried(table):
                self.roles.embedded[table] = (
                    f"{table} needs no items of its own: its names are in the sets that refer to"
                    " it, and no pattern asks for it alone."
                )
            elif table in lookups and self._is_joined(table) and not self.schema.parents(table):
                self.roles.embedded[table] = (
                    f"{table} is a lookup table: its columns are copied to where they are read,"
                    " and no pattern asks for it alone."
                )

    def _is_carried(self, table: str) -> bool:
        """Whether the members of sets hold all that a table has."""
        carried = {ref for one in self.roles.collected.values() for ref in one.columns}
        return all(
            Ref(table, column.name) in carried or Ref(table, column.name) in self.schema.natural
            for column in self.schema.table(table).columns
        )

    def _find_folded(self) -> None:
        for table in self.schema.tables:
            patterns = self._main(table)
            links = self.schema.children(table)
            if not self._is_free(table) or len({link.child for link in links}) != 1:
                continue
            if self._is_written(table) or not (patterns or self._is_joined(table)):
                continue
            link = links[0]
            if self.schema.sides(link.child) is None:
                continue
            is_own = any(version.parent == table for version in self.roles.versions.values())
            if len(links) > 1 or is_own or not self._is_free(link.child):
                continue
            if all(self._is_by_key(pattern, table) for pattern in patterns):
                self.roles.folded[table] = link

    def _is_by_key(self, pattern: AccessPattern, table: str) -> bool:
        asked = {self.schema.canonical(Ref.parse(name)) for name in pattern.equality}
        key = {
            self.schema.canonical(Ref(table, name)) for name in self.schema.table(table).primary_key
        }
        return bool(key) and asked == key
