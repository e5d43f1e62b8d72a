"""Creates, fills, scans and deletes the tables of a design on a server."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from partita.database.item.attribute_values import Item
from partita_migrate.handover.table_requests import described
from partita_migrate.model.design import Design, SecondaryIndex, TableDesign
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient

BATCH_ITEMS = 25
BATCHES_AT_ONCE = 16
WAIT_SECONDS_MAX = 120


def create_tables(server: DynamoDBClient, design: Design, prefix: str = "") -> None:
    for table in design.tables:
        create_table(server, table, prefix)
    for table in design.tables:
        wait_for(server, prefix + table.name)


def create_table(server: DynamoDBClient, table: TableDesign, prefix: str = "") -> None:
    server.call("CreateTable", **described(table, prefix), BillingMode="PAY_PER_REQUEST")


def drop_tables(server: DynamoDBClient, design: Design, prefix: str = "") -> None:
    for table in design.tables:
        server.call("DeleteTable", TableName=prefix + table.name)


def list_tables(server: DynamoDBClient) -> Iterator[str]:
    request: dict[str, Any] = {}
    while True:
        answer = server.call("ListTables", **request)
        yield from answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            return
        request["ExclusiveStartTableName"] = answer["LastEvaluatedTableName"]


def delete_table(server: DynamoDBClient, name: str) -> None:
    """Deletes a table and waits until its name is free."""
    server.call("DeleteTable", TableName=name)
    end = time.monotonic() + WAIT_SECONDS_MAX
    while name in list_tables(server) and time.monotonic() < end:
        time.sleep(0.1)


def wait_for(server: DynamoDBClient, name: str) -> None:
    """Waits until a table is active."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < end:
        described_table = server.call("DescribeTable", TableName=name)["Table"]
        if described_table["TableStatus"] == "ACTIVE":
            return
        time.sleep(0.2)


def is_accepted(table: TableDesign, item: Item) -> bool:
    """True when DynamoDB would accept the item's keys."""
    if any(key.name not in item for key in table.keys):
        return False
    tables_and_indexes: list[TableDesign | SecondaryIndex] = [table, *table.indexes]
    return all(
        key.name not in item or item[key.name].get(key.type) not in (None, "")
        for home in tables_and_indexes
        for key in home.keys
    )


def put_all(server: DynamoDBClient, items: Iterable[tuple[str, Item]]) -> Iterator[int]:
    """Writes (table, item) pairs in batches, many at once; yields the number written after each
    round."""
    count = 0
    waiting: list[dict[str, Any]] = []
    batch: dict[str, list[Any]] = {}
    size = 0
    for name, item in items:
        batch.setdefault(name, []).append({"PutRequest": {"Item": item}})
        size += 1
        count += 1
        if size == BATCH_ITEMS:
            waiting.append(batch)
            batch, size = {}, 0
        if len(waiting) == BATCHES_AT_ONCE:
            _write(server, waiting)
            waiting = []
            yield count
    if batch:
        waiting.append(batch)
    _write(server, waiting)
    yield count


def _write(server: DynamoDBClient, batches: list[dict[str, Any]]) -> None:
    while batches:
        answers = server.call_all(("BatchWriteItem", {"RequestItems": batch}) for batch in batches)
        batches = [left for answer in answers if (left := answer.get("UnprocessedItems"))]


def scan_items(server: DynamoDBClient, name: str) -> Iterator[Item]:
    """Yields all items of a table."""
    request: dict[str, Any] = {"TableName": name}
    while True:
        answer = server.call("Scan", **request)
        yield from answer.get("Items", [])
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
