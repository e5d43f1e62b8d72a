"""Turns the rows of a child table into a set or list in the items of its owner."""

from __future__ import annotations

from dataclasses import replace

from partita.foundation.service_limits import KB
from partita_migrate.designing.attribute_naming import role
from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.table_roles import CollectedChild, TableRoles
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink
from partita_migrate.understanding.schema.name_words import name_parts, plural, singular

COLLECTED_BYTES_MAX = 64 * KB
"""The maximum size of a collected set or list. Every read and write of the item pays for all of
it."""


def find_collected(inputs: DesignInputs, roles: TableRoles) -> TableRoles:
    collected: dict[str, CollectedChild] = {}
    for table in inputs.schema.tables:
        is_free = roles.is_free(table) and not inputs.usage.is_asked_for(table)
        if is_free and not inputs.schema.children(table):
            attribute = _collect(inputs, roles, table)
            if attribute is not None:
                collected[table] = attribute
    return replace(roles, collected=collected)


def _collect(inputs: DesignInputs, roles: TableRoles, table: str) -> CollectedChild | None:
    """Returns the attribute that a table's rows become, or None when they should stay items."""
    sides = inputs.schema.sides(table)
    if sides is None:
        parents = inputs.schema.parents(table)
        return _collected(inputs, roles, table, parents[0], None) if parents else None
    first, second = sides
    if inputs.usage.crosses(table, {first.parent, second.parent}):
        # A pattern looks up one side by the other, and a set cannot be a key.
        return None
    owning = _owning_side(inputs, roles, first, second)
    other = next((side for side in sides if side != owning), None)
    return _collected(inputs, roles, table, owning, other)


def _owning_side(
    inputs: DesignInputs, roles: TableRoles, first: ForeignKeyLink, second: ForeignKeyLink
) -> ForeignKeyLink:
    """Returns the side of an intersection table that gets the set: the one that is read together
    with the other side."""
    if second.parent in roles.bypassed:
        return second
    named = {name for pattern in inputs.patterns for name in pattern.through}
    for link in (first, second):
        if named & set(link.columns):
            return link
    for link, other in ((first, second), (second, first)):
        named = {link.child, other.parent}
        if any(named & set(pattern.joins) for pattern in inputs.usage.patterns_of(link.parent)):
            return link
    return first


def _collected(
    inputs: DesignInputs,
    roles: TableRoles,
    table: str,
    link: ForeignKeyLink,
    other: ForeignKeyLink | None,
) -> CollectedChild | None:
    most = _members_max(inputs, table, link)
    if not _is_wanted(inputs, table, other) or not _is_small(inputs, table, most):
        return None
    owner, way = _owner(inputs, roles, link)
    if owner is None:
        return None
    columns, through = _members(inputs, table, link, other, way)
    if not columns:
        return None
    kind = inputs.volumes.kind(columns[0])
    is_set = len(columns) == 1 and kind in ("string", "enum", "uuid", "integer", "decimal")
    name = _name(table, other)
    return CollectedChild(
        owner=owner,
        name=inputs.settings.rename.get(f"{owner}.{name}", name),
        type=("NS" if kind in ("integer", "decimal") else "SS") if is_set else "L",
        columns=columns,
        through=through,
        why=(
            f"A {'set' if is_set else 'list'}, because no pattern reads {table} alone and"
            f" a row of {owner} has at most {most:.0f} of them."
        ),
    )


def _is_wanted(inputs: DesignInputs, table: str, other: ForeignKeyLink | None) -> bool:
    usage = inputs.usage
    return usage.is_joined(table) or (other is not None and usage.is_joined(other.parent))


def _members_max(inputs: DesignInputs, table: str, link: ForeignKeyLink) -> float:
    skew = inputs.volumes.skew(table, link.key.columns)
    if skew is not None:
        return skew.rows_per_value_max
    return inputs.volumes.rows_per_value(table, link.key.columns, link.parent)


def _is_small(inputs: DesignInputs, table: str, most: float) -> bool:
    size = most * inputs.volumes.row_bytes(table)
    return most <= inputs.settings.collect_rows_max and size <= COLLECTED_BYTES_MAX


def _owner(
    inputs: DesignInputs, roles: TableRoles, link: ForeignKeyLink
) -> tuple[str | None, list[str]]:
    """Returns the table that gets the set, and the joins down from it, which skip bypassed
    tables."""
    if link.parent not in roles.bypassed:
        return link.parent, [link.downwards()]
    for above in inputs.schema.children(link.parent):
        if inputs.schema.sides(above.child) is None:
            return above.child, [above.upwards(), link.downwards()]
    return None, []


def _members(
    inputs: DesignInputs,
    table: str,
    link: ForeignKeyLink,
    other: ForeignKeyLink | None,
    through: list[str],
) -> tuple[list[ColumnRef], list[str]]:
    """Returns the columns of each member, and the joins that lead to them."""
    own = _own_columns(inputs, table, link, other)
    if other is None or len(other.key.columns) != 1:
        return own, through
    target = ColumnRef(other.parent, other.key.referenced_columns[0])
    value = inputs.schema.natural.get(target, target)
    # A map can hold each name only once. If both tables have a column of that name, the nearer
    # table's is taken.
    taken = {ref.column for ref in own}
    if value != target and value.column in taken:
        return [], through
    details = [ref for ref in _details(inputs, link, other, value) if ref.column not in taken]
    if value != target:
        return [value, *own, *details], [*through, other.upwards()]
    beyond = [other.upwards()] if details else []
    return [ColumnRef(table, other.key.columns[0]), *own, *details], [*through, *beyond]


def _own_columns(
    inputs: DesignInputs, table: str, link: ForeignKeyLink, other: ForeignKeyLink | None
) -> list[ColumnRef]:
    """Returns a row's own columns, without its foreign keys and its generated number."""
    definition = inputs.schema.table(table)
    return [
        ColumnRef(table, column.name)
        for column in definition.columns
        if column.name not in link.key.columns
        and (other is None or column.name not in other.key.columns)
        and not (column.is_auto_increment and column.name in definition.primary_key)
    ]


def _details(
    inputs: DesignInputs, link: ForeignKeyLink, other: ForeignKeyLink, value: ColumnRef
) -> list[ColumnRef]:
    """Returns the columns that are read of the other side, when a pattern joins it by name."""
    if other.parent == link.parent or not inputs.usage.is_joined(other.parent):
        return []
    schema = inputs.schema
    columns = [
        ColumnRef(other.parent, column.name) for column in schema.table(other.parent).columns
    ]
    keys = {ColumnRef(other.parent, name) for name in other.key.referenced_columns}
    references = {name for parent in schema.parents(other.parent) for name in parent.key.columns}
    columns_read = inputs.usage.columns_read(other.parent)
    return [
        ref
        for ref in columns
        if ref not in {value, *keys}
        and ref.column not in references
        and (columns_read is None or ref in columns_read)
    ]


def _name(table: str, other: ForeignKeyLink | None) -> str:
    """Returns the attribute's name: `consumed_metrics` if the column adds a word, else
    `related_dimensions`."""
    if other is None:
        return plural(table)
    named = role(other.key.columns[0])
    if name_parts(named) == name_parts(singular(other.parent)):
        return f"related_{plural(other.parent)}"
    return plural(named)
