"""The workload of each entity: which of its items the access patterns read and write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.pattern_usage import WRITES
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.model.keys.key_templates import PATH, ROOT
from partita_migrate.understanding.patterns.access_patterns import KEY_MUST_HOLD, AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import COMPUTED
from partita_migrate.understanding.schema.join_paths import JoinPaths


@dataclass(frozen=True)
class PatternRead:
    """One read of a pattern, in the columns of the entity whose items serve it."""

    entity: str
    pattern: AccessPattern
    equality: tuple[ColumnRef, ...]
    order: tuple[ColumnRef, ...] = ()
    """The column of the range, then the columns that the pattern sorts by."""
    tables: tuple[str, ...] = ()
    """Tables above the entity whose columns come with each item."""
    is_any_item: bool = False
    """True when any one item answers: it holds the columns of a folded parent."""
    is_latest: bool = False
    children: tuple[str, ...] = ()
    """Entities below this one that the pattern also reads, each with a further read."""
    is_further: bool = False

    @property
    def rate(self) -> float:
        return self.pattern.calls_per_second


@dataclass(frozen=True)
class PatternWrite:
    """One write of a pattern to the items of an entity."""

    entity: str
    pattern: AccessPattern
    known: frozenset[ColumnRef]
    changed: frozenset[ColumnRef]
    """The columns that change; empty for the whole row."""

    @property
    def rate(self) -> float:
        return self.pattern.calls_per_second


@dataclass(frozen=True)
class Workload:
    reads: list[PatternRead]
    writes: list[PatternWrite]
    expiring: list[AccessPattern]
    """Deletes of expired rows, which DynamoDB's TTL takes over."""
    unserved: dict[str, str]
    """Patterns that no item can serve, with the reason."""

    def reads_of(self, entity: str) -> list[PatternRead]:
        """Returns the reads of an entity, the most frequent first."""
        reads = [read for read in self.reads if read.entity == entity]
        return sorted(reads, key=lambda read: -read.rate)

    def writes_of(self, entity: str) -> list[PatternWrite]:
        return [write for write in self.writes if write.entity == entity]


class _NotServed(Exception):
    """Raised when no item can serve a pattern. Its text says why."""


def read_workload(inputs: DesignInputs, roles: TableRoles) -> Workload:
    workload = Workload([], [], [], {})
    for pattern in inputs.patterns:
        try:
            _add(inputs, roles, pattern, workload)
        except _NotServed as reason:
            workload.unserved[pattern.name] = str(reason)
    return workload


def _add(
    inputs: DesignInputs, roles: TableRoles, pattern: AccessPattern, workload: Workload
) -> None:
    if pattern.table not in inputs.schema.tables:
        raise _NotServed(f"{pattern.table} is not among the tables to model")
    if _is_expiry(inputs, pattern):
        workload.expiring.append(pattern)
        return
    entity = roles.entity_of(pattern.table)
    if entity is None:
        raise _NotServed(f"{pattern.table} has no items of its own")
    _refuse_computed(inputs, pattern)
    if pattern.operation in WRITES:
        workload.writes.append(_write(inputs, roles, entity, pattern))
    elif pattern.hierarchy:
        workload.reads.extend(_tree_reads(inputs, roles, entity, pattern))
    else:
        workload.reads.extend(_reads(inputs, roles, entity, pattern))


def _refuse_computed(inputs: DesignInputs, pattern: AccessPattern) -> None:
    """Refuses a pattern with a computed column: only the source can fill it, so no item has it."""
    for name in (*pattern.equality, *pattern.range, *pattern.order_by, *pattern.columns):
        column = inputs.schema.column(ColumnRef.parse(name))
        if column is not None and column.is_generated:
            raise _NotServed(f"{name}: {COMPUTED}")


def _ref(inputs: DesignInputs, roles: TableRoles, name: str) -> ColumnRef:
    return roles.of_first_twin(inputs.schema.canonical(ColumnRef.parse(name)))


def _refs(inputs: DesignInputs, roles: TableRoles, names: Iterable[str]) -> tuple[ColumnRef, ...]:
    return tuple(dict.fromkeys(_ref(inputs, roles, name) for name in names))


def _is_above(inputs: DesignInputs, roles: TableRoles, entity: str, table: str) -> bool:
    """True when each row of the entity leads to one row of the table."""
    table = roles.twins.get(table, table)
    if table in roles.merged:
        table = roles.merged[table].parent
    return inputs.schema.path_up(entity, table) is not None


# Writes.


def _is_expiry(inputs: DesignInputs, pattern: AccessPattern) -> bool:
    """True for a delete whose only condition is a date by which items expire anyway."""
    if pattern.operation != "delete" or pattern.equality:
        return False
    expiring = {ColumnRef.parse(name) for name in inputs.settings.expire}
    return bool({ColumnRef.parse(name) for name in pattern.range} & expiring)


def _write(
    inputs: DesignInputs, roles: TableRoles, entity: str, pattern: AccessPattern
) -> PatternWrite:
    given_columns = frozenset(_refs(inputs, roles, pattern.equality))
    if pattern.operation != "insert" and not given_columns:
        raise _NotServed(f"it changes rows without naming a value: it is a scan{_expiry(pattern)}")
    return PatternWrite(
        entity=entity,
        pattern=pattern,
        known=given_columns,
        changed=frozenset(_refs(inputs, roles, pattern.columns)),
    )


def _expiry(pattern: AccessPattern) -> str:
    """Suggests TTL for a delete of rows beyond an age."""
    if pattern.operation != "delete" or len(pattern.range) != 1 or pattern.filters:
        return ""
    return (
        f'; TTL deletes such items by itself, some time later, with "{pattern.range[0]}" = 0 under'
        " [model.expire] of migration.toml"
    )


# Reads.


def _given(
    inputs: DesignInputs, roles: TableRoles, pattern: AccessPattern
) -> tuple[ColumnRef, ...]:
    """Returns the columns whose values a pattern passes. Without any, only a scan finds its
    rows."""
    _refuse_forms(inputs, pattern)
    equality = _refs(inputs, roles, pattern.equality)
    if equality:
        return equality
    if not pattern.filters:
        raise _NotServed("it passes no value of any column: it is a scan")
    tested = ", ".join(pattern.filters)
    advice = (
        "; if these are alternatives (OR), write a pattern for each" if pattern.filters[1:] else ""
    )
    raise _NotServed(f"no key finds what it tests ({tested}): it is a scan{advice}")


def _refuse_forms(inputs: DesignInputs, pattern: AccessPattern) -> None:
    """Refuses a column in another form, such as trim(name): no key holds it. A case-insensitive
    column already has its form in keys."""
    for remark in pattern.description.split("; "):
        if not remark.startswith(KEY_MUST_HOLD):
            continue
        form, _, name = remark.removeprefix(KEY_MUST_HOLD).rstrip(")").partition("(")
        column = inputs.schema.column(ColumnRef.parse(name))
        is_blind = column is not None and column.is_case_insensitive
        if inputs.volumes.inventory.dialect in ("mysql", "mariadb") and is_blind and form != "trim":
            continue
        raise _NotServed(f"it compares {form}({name}), which no key holds")


def _reads(
    inputs: DesignInputs, roles: TableRoles, entity: str, pattern: AccessPattern
) -> list[PatternRead]:
    equality = _given(inputs, roles, pattern)
    order = _order(inputs, roles, pattern, equality)
    entity = _finest(inputs, roles, entity, pattern)
    below = _below(inputs, roles, entity, pattern)
    if len(below) == 1 and _is_copied_down(inputs, roles, entity):
        entity, below = below[0], []
    _refuse_unreachable(inputs, roles, entity, pattern, (*equality, *order))
    is_latest = _is_latest(roles, entity, equality, pattern)
    first = PatternRead(
        entity=entity,
        pattern=pattern,
        equality=equality,
        order=_without_version(roles, entity, order) if is_latest else order,
        tables=tuple(
            table for table in (pattern.table, *pattern.joins) if table in inputs.schema.tables
        ),
        is_any_item=pattern.table in roles.folded and pattern.table != entity,
        is_latest=is_latest,
        children=tuple(below),
    )
    further = [
        PatternRead(entity=child, pattern=pattern, equality=equality, is_further=True)
        for child in below
    ]
    return [first, *further]


def _order(
    inputs: DesignInputs, roles: TableRoles, pattern: AccessPattern, equality: tuple[ColumnRef, ...]
) -> tuple[ColumnRef, ...]:
    """Returns the columns that a sort key has to hold. After a range of one column, other columns
    are not in order."""
    compared = _refs(inputs, roles, pattern.range)
    sorted_by = _refs(inputs, roles, pattern.order_by)
    if compared and sorted_by[:1] != compared[:1]:
        sorted_by = ()
    return tuple(ref for ref in dict.fromkeys((*compared, *sorted_by)) if ref not in equality)


def _tree_reads(
    inputs: DesignInputs, roles: TableRoles, entity: str, pattern: AccessPattern
) -> list[PatternRead]:
    """Reads the row, which holds its path, and then every row whose path begins with it."""
    equality = _given(inputs, roles, pattern)
    if entity != pattern.table:
        raise _NotServed(f"{pattern.table} has no items of its own")
    column = ColumnRef.parse(pattern.hierarchy).column
    root, path = (ColumnRef(entity, f"{column}:{part}") for part in (ROOT, PATH))
    first = PatternRead(entity=entity, pattern=pattern, equality=equality)
    return [first, replace(first, equality=(root,), order=(path,), is_further=True)]


def _finest(inputs: DesignInputs, roles: TableRoles, entity: str, pattern: AccessPattern) -> str:
    """Moves down to a child entity when the pattern passes or sorts by a column that only a child
    has."""
    for name in (*pattern.equality, *pattern.range, *pattern.order_by):
        if _is_above(inputs, roles, entity, _ref(inputs, roles, name).table):
            continue
        table = ColumnRef.parse(name).table
        lower = roles.entity_of(table) if table in inputs.schema.tables else None
        if lower and _is_above(inputs, roles, lower, entity):
            entity = lower
        else:
            entity = _between(inputs, roles, entity, table, pattern) or entity
    return entity


def _below(
    inputs: DesignInputs, roles: TableRoles, entity: str, pattern: AccessPattern
) -> list[str]:
    """Returns the joined entities that have many rows for each row of this one."""
    entities = []
    for table in pattern.joins:
        holder = roles.entity_of(table)
        if holder is None or _is_above(inputs, roles, entity, table):
            continue
        is_below = _is_above(inputs, roles, holder, entity)
        below = holder if is_below else _between(inputs, roles, entity, table, pattern)
        if below:
            entities.append(below)
    return list(dict.fromkeys(entities))


def _between(
    inputs: DesignInputs, roles: TableRoles, entity: str, table: str, pattern: AccessPattern
) -> str | None:
    """Returns the table that connects two others: the one that the pattern names, or the first."""
    for name in dict.fromkeys([*pattern.through, *inputs.schema.tables]):
        if name not in inputs.schema.tables:
            continue
        parents = {link.parent for link in inputs.schema.parents(name)}
        if {entity, table} <= parents and roles.entity_of(name) == name:
            return name
    return None


def _is_copied_down(inputs: DesignInputs, roles: TableRoles, entity: str) -> bool:
    """True when the items below can answer alone, because they repeat this entity's columns."""
    owners = {child.owner for child in roles.collected.values()}
    return inputs.kind == "denormalized" and entity not in owners


def _refuse_unreachable(
    inputs: DesignInputs,
    roles: TableRoles,
    entity: str,
    pattern: AccessPattern,
    refs: tuple[ColumnRef, ...],
) -> None:
    """Refuses a pattern that passes or sorts by a column that cannot be part of the entity's
    keys."""
    for ref in refs:
        if not _is_above(inputs, roles, entity, ref.table):
            apart = _apart(inputs, entity, ref.table)
            raise _NotServed(f"{ref} is not a part of {entity}'s items{apart}")
    _refuse_other_way(inputs, entity, pattern, [ref.table for ref in refs])


def _apart(inputs: DesignInputs, entity: str, table: str) -> str:
    """Explains that no foreign key connects two tables."""
    schema = inputs.schema
    if table not in schema.tables or JoinPaths(schema.inventory).between(entity, table):
        return ""
    return "; no foreign key connects them: name one under references in [source]"


def _refuse_other_way(
    inputs: DesignInputs, entity: str, pattern: AccessPattern, tables: list[str]
) -> None:
    """Refuses a pattern that follows other foreign keys than the entity's keys do.

    When an entity has two references to one table, only the columns of one of these rows can be
    part of keys.
    """
    paths = [inputs.schema.path_up(entity, table) or [] for table in dict.fromkeys(tables)]
    followed = [link for path in paths for link in path]
    for name in pattern.through:
        child = ColumnRef.parse(name).table
        beside = [link for link in followed if link.child == child]
        if beside and not any(name in link.columns for link in beside):
            columns = ", ".join(beside[0].columns)
            raise _NotServed(
                f"it goes through {name}, and {entity}'s keys hold what {columns} leads to"
            )


def _is_latest(
    roles: TableRoles, entity: str, equality: tuple[ColumnRef, ...], pattern: AccessPattern
) -> bool:
    version = roles.versions.get(entity)
    if version is None or ColumnRef(entity, version.column) in equality:
        return False
    if pattern.table == version.parent:
        return True
    newest = [str(ColumnRef(entity, version.column))]
    is_newest_first = pattern.is_descending and pattern.order_by[:1] == newest
    return pattern.limit == 1 and is_newest_first and not pattern.range


def _without_version(
    roles: TableRoles, entity: str, order: tuple[ColumnRef, ...]
) -> tuple[ColumnRef, ...]:
    newest = ColumnRef(entity, roles.versions[entity].column)
    return tuple(ref for ref in order if ref != newest)
