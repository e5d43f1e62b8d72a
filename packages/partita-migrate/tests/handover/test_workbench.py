"""Tests `partita migrate model --workbench`: the items come from the source's rows."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from partita_migrate.designing.model_stage import model
from partita_migrate.handover.create_stage import create
from partita_migrate.model.model_files import read_design
from testkit.servers.processes import Server

from .conftest import MakeDesign


@pytest.mark.parametrize("kind", ["denormalized", "single-table"])
def test_items_are_rows_of_the_source(design: MakeDesign, kind: str) -> None:
    folder = design()
    model(folder, workbench=True)
    content = json.loads((folder.path / f"model.{kind}.workbench.json").read_text())
    items = [item for table in content["DataModel"] for item in table["TableData"]]
    orders = [item for item in items if "total" in item]
    with sqlite3.connect(folder.path / "shop.db") as connection:
        rows = connection.execute("SELECT placed_at, total FROM orders").fetchall()
    assert len(orders) >= 2
    for order in orders:
        text = json.dumps(order)
        assert any(placed in text and order["total"] == {"N": f"{n:g}"} for placed, n in rows)


def test_tables_can_be_made_of_what_workbench_holds(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    folder = design(settings="\n[create]\ncapacity = 'on-demand'\n")
    model(folder, workbench=True)
    create(folder, server.url, name="model.denormalized.workbench.json")
    made = {
        name: dynamodb.describe_table(TableName=name)["Table"]["KeySchema"]
        for name in dynamodb.list_tables()["TableNames"]
    }
    drawn = read_design(folder, "model.denormalized.toml")
    assert {name: [key["AttributeName"] for key in keys] for name, keys in made.items()} == {
        table.name: [key.name for key in table.keys] for table in drawn.tables
    }
