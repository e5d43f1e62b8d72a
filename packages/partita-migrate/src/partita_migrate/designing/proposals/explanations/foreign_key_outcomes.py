"""Decides what becomes of foreign keys, which DynamoDB does not have: a fan-out, a condition, or a
loss."""

from __future__ import annotations

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.requests.item_locations import NotServed
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.model.design import Design, ForeignKeyOutcome, KeptBy, OnDelete
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import ForeignKey, SourceTable
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Parameter,
    ResolvedQuery,
)

RULES: dict[str, OnDelete] = {"CASCADE": "CASCADE", "SET NULL": "SET NULL"}
"""Rules that the source carries out by itself. Every other rule makes it refuse to delete a row
that others refer to."""


def references(design: Design, inputs: DesignInputs) -> list[ForeignKeyOutcome]:
    planner = ReadPlanner(design, inputs.volumes.inventory)
    sources = {entity.source for _, entity in design.entities()}
    return [
        _reference(design, inputs, planner, table, key)
        for table in inputs.volumes.inventory.tables
        for key in table.foreign_keys
        if table.name in sources and key.referenced_table in sources
    ]


def _reference(
    design: Design, inputs: DesignInputs, planner: ReadPlanner, table: SourceTable, key: ForeignKey
) -> ForeignKeyOutcome:
    rule = (key.on_delete or "").upper()
    parent = key.referenced_table
    deleting = [
        pattern.name
        for pattern in inputs.patterns
        if pattern.operation == "delete" and pattern.table == parent
    ]
    unserved = {pattern.pattern for pattern in design.unserved}
    kept: KeptBy = "lost"
    why = f"No key leads from a row of {parent} to those of {table.name}."
    if not deleting:
        kept, why = "nothing deletes", f"No pattern deletes rows of {parent}."
    elif not inputs.volumes.inventory.keeps_references:
        why = (
            "SQLite keeps it only for sessions that switch it on; set foreign_keys = true under"
            " [source] if the application's sessions do."
        )
    elif rule in RULES and not unserved & set(deleting):
        changed = "deletes" if rule == "CASCADE" else "changes"
        kept = "fan-out"
        why = f"{deleting[0]!r} finds the rows of {table.name} by their key and {changed} them too."
    elif rule not in RULES and _is_found(planner, table, key):
        kept = "condition"
        why = (
            f"Before {deleting[0]!r} is sent, a Query with Limit 1 looks for a row of {table.name}"
            f" by {', '.join(key.columns)}; a row that is added in between is missed."
        )
    missing = (
        f"Writing a row of {table.name} no longer checks that its row of {parent} exists: where"
        " that matters, add a ConditionCheck of its key to a transaction, for double the units."
    )
    return ForeignKeyOutcome(
        table=table.name,
        columns=key.columns,
        to=parent,
        on_delete=RULES.get(rule, "RESTRICT"),
        kept_by=kept,
        why=f"{why} {missing}",
    )


def _is_found(planner: ReadPlanner, table: SourceTable, key: ForeignKey) -> bool:
    tests = tuple(
        ColumnTest(ref, "=", (Parameter(ref.column, ref),))
        for ref in (ColumnRef(table.name, name) for name in key.columns)
    )
    identity = table.primary_key or [column.name for column in table.columns]
    query = ResolvedQuery(
        table=table.name,
        tests=tests,
        columns=tuple(ColumnRef(table.name, column) for column in identity),
    )
    try:
        planner.plan(query, table.name)
    except NotServed:
        return False
    return True
