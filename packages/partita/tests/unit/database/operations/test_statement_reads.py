"""A PartiQL statement that reads is answered at once, one that writes when its commit is done."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.assembly.service_registry import ONLY_READS, READS, WRITES
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.storage.branch_engine import BranchEngine
from partita.foundation.clock import system_clock
from partita.server.dispatch import Dispatcher
from partita.server.http.http_messages import HttpRequest, HttpResponse
from partita.testing.manual_loop import ManualLoop

TABLE = {
    "TableName": "notes",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
}
OLD, NEW = ({"pk": {"S": "a"}, "v": {"S": value}} for value in ("old", "new"))
SELECT = {"Statement": "SELECT * FROM notes WHERE pk = 'a'"}
OTHER = {"Statement": "SELECT * FROM notes WHERE pk = 'b'"}
INSERT = {"Statement": "INSERT INTO notes VALUE {'pk': 'c'}"}


class Opened:
    """Commits, and answers what waits for them, when `loop` is run."""

    def __init__(self) -> None:
        self.loop = ManualLoop()
        database = EmbeddedDatabase(
            BranchEngine(),
            call_soon=self.loop.call_soon,
            call_from_thread=self.loop.call_soon,
            call_later=self.loop.call_later,
            clock=system_clock,
        )
        self.dispatcher = Dispatcher(database, READS, WRITES, ONLY_READS)
        self.ask("CreateTable", TABLE)
        self.put(OLD)
        self.loop.run_ready()

    def put(self, item: dict[str, Any]) -> None:
        self.ask("PutItem", {"TableName": "notes", "Item": item})

    def ask(self, operation: str, request: dict[str, Any]) -> list[HttpResponse]:
        """The answer, once it is there."""
        headers = {
            b"x-amz-target": f"DynamoDB_20120810.{operation}".encode(),
            b"content-type": b"application/x-amz-json-1.0",
            b"authorization": b"AWS4-HMAC-SHA256 Credential=a, SignedHeaders=b, Signature=c",
            b"x-amz-date": b"20260101T000000Z",
        }
        answers: list[HttpResponse] = []
        body = json.dumps(request).encode()
        self.dispatcher.handle(HttpRequest(b"POST", b"/", headers, body), answers.append)
        return answers


@pytest.fixture
def opened() -> Opened:
    """A database in which a commit that changes an item is in progress."""
    opened = Opened()
    opened.put(NEW)
    return opened


@pytest.mark.parametrize(
    ("operation", "request_", "expected"),
    [
        ("ExecuteStatement", SELECT, {"Items": [OLD]}),
        (
            "BatchExecuteStatement",
            {"Statements": [SELECT, OTHER]},
            {"Responses": [{"Item": OLD, "TableName": "notes"}, {"TableName": "notes"}]},
        ),
        (
            "ExecuteTransaction",
            {"TransactStatements": [SELECT, OTHER]},
            {"Responses": [{"Item": OLD}, {}]},
        ),
    ],
)
def test_a_read_does_not_wait_for_a_commit_under_way(
    opened: Opened, operation: str, request_: dict[str, Any], expected: dict[str, Any]
) -> None:
    (answer,) = opened.ask(operation, request_)
    assert json.loads(answer.body) == expected


def test_what_is_no_statement_does_not_wait_either(opened: Opened) -> None:
    answers = opened.ask("ExecuteStatement", {"Statement": "SELEC"})
    assert [answer.status for answer in answers] == [400]


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("ExecuteStatement", INSERT),
        ("BatchExecuteStatement", {"Statements": [INSERT]}),
        ("ExecuteTransaction", {"TransactStatements": [INSERT]}),
    ],
)
def test_a_write_waits(opened: Opened, operation: str, request_: dict[str, Any]) -> None:
    answers = opened.ask(operation, request_)
    assert answers == []
    opened.loop.run_ready()
    assert [answer.status for answer in answers] == [200]
