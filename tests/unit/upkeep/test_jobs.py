"""Background work on a hand-cranked loop: it meets writes at any moment and loses none of them.

The disk of these tests is opened and closed by hand, so that a write can be decided and not yet
committed when a job looks at the table.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore
from typing import Any

import pytest

from partita.operations.database import Database
from partita.operations.registry import READS, WRITES
from partita.storage.engine import Changes, Snapshot, StorageError
from partita.storage.lmdb import LmdbEngine
from partita.upkeep import jobs

WAIT_SECONDS = 5.0
NOW = 1_800_000_000
TABLE = "table"


class Disk:
    """An engine whose commits wait for their turn when it is slow, and fail when it is broken."""

    def __init__(self, folder: Path) -> None:
        self._engine = LmdbEngine(folder, durable=False)
        self._turns = Semaphore(0)
        self.is_slow = False
        self.is_broken = False

    def snapshot(self) -> Snapshot:
        return self._engine.snapshot()

    def refresh(self) -> None:
        self._engine.refresh()

    def commit(self, changes: Changes) -> None:
        if self.is_slow:
            assert self._turns.acquire(timeout=WAIT_SECONDS)
        if self.is_broken:
            raise StorageError("The disk is full.")
        self._engine.commit(changes)

    def let_one_commit_through(self) -> None:
        self._turns.release()

    def close(self) -> None:
        self._engine.close()


class Bench:
    """A database on a loop that a test turns by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = float(NOW)
        self.soon: deque[Callable[[], None]] = deque()
        self.later: list[Callable[[], None]] = []
        self.from_thread: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.answers: list[Any] = []
        self._open()

    def _open(self) -> None:
        self.disk = Disk(self.folder)
        self.database = Database(
            self.disk,
            call_soon=self.soon.append,
            call_from_thread=self.from_thread.put,
            call_later=lambda seconds, function: self.later.append(function),
            clock=lambda: self.now,
        )
        self.database.start()

    def restart(self) -> None:
        self.close()
        self.soon.clear()
        self.later.clear()
        self._open()

    def close(self) -> None:
        self.disk.is_slow = False
        for _ in range(10):
            self.disk.let_one_commit_through()
        self.database.close()

    def send(self, operation: str, **request: Any) -> None:
        """Decide a write; its answer comes when its commit does."""
        self.database.write(WRITES[operation], {"TableName": TABLE, **request}, self.answers.append)

    def ask(self, operation: str, **request: Any) -> Any:
        return json.loads(self.database.read(READS[operation], {"TableName": TABLE, **request}))

    def turn(self) -> None:
        """What the loop has to do now, without waiting for the disk."""
        for _ in range(len(self.soon)):
            self.soon.popleft()()

    def finish_commit(self) -> None:
        if self.disk.is_slow:
            self.disk.let_one_commit_through()
        self.from_thread.get(timeout=WAIT_SECONDS)()

    def settle(self) -> None:
        """Until nothing is left to do, and two ticks of the keeper have found nothing more."""
        self._run()
        for _ in range(2):
            ticks, self.later = self.later, []
            for tick in ticks:
                tick()
            self._run()
        assert not [answer for answer in self.answers if isinstance(answer, Exception)]

    def _run(self) -> None:
        while self.soon or self.database._commits._committing is not None:
            self.turn()
            if self.database._commits._committing is not None:
                self.finish_commit()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.send(
        "CreateTable",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    bench.settle()
    yield bench
    bench.close()


def put(bench: Bench, key: str, **attributes: Any) -> None:
    bench.send("PutItem", Item={"pk": {"S": key}, "g": {"S": "x"}, **attributes})


def add_index(bench: Bench) -> None:
    bench.send(
        "UpdateTable",
        AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "index",
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    )


def enable_ttl(bench: Bench, attribute: str = "ttl", *, enabled: bool = True) -> None:
    bench.send(
        "UpdateTimeToLive",
        TimeToLiveSpecification={"Enabled": enabled, "AttributeName": attribute},
    )


def keys(bench: Bench, **request: Any) -> list[str]:
    """The keys of all items, or of all entries of an index."""
    items = bench.ask("Scan", **request)["Items"]
    return sorted(item["pk"]["S"] for item in items)


def index_description(bench: Bench) -> dict[str, Any]:
    indexes = bench.ask("DescribeTable")["Table"]["GlobalSecondaryIndexes"]
    return dict(indexes[0])


def test_an_index_has_the_items_that_were_decided_before_it_and_committed_after(
    bench: Bench,
) -> None:
    bench.disk.is_slow = True
    put(bench, "first")
    bench.turn()  # the first commit is on its way
    put(bench, "second")
    add_index(bench)
    bench.turn()
    bench.settle()
    assert index_description(bench)["IndexStatus"] == "ACTIVE"
    assert keys(bench, IndexName="index") == keys(bench) == ["first", "second"]
    assert index_description(bench)["ItemCount"] == 2


def test_an_index_does_not_have_the_items_that_were_deleted_while_it_was_filled(
    bench: Bench,
) -> None:
    for number in range(5):
        put(bench, str(number))
    bench.settle()
    bench.disk.is_slow = True
    bench.send("DeleteItem", Key={"pk": {"S": "1"}})
    bench.turn()
    add_index(bench)
    bench.send("DeleteItem", Key={"pk": {"S": "2"}})
    bench.turn()
    bench.send("DeleteItem", Key={"pk": {"S": "3"}})
    bench.settle()
    assert keys(bench, IndexName="index") == keys(bench) == ["0", "4"]
    assert index_description(bench)["ItemCount"] == 2


def test_ttl_finds_the_items_that_were_decided_before_it_and_committed_after(
    bench: Bench,
) -> None:
    bench.disk.is_slow = True
    put(bench, "first", ttl={"N": str(NOW - 100)})
    bench.turn()
    put(bench, "second", ttl={"N": str(NOW - 100)})
    enable_ttl(bench)
    bench.turn()
    bench.settle()
    assert keys(bench) == []


@pytest.mark.parametrize("count", [jobs.PIECE - 1, jobs.PIECE, jobs.PIECE + 1, 3 * jobs.PIECE])
def test_pieces_of_any_number_fill_an_index(bench: Bench, count: int) -> None:
    for number in range(count):
        put(bench, f"{number:05}")
    bench.settle()
    add_index(bench)
    bench.settle()
    expected = [f"{number:05}" for number in range(count)]
    assert keys(bench, IndexName="index") == expected
    assert index_description(bench)["ItemCount"] == count


def test_a_piece_that_the_disk_lost_is_done_again(bench: Bench) -> None:
    count = 3 * jobs.PIECE
    for number in range(count):
        put(bench, f"{number:05}")
    bench.settle()
    bench.disk.is_slow = True
    add_index(bench)
    bench.turn()
    bench.finish_commit()  # the index is created
    bench.turn()  # the first piece is decided
    bench.disk.is_broken = True
    while bench.database._commits._committing is None:
        bench.turn()
    bench.finish_commit()
    bench.disk.is_broken = False
    bench.settle()
    assert index_description(bench)["IndexStatus"] == "ACTIVE"
    assert index_description(bench)["ItemCount"] == count
    assert len(keys(bench, IndexName="index")) == count


def test_an_index_that_was_being_filled_is_filled_after_a_restart(bench: Bench) -> None:
    count = 3 * jobs.PIECE
    for number in range(count):
        put(bench, f"{number:05}")
    bench.settle()
    add_index(bench)
    bench.turn()
    bench.finish_commit()
    bench.turn()
    bench.restart()
    assert index_description(bench)["IndexStatus"] == "CREATING"
    bench.settle()
    assert index_description(bench)["IndexStatus"] == "ACTIVE"
    assert index_description(bench)["ItemCount"] == count


def test_items_expire_in_their_second(bench: Bench) -> None:
    enable_ttl(bench)
    bench.settle()
    for seconds in (-1, 1, 2):
        put(bench, f"{seconds:+}", ttl={"N": str(NOW + seconds)})
    bench.settle()
    assert keys(bench) == ["+1", "+2"]
    for now, (left, later) in zip((NOW + 2, NOW + 3), pairwise([["+2"], [], []]), strict=False):
        bench.now = float(now)
        bench.settle()
        assert keys(bench) in (left, later)
    assert keys(bench) == []


def test_an_item_whose_time_was_put_off_does_not_expire(bench: Bench) -> None:
    enable_ttl(bench)
    put(bench, "a", ttl={"N": str(NOW + 10)})
    bench.settle()
    put(bench, "a", ttl={"N": str(NOW + 1000)})
    bench.now += 100
    bench.settle()
    assert keys(bench) == ["a"]


def test_an_item_that_lost_its_time_does_not_expire(bench: Bench) -> None:
    enable_ttl(bench)
    put(bench, "a", ttl={"N": str(NOW + 10)})
    put(bench, "b", ttl={"N": str(NOW + 10)})
    bench.settle()
    put(bench, "a")
    bench.send("DeleteItem", Key={"pk": {"S": "b"}})
    put(bench, "b")
    bench.now += 100
    bench.settle()
    assert keys(bench) == ["a", "b"]


@pytest.mark.parametrize(
    "ttl",
    [
        {"S": str(NOW - 100)},
        {"NULL": True},
        {"N": "0"},
        {"N": "-5"},
        {"N": str(NOW - 6 * 365 * 24 * 3600)},
        {"N": "9" * 38},
        {"N": str((NOW - 100) * 1000)},  # milliseconds, a usual mistake
        {"L": [{"N": str(NOW - 100)}]},
    ],
)
def test_what_is_no_recent_second_does_not_expire(bench: Bench, ttl: dict[str, Any]) -> None:
    # Guide: another type is ignored, and so is a time more than five years ago.
    put(bench, "before", ttl=ttl)
    enable_ttl(bench)
    put(bench, "after", ttl=ttl)
    bench.settle()
    assert keys(bench) == ["after", "before"]


def test_items_do_not_expire_when_ttl_is_switched_off(bench: Bench) -> None:
    enable_ttl(bench)
    put(bench, "a", ttl={"N": str(NOW + 10)})
    bench.settle()
    enable_ttl(bench, enabled=False)
    bench.now += 100
    bench.settle()
    assert keys(bench) == ["a"]


def test_ttl_on_another_attribute_forgets_the_first(bench: Bench) -> None:
    enable_ttl(bench, "one")
    put(bench, "a", one={"N": str(NOW + 10)}, other={"N": str(NOW + 1000)})
    put(bench, "b", one={"N": str(NOW + 1000)}, other={"N": str(NOW + 10)})
    bench.settle()
    enable_ttl(bench, "one", enabled=False)
    enable_ttl(bench, "other")
    put(bench, "c", one={"N": str(NOW + 10)}, other={"N": str(NOW + 1000)})
    bench.now += 100
    bench.settle()
    assert keys(bench) == ["a", "c"]


def test_ttl_that_was_switched_off_and_on_finds_all_items(bench: Bench) -> None:
    bench.disk.is_slow = True
    enable_ttl(bench)
    put(bench, "a", ttl={"N": str(NOW + 10)})
    bench.settle()
    enable_ttl(bench, enabled=False)
    put(bench, "b", ttl={"N": str(NOW + 10)})
    enable_ttl(bench)
    put(bench, "c", ttl={"N": str(NOW + 10)})
    bench.turn()
    put(bench, "d", ttl={"N": str(NOW + 10)})
    bench.settle()
    assert keys(bench) == ["a", "b", "c", "d"]
    bench.now += 100
    bench.settle()
    assert keys(bench) == []


def test_an_expired_item_leaves_indexes_and_counts(bench: Bench) -> None:
    add_index(bench)
    enable_ttl(bench)
    put(bench, "a", ttl={"N": str(NOW + 10)})
    put(bench, "b")
    bench.settle()
    bench.now += 100
    bench.settle()
    description = bench.ask("DescribeTable")["Table"]
    assert keys(bench, IndexName="index") == ["b"]
    assert (description["ItemCount"], description["TableSizeBytes"]) == (1, 5)
    assert index_description(bench)["ItemCount"] == 1


@pytest.mark.parametrize("count", [1, jobs.PIECE, 2 * jobs.PIECE + 1])
def test_a_deleted_table_leaves_nothing_behind(bench: Bench, count: int) -> None:
    before = list(bench.disk.snapshot().range(b"\x00", b"\xff"))
    assert len(before) == 3  # format, numbers, catalog
    add_index(bench)
    enable_ttl(bench)
    for number in range(count):
        put(bench, f"{number:05}", ttl={"N": str(NOW + 10)})
    bench.settle()
    bench.send("DeleteTable")
    bench.settle()
    left = [key for key, _ in bench.disk.snapshot().range(b"\x00", b"\xff")]
    assert left == [b"\x00format", b"\x00numbers"]


def test_a_deleted_index_leaves_nothing_behind(bench: Bench) -> None:
    for number in range(jobs.PIECE + 10):
        put(bench, f"{number:05}")
    bench.settle()
    before = [key for key, _ in bench.disk.snapshot().range(b"\x00", b"\xff")]
    add_index(bench)
    bench.settle()
    bench.send("UpdateTable", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "index"}}])
    bench.settle()
    assert [key for key, _ in bench.disk.snapshot().range(b"\x00", b"\xff")] == before


def test_client_tokens_are_forgotten_after_ten_minutes(bench: Bench) -> None:
    def transact() -> None:
        bench.database.write(
            WRITES["TransactWriteItems"],
            {
                "TransactItems": [{"Put": {"TableName": TABLE, "Item": {"pk": {"S": "a"}}}}],
                "ClientRequestToken": "token",
            },
            bench.answers.append,
        )

    before = [key for key, _ in bench.disk.snapshot().range(b"\x00", b"\xff")]
    transact()
    bench.settle()
    bench.send("DeleteItem", Key={"pk": {"S": "a"}})
    bench.now += 599
    transact()
    bench.settle()
    assert keys(bench) == []  # the same token: nothing was done again
    bench.now += 2
    bench.settle()
    transact()
    bench.settle()
    assert keys(bench) == ["a"]
    bench.now += 1000
    bench.send("DeleteItem", Key={"pk": {"S": "a"}})
    bench.settle()
    left = [key for key, _ in bench.disk.snapshot().range(b"\x00", b"\xff")]
    assert [key for key in left if key not in before and key[:1] != b"\x02"] == []
