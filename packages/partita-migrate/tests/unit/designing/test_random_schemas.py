"""Tests random schemas and patterns: every proposal passes the check or states its limits."""

from __future__ import annotations

import random
import tomllib

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from partita_migrate.costing.bill import EstimateSettings, bill
from partita_migrate.costing.capacity_estimate import units
from partita_migrate.costing.prices.price_list import read_prices
from partita_migrate.designing.checks.check_design import check
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.propose import denormalized, single_table
from partita_migrate.model.design import Design
from partita_migrate.model.model_files import to_toml
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.inventory import (
    ColumnKind,
    ForeignKey,
    Inventory,
    SourceColumn,
    SourceIndex,
    SourceTable,
)
from partita_migrate.understanding.schema.relationships import relate

KINDS: tuple[ColumnKind, ...] = (
    "string",
    "integer",
    "decimal",
    "date",
    "datetime",
    "boolean",
    "binary",
    "json",
    "enum",
    "uuid",
)


class Chance:
    """Returns a schema and its patterns, generated from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tables: list[SourceTable] = []

    def inventory(self) -> Inventory:
        for number in range(self.random.randint(1, 7)):
            self.tables.append(self._table(f"tab{number}"))
        return Inventory(
            dialect="sqlite",
            server_version="3",
            database="chance",
            tables=self.tables,
            relationships=relate(self.tables),
        )

    def _table(self, name: str) -> SourceTable:
        columns: list[SourceColumn] = []
        keys: list[ForeignKey] = []
        parents = [table for table in self.tables if table.primary_key]
        primary = self._primary_key(columns, keys, parents)
        for parent in self._some(parents, 2):
            self._refer(columns, keys, parent, is_nullable=self.random.random() < 0.3)
        if parents and self.random.random() < 0.2:
            self._refer(columns, keys, self.random.choice(parents), "_other", is_nullable=True)
        for number in range(self.random.randint(0 if columns else 1, 5)):
            kind = self.random.choice(KINDS)
            is_nullable = self.random.random() < 0.5
            columns.append(
                SourceColumn(name=f"c{number}", type=kind, kind=kind, is_nullable=is_nullable)
            )
        table = SourceTable(
            name=name,
            columns=columns,
            primary_key=primary,
            foreign_keys=keys,
            indexes=[
                SourceIndex(name=f"unique_{one.name}", columns=[one.name], is_unique=True)
                for one in columns
                if self.random.random() < 0.1 and [one.name] != primary
            ],
            row_count=self.random.choice((0, 10, 10**6)),
        )
        is_hierarchy = self.random.random() < 0.1 and len(primary) == 1
        return self._with_parent(table) if is_hierarchy else table

    def _primary_key(
        self, columns: list[SourceColumn], keys: list[ForeignKey], parents: list[SourceTable]
    ) -> list[str]:
        style = self.random.choice(("number", "number", "code", "crossing", "part", "none"))
        if style == "crossing" and len(parents) > 1:
            sides = self.random.sample(parents, 2)
            return [name for side in sides for name in self._refer(columns, keys, side)]
        if style == "part" and parents:
            owner = self._refer(columns, keys, self.random.choice(parents))
            name = self.random.choice(("version", "line", "code"))
            kind: ColumnKind = "string" if name == "code" else "integer"
            columns.append(SourceColumn(name=name, type=kind, kind=kind))
            return [*owner, name]
        if style == "none":
            return []
        if style == "code":
            columns.append(SourceColumn(name="code", type="string", kind="string"))
            return ["code"]
        columns.append(SourceColumn(name="id", type="int", kind="integer", is_auto_increment=True))
        return ["id"]

    def _refer(
        self,
        columns: list[SourceColumn],
        keys: list[ForeignKey],
        parent: SourceTable,
        suffix: str = "",
        is_nullable: bool = False,
    ) -> list[str]:
        names = [f"{parent.name}_{name}{suffix}" for name in parent.primary_key]
        if {one.name for one in columns} & set(names):
            return []
        kinds = {one.name: one.kind for one in parent.columns}
        for name, referenced in zip(names, parent.primary_key, strict=True):
            kind = kinds[referenced]
            columns.append(SourceColumn(name=name, type=kind, kind=kind, is_nullable=is_nullable))
        keys.append(
            ForeignKey(
                columns=names,
                referenced_table=parent.name,
                referenced_columns=parent.primary_key,
            )
        )
        return names

    def _with_parent(self, table: SourceTable) -> SourceTable:
        kind = next(one.kind for one in table.columns if one.name == table.primary_key[0])
        above = SourceColumn(name="parent", type=kind, kind=kind, is_nullable=True)
        key = ForeignKey(
            columns=["parent"], referenced_table=table.name, referenced_columns=table.primary_key
        )
        return replace(
            table, columns=[*table.columns, above], foreign_keys=[*table.foreign_keys, key]
        )

    def _some(self, tables: list[SourceTable], most: int) -> list[SourceTable]:
        return self.random.sample(tables, min(len(tables), self.random.randint(0, most)))

    def patterns(self) -> list[AccessPattern]:
        return [self._pattern(f"p{number}") for number in range(self.random.randint(0, 8))]

    def _pattern(self, name: str) -> AccessPattern:
        chance = self.random
        table = chance.choice(self.tables)
        columns = [f"{table.name}.{one.name}" for one in table.columns]
        operation = chance.choice(("read", "read", "read", "insert", "update", "delete"))
        equality = [f"{table.name}.{one}" for one in table.primary_key] or columns[:1]
        if chance.random() < 0.5:
            equality = chance.sample(columns, min(len(columns), chance.randint(1, 2)))
        is_read = operation == "read"
        compared = chance.sample(columns, 1) if is_read and chance.random() < 0.3 else []
        joins = [one.name for one in self._some(self.tables, 2)] if is_read else []
        return AccessPattern(
            name=name,
            category="by distinct value",
            operation=operation,  # type: ignore[arg-type]
            table=table.name,
            equality=[] if operation == "insert" else equality,
            range=[one for one in compared if one not in equality],
            joins=[one for one in joins if one != table.name],
            columns=chance.sample(columns, 1) if chance.random() < 0.3 else [],
            items=chance.choice((1, 5, 100)),
            limit=chance.choice((None, 1, 10)),
            calls_per_second=chance.choice((0.1, 10, 5000)),
        )


SEEDS = st.integers(min_value=0, max_value=10**6)


@pytest.mark.parametrize("propose", [denormalized, single_table])
@given(seed=SEEDS)
@example(seed=333062)  # An index over the columns of a key that is sharded.
@example(seed=4567068)  # Versions of two tables under keys of the same form.
@example(seed=5711511)  # A member of a list with the name of what it refers to.
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_proposed_design_passes_the_check(propose, seed: int) -> None:  # type: ignore[no-untyped-def]
    check_proposal(propose, seed)


@pytest.mark.soak
@pytest.mark.parametrize("propose", [denormalized, single_table])
@given(seed=SEEDS)
@settings(max_examples=20_000, deadline=None)
def test_so_does_one_for_any_schema(propose, seed: int) -> None:  # type: ignore[no-untyped-def]
    check_proposal(propose, seed)


def check_proposal(propose, seed: int) -> None:  # type: ignore[no-untyped-def]
    chance = Chance(seed)
    volumes = Volumes(chance.inventory())
    patterns = chance.patterns()
    design: Design = propose(volumes, patterns, ModelSettings())
    named = [risk.split("'")[1] for risk in design.risks if "is not served" in risk]
    errors = [
        finding
        for finding in check(design, patterns, volumes)
        if finding.severity == "error"
        and not any(finding.place == f"access {name!r}" for name in named)
    ]
    assert errors == []
    assert msgspec.convert(tomllib.loads(to_toml(design)), Design) == design
    priced = bill(units(design, patterns, volumes), read_prices(), EstimateSettings())
    assert priced.cheapest.monthly >= 0
