"""A design with every feature of a table, and a server to create it on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.workspace.migration_folder import Folder
from testkit.servers.processes import Server, starting

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id),
    placed_at DATETIME NOT NULL, status TEXT NOT NULL, total NUMERIC NOT NULL);
CREATE TABLE sessions (token TEXT PRIMARY KEY, customer_id INTEGER NOT NULL, last_seen DATETIME);
"""
PATTERNS = """
[[pattern]]
name = "orders of a customer, newest first"
table = "orders"
by = "customer_id"
order = "-placed_at"
limit = 10
rate = "120/s"

[[pattern]]
name = "place an order"
table = "orders"
operation = "insert"
rate = "30/s"

[[pattern]]
name = "session by token"
table = "sessions"
by = "token"
rate = "900/s"
"""
MODEL = """
name = "shop"
kind = "denormalized"

[[tables]]
name = "shop.Orders"
partition_key = { name = "customer_id", type = "N" }
sort_key = { name = "id", type = "N" }

[[tables.indexes]]
name = "by-time"
kind = "local"
partition_key = { name = "customer_id", type = "N" }
sort_key = { name = "placed_at", type = "S" }

[[tables.indexes]]
name = "by-status"
partition_key = { name = "status", type = "S" }
sort_key = { name = "placed_at", type = "S" }
projection = "INCLUDE"
include = ["total"]

[[tables.indexes]]
name = "by-day"
partition_key = { name = "placed_at", type = "S" }
projection = "KEYS_ONLY"

[[tables.entities]]
name = "orders"
source = "orders"
attributes = [
    { name = "id", type = "N", column = "orders.id" },
    { name = "customer_id", type = "N", column = "orders.customer_id" },
    { name = "placed_at", type = "S", column = "orders.placed_at" },
    { name = "status", type = "S", column = "orders.status" },
    { name = "total", type = "N", column = "orders.total" },
]

[[tables]]
name = "Sessions"
partition_key = { name = "token", type = "S" }
ttl = "expires"

[[tables.entities]]
name = "sessions"
source = "sessions"
attributes = [
    { name = "token", type = "S", column = "sessions.token" },
    { name = "customer_id", type = "N", column = "sessions.customer_id" },
    { name = "expires", type = "N", expires = "sessions.last_seen", after_seconds = 3600 },
]

[[access]]
pattern = "orders of a customer, newest first"
request = "Query"
table = "shop.Orders"
index = "by-time"
entity = "orders"
key = [{ attribute = "customer_id", value = "{customer_id}" }]
is_descending = true
limit = 10

[[access]]
pattern = "place an order"
request = "PutItem"
table = "shop.Orders"
entity = "orders"
key = [{ attribute = "customer_id", value = "{customer_id}" }, { attribute = "id", value = "{id}" }]

[[access]]
pattern = "session by token"
request = "GetItem"
table = "Sessions"
entity = "sessions"
key = [{ attribute = "token", value = "{token}" }]
"""
SETTINGS = """
[create]
capacity = "provisioned"
tags = { team = "shop", "cost centre" = "4711" }
"""
ORDERS, SESSIONS = "shop.Orders", "Sessions"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with starting() as start:
        yield start("serve", "--port", "0", "--in-memory")


@pytest.fixture
def dynamodb(server: Server) -> Iterator[Any]:
    """Returns a client of a server without tables."""
    client = server.client()
    yield client
    for name in client.list_tables()["TableNames"]:
        client.update_table(TableName=name, DeletionProtectionEnabled=False)
        client.delete_table(TableName=name)
        client.get_waiter("table_not_exists").wait(
            TableName=name, WaiterConfig={"Delay": 0.02, "MaxAttempts": 1500}
        )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a small shop after `plan` and `analyze`."""
    path = tmp_path_factory.mktemp("shop")
    connection = sqlite3.connect(path / "shop.db")
    connection.executescript(SCHEMA)
    for n in range(1, 9):
        connection.execute("INSERT INTO customers VALUES (?, ?)", (n, f"Customer {n}"))
        # Far ahead: what has expired may be deleted before a test reads it.
        session = (f"token-{n}", n, f"2099-03-0{n}T10:00:00")
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?)", session)
        for order in range(9 - n):
            placed = f"2026-01-{order + 1:02}T08:00:00"
            row = (n * 100 + order, n, placed, "open" if order else "paid", n * 2.5)
            connection.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    (path / "migration.toml").write_text('[source]\nurl = "sqlite:///shop.db"\n')
    (path / "patterns.toml").write_text(PATTERNS)
    folder = Folder.open(path)
    plan(folder)
    analyze(folder)
    return path


MakeDesign = Callable[..., Folder]


@pytest.fixture
def design(source: Path, tmp_path: Path) -> MakeDesign:
    """Returns `design(model, settings)`, which writes both into the folder of the shop."""

    def make(model: str = MODEL, settings: str = SETTINGS) -> Folder:
        for file in source.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        (tmp_path / "model.toml").write_text(model)
        with (tmp_path / "migration.toml").open("a") as text:
            text.write(settings)
        return Folder.open(tmp_path)

    return make
