"""The workload of each entity: what access patterns read and write of which items."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.roles import Roles
from partita_migrate.designing.proposals.usage import WRITES
from partita_migrate.model.templates import PATH, ROOT
from partita_migrate.understanding.patterns.access_patterns import KEY_MUST_HOLD, AccessPattern
from partita_migrate.understanding.schema.column_refs import Ref
from partita_migrate.understanding.schema.inventory import COMPUTED
from partita_migrate.understanding.schema.join_paths import JoinPaths


@dataclass(frozen=True)
class Read:
    """What one pattern reads, in the columns of the entity whose items serve it."""

    entity: str
    pattern: AccessPattern
    equality: tuple[Ref, ...]
    order: tuple[Ref, ...] = ()
    """The column that is compared, and those that are sorted by."""
    tables: tuple[str, ...] = ()
    """Tables above the entity whose columns come with each item."""
    is_any_item: bool = False
    """The details of a folded parent: one of the items that hold it answers."""
    is_latest: bool = False
    children: tuple[str, ...] = ()
    """Entities below that the pattern reads too, each by a further read."""
    is_further: bool = False

    @property
    def rate(self) -> float:
        return self.pattern.calls_per_second


@dataclass(frozen=True)
class Write:
    entity: str
    pattern: AccessPattern
    known: frozenset[Ref]
    changed: frozenset[Ref]
    """Empty for all of the row."""

    @property
    def rate(self) -> float:
        return self.pattern.calls_per_second


@dataclass(frozen=True)
class Workload:
    reads: list[Read]
    writes: list[Write]
    expiring: list[AccessPattern]
    """Those that delete what is old, which the service does by itself."""
    unserved: dict[str, str]
    """A pattern's name, and why no item can serve it."""

    def reads_of(self, entity: str) -> list[Read]:
        """The most frequent first."""
        found = [read for read in self.reads if read.entity == entity]
        return sorted(found, key=lambda read: -read.rate)

    def writes_of(self, entity: str) -> list[Write]:
        return [write for write in self.writes if write.entity == entity]


class _NotServed(Exception):
    """No item can serve a pattern; the text says why."""


def read_workload(inputs: DesignInputs, roles: Roles) -> Workload:
    workload = Workload([], [], [], {})
    for pattern in inputs.patterns:
        try:
            _add(inputs, roles, pattern, workload)
        except _NotServed as reason:
            workload.unserved[pattern.name] = str(reason)
    return workload


def _add(inputs: DesignInputs, roles: Roles, pattern: AccessPattern, workload: Workload) -> None:
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
    """A column that only the source can fill is in no item."""
    for name in (*pattern.equality, *pattern.range, *pattern.order_by, *pattern.columns):
        column = inputs.schema.column(Ref.parse(name))
        if column is not None and column.is_generated:
            raise _NotServed(f"{name}: {COMPUTED}")


def _ref(inputs: DesignInputs, roles: Roles, name: str) -> Ref:
    return roles.of_first_twin(inputs.schema.canonical(Ref.parse(name)))


def _refs(inputs: DesignInputs, roles: Roles, names: Iterable[str]) -> tuple[Ref, ...]:
    return tuple(dict.fromkeys(_ref(inputs, roles, name) for name in names))


def _is_above(inputs: DesignInputs, roles: Roles, entity: str, table: str) -> bool:
    """Whether a row of the entity leads to one row of a table."""
    table = roles.twins.get(table, table)
    if table in roles.merged:
        table = roles.merged[table].parent
    return inputs.schema.path_up(entity, table) is not None


# Writes.


def _is_expiry(inputs: DesignInputs, pattern: AccessPattern) -> bool:
    """Whether a pattern deletes by nothing but a date at which items expire anyway."""
    if pattern.operation != "delete" or pattern.equality:
        return False
    expiring = {Ref.parse(name) for name in inputs.settings.expire}
    return bool({Ref.parse(name) for name in pattern.range} & expiring)


def _write(inputs: DesignInputs, roles: Roles, entity: str, pattern: AccessPattern) -> Write:
    known = frozenset(_refs(inputs, roles, pattern.equality))
    if pattern.operation != "insert" and not known:
        raise _NotServed(f"it changes rows without naming a value: it is a scan{_expiry(pattern)}")
    return Write(
        entity=entity,
        pattern=pattern,
        known=known,
        changed=frozenset(_refs(inputs, roles, pattern.columns)),
    )


def _expiry(pattern: AccessPattern) -> str:
    """What a clean-up by age could be instead."""
    if pattern.operation != "delete" or len(pattern.range) != 1 or pattern.filters:
        return ""
    return (
        f'; the service deletes by itself, a while later, with "{pattern.range[0]}" = 0 under'
        " [model.expire] of migration.toml"
    )


# Reads.


def _given(inputs: DesignInputs, roles: Roles, pattern: AccessPattern) -> tuple[Ref, ...]:
    """The columns whose values a pattern gives; without any, only a scan finds its rows."""
    _refuse_forms(inputs, pattern)
    equality = _refs(inputs, roles, pattern.equality)
    if equality:
        return equality
    if not pattern.filters:
        raise _NotServed("it asks for no value of any column: it is a scan")
    tested = ", ".join(pattern.filters)
    advice = "; of alternatives (OR), a pattern for each is served" if pattern.filters[1:] else ""
    raise _NotServed(f"no key finds what it tests ({tested}): it is a scan{advice}")


def _refuse_forms(inputs: DesignInputs, pattern: AccessPattern) -> None:
    """A column that is compared in another form gets a key that holds it so, and no plain one."""
    for remark in pattern.description.split("; "):
        if not remark.startswith(KEY_MUST_HOLD):
            continue
        form, _, name = remark.removeprefix(KEY_MUST_HOLD).rstrip(")").partition("(")
        column = inputs.schema.column(Ref.parse(name))
        is_blind = column is not None and column.is_case_insensitive
        if inputs.volumes.inventory.dialect in ("mysql", "mariadb") and is_blind and form != "trim":
            continue
        raise _NotServed(f"it compares {form}({name}), which no key holds")


def _reads(inputs: DesignInputs, roles: Roles, entity: str, pattern: AccessPattern) -> list[Read]:
    equality = _given(inputs, roles, pattern)
    order = _order(inputs, roles, pattern, equality)
    entity = _finest(inputs, roles, entity, pattern)
    below = _below(inputs, roles, entity, pattern)
    if len(below) == 1 and _is_copied_down(inputs, roles, entity):
        entity, below = below[0], []
    _refuse_unreachable(inputs, roles, entity, pattern, (*equality, *order))
    is_latest = _is_latest(roles, entity, equality, pattern)
    first = Read(
        entity=entity,
        pattern=pattern,
        equality=equality,
        order=_without_version(roles, entity, order) if is_latest else order,
        tables=tuple(one for one in (pattern.table, *pattern.joins) if one in inputs.schema.tables),
        is_any_item=pattern.table in roles.folded and pattern.table != entity,
        is_latest=is_latest,
        children=tuple(below),
    )
    further = [
        Read(entity=child, pattern=pattern, equality=equality, is_further=True) for child in below
    ]
    return [first, *further]


def _order(
    inputs: DesignInputs, roles: Roles, pattern: AccessPattern, equality: tuple[Ref, ...]
) -> tuple[Ref, ...]:
    """What a sort key has to hold: behind a range of one column, no other is in order."""
    compared = _refs(inputs, roles, pattern.range)
    sorted_by = _refs(inputs, roles, pattern.order_by)
    if compared and sorted_by[:1] != compared[:1]:
        sorted_by = ()
    return tuple(ref for ref in dict.fromkeys((*compared, *sorted_by)) if ref not in equality)


def _tree_reads(
    inputs: DesignInputs, roles: Roles, entity: str, pattern: AccessPattern
) -> list[Read]:
    """The row, which knows its path, and then all whose paths begin with it."""
    equality = _given(inputs, roles, pattern)
    if entity != pattern.table:
        raise _NotServed(f"{pattern.table} has no items of its own")
    column = Ref.parse(pattern.hierarchy).column
    root, path = (Ref(entity, f"{column}:{part}") for part in (ROOT, PATH))
    first = Read(entity=entity, pattern=pattern, equality=equality)
    return [first, replace(first, equality=(root,), order=(path,), is_further=True)]


def _finest(inputs: DesignInputs, roles: Roles, entity: str, pattern: AccessPattern) -> str:
    """Further down, when a column is asked for that only a child has."""
    for name in (*pattern.equality, *pattern.range, *pattern.order_by):
        if _is_above(inputs, roles, entity, _ref(inputs, roles, name).table):
            continue
        table = Ref.parse(name).table
        lower = roles.entity_of(table) if table in inputs.schema.tables else None
        if lower and _is_above(inputs, roles, lower, entity):
            entity = lower
        else:
            entity = _between(inputs, roles, entity, table, pattern) or entity
    return entity


def _below(inputs: DesignInputs, roles: Roles, entity: str, pattern: AccessPattern) -> list[str]:
    """Entities with many rows for one of the entity's, which the pattern joins."""
    found = []
    for table in pattern.joins:
        holder = roles.entity_of(table)
        if holder is None or _is_above(inputs, roles, entity, table):
            continue
        is_below = _is_above(inputs, roles, holder, entity)
        below = holder if is_below else _between(inputs, roles, entity, table, pattern)
        if below:
            found.append(below)
    return list(dict.fromkeys(found))


def _between(
    inputs: DesignInputs, roles: Roles, entity: str, table: str, pattern: AccessPattern
) -> str | None:
    """The table that joins two others: the one that the pattern names, or the first."""
    for name in dict.fromkeys([*pattern.through, *inputs.schema.tables]):
        if name not in inputs.schema.tables:
            continue
        parents = {link.parent for link in inputs.schema.parents(name)}
        if {entity, table} <= parents and roles.entity_of(name) == name:
            return name
    return None


def _is_copied_down(inputs: DesignInputs, roles: Roles, entity: str) -> bool:
    """Whether items below can answer alone: with copies, unless the entity holds more."""
    held = {one.owner for one in roles.collected.values()}
    return inputs.kind == "denormalized" and entity not in held


def _refuse_unreachable(
    inputs: DesignInputs,
    roles: Roles,
    entity: str,
    pattern: AccessPattern,
    refs: tuple[Ref, ...],
) -> None:
    """When a column that is asked for cannot be a part of the entity's keys."""
    for ref in refs:
        if not _is_above(inputs, roles, entity, ref.table):
            apart = _apart(inputs, entity, ref.table)
            raise _NotServed(f"{ref} is not a part of {entity}'s items{apart}")
    _refuse_other_way(inputs, entity, pattern, [ref.table for ref in refs])


def _apart(inputs: DesignInputs, entity: str, table: str) -> str:
    """Two tables that nothing connects, as far as the schema says."""
    schema = inputs.schema
    if table not in schema.tables or JoinPaths(schema.inventory).between(entity, table):
        return ""
    return "; no foreign key connects them: name one under references in [source]"


def _refuse_other_way(
    inputs: DesignInputs, entity: str, pattern: AccessPattern, tables: list[str]
) -> None:
    """When keys are made of what other foreign keys lead to than the pattern's.

    Of two references to a table, the columns of one row can be a part of keys.
    """
    paths = [inputs.schema.path_up(entity, table) or [] for table in dict.fromkeys(tables)]
    followed = [link for path in paths for link in path]
    for name in pattern.through:
        child = Ref.parse(name).table
        beside = [link for link in followed if link.child == child]
        if beside and not any(name in link.columns for link in beside):
            held = ", ".join(beside[0].columns)
            raise _NotServed(
                f"it goes through {name}, and {entity}'s keys hold what {held} leads to"
            )


def _is_latest(
    roles: Roles, entity: str, equality: tuple[Ref, ...], pattern: AccessPattern
) -> bool:
    version = roles.versions.get(entity)
    if version is None or Ref(entity, version.column) in equality:
        return False
    if pattern.table == version.parent:
        return True
    newest = [str(Ref(entity, version.column))]
    is_newest_first = pattern.is_descending and pattern.order_by[:1] == newest
    return pattern.limit == 1 and is_newest_first and not pattern.range


def _without_version(roles: Roles, entity: str, order: tuple[Ref, ...]) -> tuple[Ref, ...]:
    newest = Ref(entity, roles.versions[entity].column)
    return tuple(ref for ref in order if ref != newest)
