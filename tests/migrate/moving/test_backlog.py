"""A backlog takes no more memory than a moment of it."""

from __future__ import annotations

import queue

import pytest

from partita.migrate.moving.logs.changes import Change, Transaction
from partita.migrate.moving.logs.mariadb import Waiting


def with_changes(count: int) -> Transaction:
    return Transaction(1, "", 0.0, [Change("book", None, {"id": {"N": "1"}})] * count)


def test_transactions_that_wait_are_limited_by_their_changes() -> None:
    waiting = Waiting(100)
    waiting.put_nowait(with_changes(99))
    waiting.put_nowait(with_changes(0))
    with pytest.raises(queue.Full):
        waiting.put_nowait(with_changes(1))
    waiting.get_nowait()
    waiting.put_nowait(with_changes(5000))
    assert [waiting.get_nowait() for _ in range(2)] == [with_changes(0), with_changes(5000)]
    with pytest.raises(queue.Empty):
        waiting.get_nowait()
