"""What each access pattern asks of which items."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from partita.migrate.designing.proposals.questions import WRITES
from partita.migrate.designing.proposals.roles import Roles
from partita.migrate.model.design import DesignKind
from partita.migrate.model.templates import PATH, ROOT
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.graph import SchemaGraph
from partita.migrate.understanding.schema.join_paths import Ways


class Need(Struct, frozen=True):
    """One pattern, in the columns of the entity whose items serve it."""

    entity: str
    pattern: AccessPattern
    equality: tuple[Ref, ...]
    order: tuple[Ref, ...] = ()
    """The column that is compared, and those that are sorted by."""
    wants: tuple[str, ...] = ()
    """Tables above the entity whose columns come with each item."""
    is_one: bool = False
    """The details of a folded parent: one of the items that hold it answers."""
    is_latest: bool = False
    beside: tuple[str, ...] = ()
    """Entities below that the pattern reads too, each by a need of its own."""
    is_beside: bool = False

    @property
    def rate(self) -> float:
        return self.pattern.calls_per_second


class Write(Struct, frozen=True):
    entity: str
    pattern: AccessPattern
    known: frozenset[Ref]
    changed: frozenset[Ref]
    """Empty for all of the row."""

    @property
    def rate(self) -> float:
        return self.pattern.calls_per_second


class Needs(Struct):
    reads: list[Need] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    expiring: list[AccessPattern] = field(default_factory=list)
    unserved: dict[str, str] = field(default_factory=dict)
    """A pattern's name, and why no item can serve it."""

    def of(self, entity: str) -> list[Need]:
        """The reads of an entity, the most frequent first."""
        found = [need for need in self.reads if need.entity == entity]
        return sorted(found, key=lambda need: -need.rate)

    def writes_of(self, entity: str) -> list[Write]:
        return [write for write in self.writes if write.entity == entity]


class Reader:
    """Turns patterns into needs."""

    def __init__(
        self, schema: SchemaGraph, roles: Roles, kind: DesignKind, expire: Iterable[str]
    ) -> None:
        self.schema = schema
        self.roles = roles
        self.kind = kind
        self.expiring = {Ref.parse(name) for name in expire}

    def needs(self, patterns: list[AccessPattern]) -> Needs:
        needs = Needs()
        for pattern in patterns:
            if pattern.table not in self.schema.tables:
                needs.unserved[pattern.name] = f"{pattern.table} is not among the tables to model"
            elif pattern.operation in WRITES:
                self._write(pattern, needs)
            else:
                self._read(pattern, needs)
        return needs

    def ref(self, name: str) -> Ref:
        ref = self.schema.canonical(Ref.parse(name))
        return Ref(self.roles.twins.get(ref.table, ref.table), ref.column)

    def refs(self, names: Iterable[str]) -> tuple[Ref, ...]:
        return tuple(dict.fromkeys(self.ref(name) for name in names))

    def is_above(self, entity: str, table: str) -> bool:
        """Whether a row of the entity leads to one row of a table."""
        table = self.roles.twins.get(table, table)
        if table in self.roles.merged:
            table = self.roles.merged[table].parent
        return self.schema.path_up(entity, table) is not None

    def _read(self, pattern: AccessPattern, needs: Needs) -> None:
        entity = self.roles.entity_of(pattern.table)
        if entity is None:
            needs.unserved[pattern.name] = f"{pattern.table} has no items of its own"
            return
        equality = self.refs(pattern.equality)
        if not equality:
            needs.unserved[pattern.name] = _unasked(pattern)
            return
        if pattern.hierarchy:
            self._read_tree(entity, equality, pattern, needs)
            return
        order = tuple(
            ref for ref in self.refs([*pattern.range, *pattern.order_by]) if ref not in equality
        )
        entity = self._finest(entity, pattern)
        below = self._below(entity, pattern)
        if len(below) == 1 and self._is_copied_down(entity):
            entity, below = below[0], []
        why = self._unreachable(entity, pattern, (*equality, *order))
        if why:
            needs.unserved[pattern.name] = why
            return
        is_latest = self._is_latest(entity, equality, pattern)
        need = Need(
            entity=entity,
            pattern=pattern,
            equality=equality,
            order=self._without_version(entity, order) if is_latest else order,
            wants=tuple(
                one for one in (pattern.table, *pattern.joins) if one in self.schema.tables
            ),
            is_one=self._is_folded_one(pattern, entity),
            is_latest=is_latest,
            beside=tuple(below),
        )
        needs.reads += [need, *(self._beside(need, other) for other in below)]

    def _beside(self, need: Need, entity: str) -> Need:
        """The same pattern, of the items of an entity below."""
        return Need(entity=entity, pattern=need.pattern, equality=need.equality, is_beside=True)

    def _read_tree(
        self, entity: str, equality: tuple[Ref, ...], pattern: AccessPattern, needs: Needs
    ) -> None:
        """The row, which knows its path, and then all whose paths begin with it."""
        if entity != pattern.table:
            needs.unserved[pattern.name] = f"{pattern.table} has no items of its own"
            return
        column = Ref.parse(pattern.hierarchy).column
        root, path = (Ref(entity, f"{column}:{part}") for part in (ROOT, PATH))
        first = Need(entity=entity, pattern=pattern, equality=equality)
        needs.reads += [
            first,
            replace(first, equality=(root,), order=(path,), is_beside=True),
        ]

    def _unreachable(self, entity: str, pattern: AccessPattern, refs: tuple[Ref, ...]) -> str:
        """In words, when a column that is asked for cannot be a part of the entity's keys."""
        for ref in refs:
            if not self.is_above(entity, ref.table):
                return f"{ref} is not a part of {entity}'s items{self._apart(entity, ref.table)}"
        return self._astray(entity, pattern, [ref.table for ref in refs])

    def _apart(self, entity: str, table: str) -> str:
        """Two tables that nothing connects, as far as the schema says."""
        if table not in self.schema.tables or Ways(self.schema.inventory).between(entity, table):
            return ""
        return "; no foreign key connects them: name one under references in [source]"

    def _astray(self, entity: str, pattern: AccessPattern, tables: list[str]) -> str:
        """In words, when keys are made of what other foreign keys lead to than the pattern's.

        Of two references to a table, the columns of one row can be a part of keys.
        """
        paths = [self.schema.path_up(entity, table) or [] for table in dict.fromkeys(tables)]
        followed = [link for path in paths for link in path]
        for name in pattern.through:
            child = Ref.parse(name).table
            beside = [link for link in followed if link.child == child]
            if beside and not any(name in link.columns for link in beside):
                held = ", ".join(beside[0].columns)
                return f"it goes through {name}, and {entity}'s keys hold what {held} leads to"
        return ""

    def _finest(self, entity: str, pattern: AccessPattern) -> str:
        """Further down, when a column is asked for that only a child has."""
        for name in (*pattern.equality, *pattern.range, *pattern.order_by):
            if self.is_above(entity, self.ref(name).table):
                continue
            table = Ref.parse(name).table
            lower = self.roles.entity_of(table) if table in self.schema.tables else None
            if lower and self.is_above(lower, entity):
                entity = lower
            else:
                entity = self._between(entity, table, pattern) or entity
        return entity

    def _below(self, entity: str, pattern: AccessPattern) -> list[str]:
        """Entities with many rows for one of the entity's, which the pattern joins."""
        found = []
        for table in pattern.joins:
            holder = self.roles.entity_of(table)
            if holder is None or self.is_above(entity, table):
                continue
            is_below = self.is_above(holder, entity)
            below = holder if is_below else self._between(entity, table, pattern)
            if below:
                found.append(below)
        return list(dict.fromkeys(found))

    def _is_copied_down(self, entity: str) -> bool:
        """Whether items below can answer alone: with copies, unless the entity holds more."""
        held = {one.owner for one in self.roles.collected.values()}
        return self.kind == "denormalized" and entity not in held

    def _between(self, entity: str, table: str, pattern: AccessPattern) -> str | None:
        """The table that joins two others: the one that the pattern names, or the first."""
        for name in dict.fromkeys([*pattern.through, *self.schema.tables]):
            if name not in self.schema.tables:
                continue
            parents = {link.parent for link in self.schema.parents(name)}
            if {entity, table} <= parents and self.roles.entity_of(name) == name:
                return name
        return None

    def _is_latest(self, entity: str, equality: tuple[Ref, ...], pattern: AccessPattern) -> bool:
        version = self.roles.versions.get(entity)
        if version is None or Ref(entity, version.column) in equality:
            return False
        if pattern.table == version.parent:
            return True
        newest = [str(Ref(entity, version.column))]
        is_newest_first = pattern.is_descending and pattern.order_by[:1] == newest
        return pattern.limit == 1 and is_newest_first and not pattern.range

    def _without_version(self, entity: str, order: tuple[Ref, ...]) -> tuple[Ref, ...]:
        newest = Ref(entity, self.roles.versions[entity].column)
        return tuple(ref for ref in order if ref != newest)

    def _is_folded_one(self, pattern: AccessPattern, entity: str) -> bool:
        return pattern.table in self.roles.folded and pattern.table != entity

    def _write(self, pattern: AccessPattern, needs: Needs) -> None:
        dates = {Ref.parse(name) for name in pattern.range}
        if pattern.operation == "delete" and not pattern.equality and dates & self.expiring:
            needs.expiring.append(pattern)
            return
        entity = self.roles.entity_of(pattern.table)
        if entity is None:
            needs.unserved[pattern.name] = f"{pattern.table} has no items of its own"
            return
        known = frozenset(self.refs(pattern.equality))
        if pattern.operation != "insert" and not known:
            needs.unserved[pattern.name] = "it changes rows without naming a value: it is a scan"
            return
        needs.writes.append(
            Write(
                entity=entity,
                pattern=pattern,
                known=known,
                changed=frozenset(self.refs(pattern.columns)),
            )
        )


def _unasked(pattern: AccessPattern) -> str:
    """Why a pattern without a value to look for is a scan, and what would help."""
    if not pattern.filters:
        return "it asks for no value of any column: it is a scan"
    tested = ", ".join(pattern.filters)
    advice = "; of alternatives (OR), a pattern for each is served" if pattern.filters[1:] else ""
    return f"no key finds what it tests ({tested}): it is a scan{advice}"
