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
from tempfile import TemporaryDirectory
from threading import Semaphore
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.assembly.service_registry import READS, WRITES
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.operations.operation_context import PermittedRequest
from partita.database.storage.data_folder.lmdb_tree import LmdbEngine
from partita.database.storage.engine import Changes, CommitArchive, Snapshot
from partita.database.storage.group_commit import GATHER_SECONDS
from partita.database.tables import table_layout
from partita.database.upkeep import table_walk
from partita.errors import (
    DynamoDBError,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    StorageError,
    ValidationException,
)

WAIT_SECONDS = 60.0
NOW = 1_800_000_000
TABLE = "table"


class Disk:
    """An engine whose commits wait for their turn when it is slow, and fail when it is broken."""

    waits_for_disk = True

    def __init__(self, folder: Path) -> None:
        self._engine = LmdbEngine(folder, durable=False)
        self._turns = Semaphore(0)
        self.is_slow = False
        self.is_broken = False

    def snapshot(self) -> Snapshot:
        return self._engine.snapshot()

    def archive_to(self, archive: CommitArchive) -> None:
        pass

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

    def __init__(self, folder: Path, transient_seconds: float = 0.0) -> None:
        self.folder = folder
        self.transient_seconds = transient_seconds
        self.now = float(NOW)
        self.soon: deque[Callable[[], None]] = deque()
        self.later: list[Callable[[], None]] = []
        self.from_thread: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.answers: list[Any] = []
        self._open()

    def _open(self) -> None:
        self.disk = Disk(self.folder)
        self.database = EmbeddedDatabase(
            self.disk,
            call_soon=self.soon.append,
            call_from_thread=self.from_thread.put,
            call_later=self._call_later,
            clock=lambda: self.now,
            transient_seconds=self.transient_seconds,
        )
        self.database.start()

    def _call_later(self, seconds: float, function: Callable[[], None]) -> None:
        (self.soon if seconds <= GATHER_SECONDS else self.later).append(function)

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
        self.database.write(
            WRITES[operation],
            PermittedRequest({"TableName": TABLE, **request}),
            self.answers.append,
        )

    def ask(self, operation: str, **request: Any) -> Any:
        return json.loads(
            self.database.read(READS[operation], PermittedRequest({"TableName": TABLE, **request}))
        )

    def turn(self) -> None:
        """Runs the loop until it is idle or waits for the disk."""
        for _ in range(len(self.soon)):
            self.soon.popleft()()
        while self.soon and self.database._commits._committing is None:
            self.soon.popleft()()

    def finish_commit(self) -> None:
        if self.disk.is_slow:
            self.disk.let_one_commit_through()
        self.from_thread.get(timeout=WAIT_SECONDS)()

    def settle(self) -> None:
        """Until nothing is left to do, and two ticks of the worker have found nothing more."""
        self._run()
        for _ in range(2):
            self._tick()
            self._run()
        assert not [answer for answer in self.answers if isinstance(answer, Exception)]

    def step(self) -> None:
        """The next thing that the loop, the disk or the clock does."""
        if self.soon:
            self.soon.popleft()()
        elif self.database._commits._committing is not None:
            self.finish_commit()
        else:
            self._tick()

    def _run(self) -> None:
        while self.soon or self.database._commits._committing is not None:
            self.step()

    def _tick(self) -> None:
        ticks, self.later = self.later, []
        for tick in ticks:
            tick()


def create_table(bench: Bench) -> None:
    bench.send(
        "CreateTable",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    bench.settle()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    create_table(bench)
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


@pytest.mark.parametrize(
    "count",
    [
        table_walk.PIECE_KEYS - 1,
        table_walk.PIECE_KEYS,
        table_walk.PIECE_KEYS + 1,
        3 * table_walk.PIECE_KEYS,
    ],
)
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
    count = 3 * table_walk.PIECE_KEYS
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
    count = 3 * table_walk.PIECE_KEYS
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


@pytest.fixture
def filling(bench: Bench) -> Bench:
    """A table whose index has been created, and is being filled."""
    for number in range(3 * table_walk.PIECE_KEYS):
        put(bench, f"{number:05}")
    bench.settle()
    bench.disk.is_slow = True
    add_index(bench)
    bench.turn()
    bench.finish_commit()
    bench.answers.clear()
    assert index_description(bench)["IndexStatus"] == "CREATING"
    assert index_description(bench)["Backfilling"] is True
    return bench


def refusal(bench: Bench) -> DynamoDBError:
    """Returns the only response, which is an error."""
    while not bench.answers:
        bench.step()
    (answer,) = bench.answers
    bench.answers.clear()
    assert isinstance(answer, DynamoDBError)
    return answer


def test_an_index_that_is_being_filled_is_not_read(filling: Bench) -> None:
    for operation, more in (
        ("Scan", {}),
        (
            "Query",
            {
                "KeyConditionExpression": "g = :g",
                "ExpressionAttributeValues": {":g": {"S": "x"}},
            },
        ),
    ):
        with pytest.raises(ValidationException) as refused:
            filling.ask(operation, IndexName="index", **more)
        assert refused.value.message == (
            "Cannot read from backfilling global secondary index: index"
        )


def test_a_second_index_waits_for_the_first(filling: Bench) -> None:
    # dynalite
    create: dict[str, Any] = {
        "IndexName": "other",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    filling.send(
        "UpdateTable",
        AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": create}],
    )
    refused = refusal(filling)
    assert isinstance(refused, LimitExceededException)
    assert refused.message == (
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously "
        "per table"
    )


def test_a_table_whose_index_is_being_filled_is_not_deleted(filling: Bench) -> None:
    # recorded (comment of the suite, eu-west-2 2026-07): ResourceInUseException
    filling.send("DeleteTable")
    assert isinstance(refusal(filling), ResourceInUseException)
    filling.settle()
    assert index_description(filling)["ItemCount"] == 3 * table_walk.PIECE_KEYS
    filling.send("DeleteTable")
    filling.settle()
    assert filling.ask("ListTables")["TableNames"] == []


def test_an_index_is_complete_when_it_says_so(filling: Bench) -> None:
    def check() -> bool:
        description = index_description(filling)
        if description["IndexStatus"] != "ACTIVE":
            return False
        assert (
            description["ItemCount"]
            == len(keys(filling, IndexName="index"))
            == 3 * table_walk.PIECE_KEYS
        )
        return True

    while not check():
        filling.step()


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


@pytest.mark.parametrize("count", [1, table_walk.PIECE_KEYS, 2 * table_walk.PIECE_KEYS + 1])
def test_a_deleted_table_leaves_nothing_behind(bench: Bench, count: int) -> None:
    before = list(bench.disk.snapshot().range(b"\x00", b"\xff"))
    assert len(before) == 4  # format, numbers, secret, catalog
    add_index(bench)
    enable_ttl(bench)
    for number in range(count):
        put(bench, f"{number:05}", ttl={"N": str(NOW + 10)})
    bench.settle()
    bench.send("DeleteTable")
    bench.settle()
    left = [key for key, _ in bench.disk.snapshot().range(b"\x00", b"\xff")]
    assert left == [b"\x00format", b"\x00numbers", b"\x00secret"]


def test_a_deleted_index_leaves_nothing_behind(bench: Bench) -> None:
    for number in range(table_walk.PIECE_KEYS + 10):
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
            PermittedRequest(
                {
                    "TransactItems": [{"Put": {"TableName": TABLE, "Item": {"pk": {"S": "a"}}}}],
                    "ClientRequestToken": "token",
                }
            ),
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


# Statuses that last for a while, as with -delayTransientStatuses.

LASTING_SECONDS = 5.0


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, LASTING_SECONDS)
    create_table(bench)
    yield bench
    bench.close()


def status(bench: Bench) -> str:
    return str(bench.ask("DescribeTable")["Table"]["TableStatus"])


def answer_to(bench: Bench, operation: str, **request: Any) -> Any:
    bench.answers.clear()
    bench.send(operation, **request)
    while not bench.answers:
        bench.step()
    (answer,) = bench.answers
    bench.answers.clear()
    return answer


def is_active(bench: Bench) -> Bench:
    bench.now += LASTING_SECONDS
    bench.settle()
    assert status(bench) == "ACTIVE"
    return bench


def test_a_table_is_being_created_for_a_while(lasting: Bench) -> None:
    assert status(lasting) == "CREATING"
    assert lasting.ask("ListTables")["TableNames"] == [TABLE]
    for operation in ("DeleteTable", "UpdateTable"):
        change = {"BillingMode": "PAY_PER_REQUEST"} if operation == "UpdateTable" else {}
        refused = answer_to(lasting, operation, **change)
        assert isinstance(refused, ResourceInUseException)
        # dynalite (DeleteTable)
        assert refused.message == (
            f"Attempt to change a resource which is still in use: Table is being created: {TABLE}"
        )
    # dynalite: nothing is read or written meanwhile
    refused = answer_to(lasting, "PutItem", Item={"pk": {"S": "a"}})
    assert isinstance(refused, ResourceNotFoundException)
    assert refused.message == "Requested resource not found"
    with pytest.raises(ResourceNotFoundException):
        lasting.ask("Scan")
    is_active(lasting)
    assert isinstance(answer_to(lasting, "PutItem", Item={"pk": {"S": "a"}}), bytes)
    assert keys(lasting) == ["a"]


def test_a_table_is_being_updated_for_a_while_and_serves(lasting: Bench) -> None:
    is_active(lasting)
    assert isinstance(answer_to(lasting, "UpdateTable", TableClass="STANDARD"), bytes)
    assert status(lasting) == "UPDATING"
    for operation in ("DeleteTable", "UpdateTable"):
        change = {"TableClass": "STANDARD"} if operation == "UpdateTable" else {}
        refused = answer_to(lasting, operation, **change)
        assert isinstance(refused, ResourceInUseException)
    assert isinstance(answer_to(lasting, "PutItem", Item={"pk": {"S": "a"}}), bytes)
    assert keys(lasting) == ["a"]
    is_active(lasting)


def test_an_index_is_not_active_before_its_table(lasting: Bench) -> None:
    # Guide, "Managing global secondary indexes": resources first, then the backfill.
    is_active(lasting)
    put(lasting, "a")
    add_index(lasting)
    lasting.settle()
    assert status(lasting) == "UPDATING"
    assert index_description(lasting)["IndexStatus"] == "CREATING"
    assert index_description(lasting)["Backfilling"] is False
    is_active(lasting)
    assert index_description(lasting)["IndexStatus"] == "ACTIVE"
    assert "Backfilling" not in index_description(lasting)
    assert keys(lasting, IndexName="index") == ["a"]


def test_a_table_is_being_deleted_for_a_while(lasting: Bench) -> None:
    is_active(lasting)
    put(lasting, "a")
    lasting.settle()
    assert isinstance(answer_to(lasting, "DeleteTable"), bytes)
    assert status(lasting) == "DELETING"
    assert lasting.ask("ListTables")["TableNames"] == [TABLE]
    assert isinstance(answer_to(lasting, "DeleteTable"), ResourceInUseException)
    with pytest.raises(ResourceNotFoundException):
        lasting.ask("Scan")
    lasting.now += LASTING_SECONDS
    lasting.settle()
    assert lasting.ask("ListTables")["TableNames"] == []
    left = [key for key, _ in lasting.disk.snapshot().range(b"\x00", b"\xff")]
    assert left == [b"\x00format", b"\x00numbers", b"\x00secret"]


def test_a_table_that_was_being_deleted_is_gone_after_a_restart(lasting: Bench) -> None:
    is_active(lasting)
    answer_to(lasting, "DeleteTable")
    lasting.restart()
    assert status(lasting) == "DELETING"
    lasting.now += LASTING_SECONDS
    lasting.settle()
    assert lasting.ask("ListTables")["TableNames"] == []


# Everything at once.

KEYS = ("a", "b", "c", "d", "e")
INDEXES = ("one", "two")
moves = st.one_of(
    st.tuples(
        st.just("put"),
        st.sampled_from(KEYS),
        st.sampled_from([None, "x", "y"]),
        st.sampled_from([None, -10, 5, 15, 1000]),
    ),
    st.tuples(st.just("delete"), st.sampled_from(KEYS)),
    st.tuples(st.just("transact"), st.sampled_from(KEYS), st.sampled_from(["x", "y"])),
    st.tuples(st.just("add index"), st.sampled_from(INDEXES)),
    st.tuples(st.just("drop index"), st.sampled_from(INDEXES)),
    st.tuples(st.just("ttl"), st.sampled_from(["ttl", "other"]), st.booleans()),
    st.tuples(st.just("step"), st.integers(1, 6)),
    st.tuples(st.just("clock"), st.sampled_from([3, 10])),
    st.tuples(st.just("lose a commit")),
    st.tuples(st.just("restart")),
)


class Model:
    """Everything that responses confirm is stored, and responses come in the order of decisions."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.items: dict[str, dict[str, Any]] = {}
        self.ttl_attributes: set[str] = set()
        """The attributes by which items may have expired so far."""

    def send(self, operation: str, then: Callable[[], None], **request: Any) -> None:
        def done(answer: bytes | DynamoDBError) -> None:
            if isinstance(answer, bytes):
                then()

        self.bench.database.write(WRITES[operation], PermittedRequest(request), done)

    def move(self, kind: str, *arguments: Any) -> None:
        kinds: dict[str, Callable[..., None]] = {
            "put": self.put,
            "delete": self.delete,
            "transact": self.transact,
            "add index": self.add_index,
            "drop index": self.drop_index,
            "ttl": self.ttl,
            "step": self.step,
            "clock": self.clock,
            "lose a commit": self.lose_a_commit,
            "restart": self.restart,
        }
        kinds[kind](*arguments)

    def item(self, key: str, group: str | None, seconds: int | None = None) -> dict[str, Any]:
        item: dict[str, Any] = {"pk": {"S": key}}
        if group:
            item["g"] = {"S": group}
        if seconds:
            item["ttl"] = {"N": str(int(self.bench.now) + seconds)}
            item["other"] = {"N": str(int(self.bench.now) - seconds)}
        return item

    def put(self, key: str, group: str | None, seconds: int | None) -> None:
        item = self.item(key, group, seconds)
        self.send("PutItem", lambda: self.items.update({key: item}), TableName=TABLE, Item=item)

    def delete(self, key: str) -> None:
        def gone() -> None:
            self.items.pop(key, None)

        self.send("DeleteItem", gone, TableName=TABLE, Key={"pk": {"S": key}})

    def transact(self, key: str, group: str) -> None:
        items = {each: self.item(each, group) for each in (key, f"{key}2")}
        puts = [{"Put": {"TableName": TABLE, "Item": item}} for item in items.values()]
        self.send("TransactWriteItems", lambda: self.items.update(items), TransactItems=puts)

    def add_index(self, name: str) -> None:
        create = {
            "IndexName": name,
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
        self.send(
            "UpdateTable",
            lambda: None,
            TableName=TABLE,
            AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[{"Create": create}],
        )

    def drop_index(self, name: str) -> None:
        self.send(
            "UpdateTable",
            lambda: None,
            TableName=TABLE,
            GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}}],
        )

    def ttl(self, attribute: str, enabled: bool) -> None:
        self.ttl_attributes.add(attribute)
        self.send(
            "UpdateTimeToLive",
            lambda: None,
            TableName=TABLE,
            TimeToLiveSpecification={"Enabled": enabled, "AttributeName": attribute},
        )

    def step(self, count: int) -> None:
        for _ in range(count):
            self.bench.step()

    def clock(self, seconds: int) -> None:
        self.bench.now += seconds

    def lose_a_commit(self) -> None:
        self.bench.disk.is_broken = True
        while self.bench.soon and self.bench.database._commits._committing is None:
            self.bench.step()
        if self.bench.database._commits._committing is not None:
            self.bench.finish_commit()
        self.bench.disk.is_broken = False

    def restart(self) -> None:
        # What was decided is kept, and answered, before the server stops.
        self.bench._run()
        self.bench.restart()
        self.bench.disk.is_slow = True

    def check(self) -> None:
        bench = self.bench
        found = {item["pk"]["S"]: item for item in bench.ask("Scan")["Items"]}
        described = bench.ask("DescribeTimeToLive")["TimeToLiveDescription"]
        attribute = described.get("AttributeName")
        for key, item in self.items.items():
            if key in found:
                assert found[key] == item
                assert not (attribute and has_expired(bench, item, attribute))
            else:
                assert any(has_expired(bench, item, each) for each in self.ttl_attributes)
        assert found.keys() <= self.items.keys()
        table = bench.ask("DescribeTable")["Table"]
        assert table["ItemCount"] == len(found)
        for index in table.get("GlobalSecondaryIndexes", []):
            assert index["IndexStatus"] == "ACTIVE"
            entries = bench.ask("Scan", IndexName=index["IndexName"])["Items"]
            indexed = {key: item for key, item in found.items() if "g" in item}
            assert {entry["pk"]["S"]: entry for entry in entries} == indexed
            assert index["ItemCount"] == len(entries) == len(indexed)
        self.check_storage(table, found, attribute)

    def check_storage(self, table: Any, found: dict[str, Any], attribute: str | None) -> None:
        """No data is left over, and every expiry has exactly one entry."""
        keys = [key for key, _ in self.bench.disk.snapshot().range(b"\x00", b"\xff")]
        assert [key for key in keys if key.startswith(table_layout.LEFTOVERS)] == []
        times = sum(key.startswith(table_layout.EXPIRIES) for key in keys)
        assert times == sum(bool(attribute) and attribute in item for item in found.values())
        entries = sum(key.startswith(table_layout.ENTRIES) for key in keys)
        indexes = len(table.get("GlobalSecondaryIndexes", []))
        assert entries == indexes * sum("g" in item for item in found.values())


def has_expired(bench: Bench, item: dict[str, Any], attribute: str) -> bool:
    return attribute in item and int(item[attribute]["N"]) < bench.now


@settings(max_examples=200, deadline=None)
@given(sequence=st.lists(moves, max_size=40))
def test_whatever_happens_table_indexes_and_counts_agree(sequence: list[Any]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_walk, "PIECE_KEYS", 2)
        bench = Bench(Path(folder))
        create_table(bench)
        bench.disk.is_slow = True
        model = Model(bench)
        try:
            for move in sequence:
                model.move(*move)
            bench.settle()
            model.check()
        finally:
            bench.close()


def test_a_token_used_again_after_ten_minutes_counts_from_its_second_use(bench: Bench) -> None:
    def add_one() -> None:
        update = {
            "TableName": TABLE,
            "Key": {"pk": {"S": "a"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        bench.send(
            "TransactWriteItems", TransactItems=[{"Update": update}], ClientRequestToken="token"
        )

    add_one()
    bench.settle()
    bench.now += 601
    add_one()  # before the sweep has seen that the first use is over
    bench.settle()
    bench.now += 5
    add_one()
    bench.settle()
    assert bench.ask("GetItem", Key={"pk": {"S": "a"}})["Item"]["n"] == {"N": "2"}
