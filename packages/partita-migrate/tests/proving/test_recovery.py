"""Recovery: every table of a design is lost and restored, and the restored items are compared."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import Design, KeyAttribute, TableDesign
from partita_migrate.proving.nonfunctional_checks import restore_checks
from partita_migrate.proving.sandbox.design_tables import (
    create_tables,
    drop_tables,
    put_all,
    scan_items,
    wait_for,
)
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient

ID = KeyAttribute(name="id", type="S")
DESIGN = Design(
    name="three tables",
    kind="denormalized",
    tables=[TableDesign(name=name, partition_key=ID) for name in ("orders", "people", "empty")],
)
SIZES = {"orders": 6000, "people": 70}


@pytest.fixture
def prefix() -> str:
    return f"recovery-{uuid4().hex}-"


@pytest.fixture
def server(endpoint: str, prefix: str) -> Iterator[DynamoDBClient]:
    server = DynamoDBClient(endpoint)
    create_tables(server, DESIGN, prefix)
    items: Iterator[tuple[str, Item]] = (
        (prefix + name, {"id": {"S": str(number)}, "tags": {"SS": ["a", str(number)]}})
        for name, size in SIZES.items()
        for number in range(size)
    )
    assert list(put_all(server, items))[-1] == sum(SIZES.values())
    yield server
    drop_tables(server, DESIGN, prefix)
    server.close()


def test_every_table_that_holds_items_is_lost_and_comes_back(
    server: DynamoDBClient, prefix: str
) -> None:
    checks = restore_checks.recovery_checks(server, DESIGN, prefix)
    assert [(one.name, one.outcome) for one in checks] == [
        ("back up, lose, restore", "passed"),
        ("spoil, restore to a moment before", "passed"),
    ]
    for one in checks:
        assert one.detail.startswith("6,070 items of 2 tables came back, each as it was, by")
    for name, size in SIZES.items():
        items = list(scan_items(server, prefix + name))
        assert len(items) == size
        assert not any(restore_checks.PROBE in item for item in items)


def test_a_table_that_comes_back_otherwise_is_a_failure(
    server: DynamoDBClient, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_and_spoil(server: DynamoDBClient, name: str) -> None:
        wait_for(server, name)
        if "people" in name:
            server.call("PutItem", TableName=name, Item={"id": {"S": "7"}})

    monkeypatch.setattr(restore_checks, "wait_for", wait_and_spoil)
    checks = restore_checks.recovery_checks(server, DESIGN, prefix)
    assert [one.outcome for one in checks] == ["failed", "failed"]
    assert "people had 70 items and came back with 70" in checks[0].detail
    assert "orders" not in checks[0].detail


def test_a_table_that_is_too_large_is_left_out_by_name(
    server: DynamoDBClient, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_checks, "ITEMS_MAX", 100)
    checks = restore_checks.recovery_checks(server, DESIGN, prefix)
    assert [one.outcome for one in checks] == ["passed", "passed"]
    assert checks[0].detail.startswith("70 items of 1 table")
    assert checks[0].detail.endswith("Left out, with more than 100 items: orders.")
