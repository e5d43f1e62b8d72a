"""Leaves out tables that only connect others, and connects the others directly."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.understanding.schema.foreign_key_graph import SchemaGraph
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink

SAMPLING_ERROR_MAX = 0.05
"""Sampled counts within this relative error are treated as equal."""


def find_bypassed(inputs: DesignInputs, roles: TableRoles) -> TableRoles:
    schema, usage = inputs.schema, inputs.usage
    bypassed: dict[str, str] = {}
    for table in schema.tables:
        links = schema.children(table)
        crossings = [link for link in links if schema.sides(link.child)]
        owners = [link for link in links if link not in crossings]
        # With two owners, or when a pattern asks for its rows, the table means something by itself.
        if len(owners) != 1 or not crossings or usage.patterns_of(table):
            continue
        children = {link.child for link in crossings}
        if schema.parents(table) or any(map(usage.patterns_of, children)):
            continue
        owner = owners[0]
        measure = _one_to_one(inputs, owner)
        if measure:
            others = ", ".join(_other_side(schema, link, table) for link in crossings)
            bypassed[table] = (
                f"{table} is left out: it only connects {owner.child} with {others}, no pattern"
                f" reads it, and {measure}; {owner.child} is connected directly instead."
            )
    return replace(roles, bypassed=bypassed)


def _one_to_one(inputs: DesignInputs, link: ForeignKeyLink) -> str:
    """Returns a phrase that says why the link is one-to-one, or nearly so; empty when it is not.

    "Nearly" means that one row of the parent may have several children, such as a row for
    "unknown".
    """
    columns = link.key.columns
    if any(set(columns) == set(key) for key in inputs.schema.unique_keys(link.child)):
        return f"each of its rows belongs to one of {link.child}"
    skew = inputs.volumes.skew(link.child, columns)
    measured = inputs.volumes.analysis.table(link.child)
    if skew is None or measured is None or skew.distinct < 2:
        return ""
    alone = measured.rows - skew.rows_per_value_max
    if abs(alone - (skew.distinct - 1)) > SAMPLING_ERROR_MAX * skew.distinct:
        return ""
    if skew.rows_per_value_max == 1:
        return f"each of its rows has one of {link.child}"
    return (
        f"each of its rows but one has one of {link.child}"
        f" (the exception has {skew.rows_per_value_max})"
    )


def _other_side(schema: SchemaGraph, link: ForeignKeyLink, table: str) -> str:
    sides = schema.sides(link.child)
    assert sides is not None
    return next((side.parent for side in sides if side.parent != table), table)
