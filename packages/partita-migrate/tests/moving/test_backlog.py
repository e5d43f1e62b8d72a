"""A long backlog takes no more memory than a short one, and its end is found."""

from __future__ import annotations

import queue
import threading

import pytest

from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.logs.mariadb_log import TransactionQueue
from partita_migrate.moving.logs.source_changes import RowChange, SourceTransaction
from partita_migrate.moving.verifying.verify import verify
from testkit.data.moves import script

from .conftest import MakeSource
from .test_move import assert_same, moved

ENDLESS_SECONDS = 60.0


def with_changes(count: int) -> SourceTransaction:
    return SourceTransaction(1, "", 0.0, [RowChange("book", None, {"id": {"N": "1"}})] * count)


def test_transactions_that_wait_are_limited_by_their_changes() -> None:
    waiting = TransactionQueue(100)
    waiting.put_nowait(with_changes(99))
    waiting.put_nowait(with_changes(0))
    with pytest.raises(queue.Full):
        waiting.put_nowait(with_changes(1))
    waiting.get_nowait()
    waiting.put_nowait(with_changes(5000))
    assert [waiting.get_nowait() for _ in range(2)] == [with_changes(0), with_changes(5000)]
    with pytest.raises(queue.Empty):
        waiting.get_nowait()


@pytest.mark.parametrize(
    ("kind", "new_file"),
    [("mysql", "FLUSH BINARY LOGS"), ("postgresql", "SELECT pg_switch_wal()")],
)
def test_a_log_ends_in_a_file_without_transactions(
    make_source: MakeSource, target: str, kind: str, new_file: str
) -> None:
    """As after a restart when nobody has written since."""
    source = make_source(kind, script())
    folder = moved(source, target)
    source.run("UPDATE author SET name = 'Before' WHERE id = 1")
    assert source.server is not None
    source.server.execute(new_file, source.database)
    stop = threading.Event()
    endless = threading.Timer(ENDLESS_SECONDS, stop.set)
    endless.start()
    try:
        followed = follow(folder, target, is_once=True, stop=stop)
    finally:
        endless.cancel()
    assert not stop.is_set()
    assert followed.changes == 1
    # MariaDB writes a checkpoint event into the new file at some time.
    assert followed.lag_bytes or followed.lag_seconds == 0.0
    assert_same(verify(folder, target))
