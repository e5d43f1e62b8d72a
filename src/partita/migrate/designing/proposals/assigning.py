"""Which role each table gets, and by which rule."""

from __future__ import annotations

import re

from partita.migrate.designing.proposals.collecting import Collector
from partita.migrate.designing.proposals.questions import Questions
from partita.migrate.designing.proposals.roles import Roles, Version
from partita.migrate.designing.settings import ModelSettings
from partita.migrate.model.design import DesignKind
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.graph import SchemaGraph
from partita.migrate.understanding.schema.join_paths import Link
from partita.migrate.understanding.schema.words import name_parts

NATURAL_KINDS = ("string", "uuid", "enum", "integer", "decimal", "date", "datetime")

_VERSION = re.compile(r"(?i)(^|_)(version|revision|rev|edition)(_?(no|nr|num|number|id))?$")


class Assigner:
    """Gives every table its role, the most particular one first."""

    def __init__(
        self,
        schema: SchemaGraph,
        patterns: list[AccessPattern],
        volumes: Volumes,
        settings: ModelSettings,
        kind: DesignKind,
    ) -> None:
        self.schema = schema
        self.questions = Questions(patterns)
        self.volumes = volumes
        self.settings = settings
        self.kind = kind
        self.roles = Roles()

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

    def _is_free(self, table: str) -> bool:
        roles = self.roles
        others = (roles.passed, roles.versions, roles.merged, roles.collected, roles.embedded)
        return not any(table in role for role in others)

    def _find_twins(self) -> None:
        first_of: dict[tuple[object, ...], str] = {}
        for table in self.schema.tables.values():
            if table.foreign_keys or len(table.columns) < 3 or self.schema.children(table.name):
                continue
            form = (
                name_parts(table.name)[0],
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
            if len(owners) != 1 or not crossings or self.questions.of(table):
                continue
            children = {link.child for link in crossings}
            if self.schema.parents(table) or any(map(self.questions.of, children)):
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
        asked = self.questions.columns
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
            and not self.questions.of(table)
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
                if _VERSION.search(rest[0]) or self.questions.want_latest(table.name, rest[0]):
                    self.roles.versions[table.name] = Version(link.parent, rest[0], link)

    def _find_merged(self) -> None:
        for table in self.schema.tables:
            if not self._is_free(table) or self.questions.ask_for(table):
                continue
            for link in self.schema.parents(table):
                keys = map(set, self.schema.unique_keys(table))
                if link.parent != table and set(link.key.columns) in keys:
                    if self.questions.join(table) and not self.schema.children(table):
                        self.roles.merged[table] = link
                        break

    def _find_collected(self) -> None:
        collector = Collector(
            self.schema, self.questions, self.volumes, self.settings, self.roles.passed
        )
        for table in self.schema.tables:
            if not self._is_free(table) or self.questions.ask_for(table):
                continue
            collected = None if self.schema.children(table) else collector.collect(table)
            if collected:
                self.roles.collected[table] = collected

    def _find_embedded(self) -> None:
        lookups = {
            relationship.parent
            for relationship in self.schema.inventory.relationships
            if relationship.kind == "lookup"
        }
        for table in self.schema.tables:
            if not self._is_free(table) or self.questions.ask_for(table):
                continue
            links = self.schema.children(table)
            gone = [link for link in links if link.child in self.roles.collected]
            if links and gone == links and self._is_carried(table):
                self.roles.embedded[table] = (
                    f"{table} needs no items of its own: its names are in the sets that refer to"
                    " it, and no pattern asks for it alone."
                )
            elif table in lookups and self.questions.join(table) and not self.schema.parents(table):
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
            patterns = self.questions.of(table)
            links = self.schema.children(table)
            if not self._is_free(table) or len({link.child for link in links}) != 1:
                continue
            if self.questions.write(table) or not (patterns or self.questions.join(table)):
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
