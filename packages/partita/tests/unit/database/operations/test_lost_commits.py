"""A lost commit leaves nothing of the writes that were decided on top of it."""

from __future__ import annotations

from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.operations.control_plane.contributor_insights import (
    update_contributor_insights,
)
from partita.database.operations.control_plane.tables.table_operations import create_table
from partita.database.operations.data_plane.item_operations import get_item
from partita.database.operations.operation_context import PermittedRequest, Request, WriteHandler
from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.engine import Changes
from partita.errors import DynamoDBError, InternalServerError, StorageError
from partita.foundation.clock import system_clock
from partita.testing.manual_loop import ManualLoop

CREATE = {
    "TableName": "notes",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
}
GET = {"TableName": "notes", "Key": {"pk": {"S": "a"}}}
ENABLE = {"TableName": "notes", "ContributorInsightsAction": "ENABLE"}


class Disk(BranchEngine):
    is_full = False

    def commit(self, changes: Changes) -> None:
        if self.is_full:
            raise StorageError("The disk is full.")
        super().commit(changes)


class Opened:
    """A database that answers when `loop` is run."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.loop = ManualLoop()
        self.database = EmbeddedDatabase(
            self.disk,
            call_soon=self.loop.call_soon,
            call_from_thread=self.loop.call_soon,
            call_later=self.loop.call_later,
            clock=system_clock,
        )

    def write(self, handler: WriteHandler, request: Request) -> list[bytes | DynamoDBError]:
        answers: list[bytes | DynamoDBError] = []
        self.database.write(handler, PermittedRequest(request), answers.append)
        return answers


def test_a_response_about_a_table_that_was_lost_is_not_cached() -> None:
    opened = Opened()
    cache = opened.database.response_caches["GetItem"]
    opened.disk.is_full = True
    answers = opened.write(create_table, CREATE)
    for _ in range(2):
        opened.database.read(get_item, PermittedRequest(GET), b"key", cache)
    assert cache.get(b"key") is not None
    opened.loop.run_ready()
    assert isinstance(answers[0], InternalServerError)
    assert cache.get(b"key") is None


def test_insights_that_were_lost_are_not_counted() -> None:
    opened = Opened()
    opened.write(create_table, CREATE)
    opened.loop.run_ready()
    opened.disk.is_full = True
    opened.write(update_contributor_insights, ENABLE)
    assert opened.database.service.ledger.is_on
    opened.loop.run_ready()
    assert not opened.database.service.ledger.is_on
