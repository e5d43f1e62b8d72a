"""A page whose filter is slow ends early, so that one request cannot keep all others waiting."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.assembly.service_registry import READS, WRITES
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.operations.operation_context import PermittedRequest
from partita.database.storage.branch_engine import BranchEngine
from partita.database.tables.read_path import FILTER_SECONDS_MAX, ITEMS_PER_LOOK
from partita.foundation.clock import system_clock
from partita.testing.manual_loop import ManualLoop

ITEMS = 3 * ITEMS_PER_LOOK
TABLE = {
    "TableName": "notes",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ],
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
}
FILTER = {
    "TableName": "notes",
    "FilterExpression": "v < :v",
    "ExpressionAttributeValues": {":v": {"N": "1000"}},
}
IN_PARTITION = {
    **FILTER,
    "KeyConditionExpression": "pk = :p",
    "ExpressionAttributeValues": {":v": {"N": "1000"}, ":p": {"S": "a"}},
}
SELECT = {"Statement": "SELECT * FROM notes WHERE pk = 'a' AND v < 1000"}


class SlowWatch:
    """A stopwatch on which every look takes its time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.look_seconds = 0.0

    def __call__(self) -> float:
        self.seconds += self.look_seconds
        return self.seconds


class Opened:
    def __init__(self) -> None:
        loop = ManualLoop()
        self.watch = SlowWatch()
        self.database = EmbeddedDatabase(
            BranchEngine(),
            call_soon=loop.call_soon,
            call_from_thread=loop.call_soon,
            call_later=loop.call_later,
            clock=system_clock,
            stopwatch=self.watch,
        )
        self.database.write(WRITES["CreateTable"], PermittedRequest(TABLE), lambda answer: None)
        for number in range(ITEMS):
            item = {"pk": {"S": "a"}, "sk": {"N": str(number)}, "v": {"N": str(number)}}
            put = {"TableName": "notes", "Item": item}
            self.database.write(WRITES["PutItem"], PermittedRequest(put), lambda answer: None)
        loop.run_ready()

    def read(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        page: dict[str, Any] = json.loads(
            self.database.read(READS[operation], PermittedRequest(request))
        )
        return page


@pytest.mark.parametrize(
    ("operation", "request_", "position", "continued"),
    [
        ("Scan", FILTER, "LastEvaluatedKey", "ExclusiveStartKey"),
        ("Query", IN_PARTITION, "LastEvaluatedKey", "ExclusiveStartKey"),
        ("ExecuteStatement", SELECT, "NextToken", "NextToken"),
    ],
)
def test_the_pages_of_a_slow_filter_are_short_and_miss_nothing(
    operation: str, request_: dict[str, Any], position: str, continued: str
) -> None:
    opened = Opened()
    opened.watch.look_seconds = 2 * FILTER_SECONDS_MAX
    page = opened.read(operation, request_)
    pages = [page["Items"]]
    while position in page:
        page = opened.read(operation, {**request_, continued: page[position]})
        pages.append(page["Items"])
    assert [len(items) for items in pages[:3]] == [ITEMS_PER_LOOK] * 3
    assert sorted(int(item["sk"]["N"]) for items in pages for item in items) == [*range(ITEMS)]


def test_a_quick_filter_has_one_page() -> None:
    opened = Opened()
    assert len(opened.read("Scan", FILTER)["Items"]) == ITEMS


def test_a_page_without_a_filter_takes_as_long_as_it_takes() -> None:
    opened = Opened()
    opened.watch.look_seconds = 2 * FILTER_SECONDS_MAX
    assert len(opened.read("Scan", {"TableName": "notes"})["Items"]) == ITEMS
