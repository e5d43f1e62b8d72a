"""Group commit: writes are decided at once, committed together, and lost together.

The clock of these tests is a hand-cranked loop: `soon` holds what the event loop would call next,
and the disk of the fake engine is opened and closed by the test.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from random import Random
from threading import Semaphore
from time import monotonic
from typing import Any

import pytest

from partita.database.storage.engine import Changes, CommitArchive
from partita.database.storage.group_commit import GroupCommit
from partita.database.storage.write_batch import WriteBatch
from partita.errors import RequestError, StorageError
from partita.foundation.clock import system_clock

WAIT_SECONDS = 60.0


class Refused(RequestError):
    """Raised by a write that is refused."""


class Lost(RequestError):
    """The error of a write whose commit was lost."""


class FakeEngine:
    """Keeps commits in a dict. A closed disk makes `commit` wait; a broken one makes it fail."""

    waits_for_disk = True

    def __init__(self) -> None:
        self.stored: dict[bytes, bytes] = {}
        self.shown: dict[bytes, bytes] = {}
        self.commits: list[dict[bytes, bytes | None]] = []
        self.is_broken = False
        self.is_slow = False
        self._turns = Semaphore(0)

    def snapshot(self) -> FakeEngine:
        return self

    def get(self, key: bytes) -> bytes | None:
        return self.shown.get(key)

    def range(
        self, start: bytes, stop: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        pairs = sorted((key, value) for key, value in self.shown.items() if start <= key < stop)
        return iter(pairs[::-1] if reverse else pairs)

    def archive_to(self, archive: CommitArchive) -> None:
        pass

    def refresh(self) -> None:
        self.shown = dict(self.stored)

    def commit(self, changes: Changes) -> None:
        if self.is_slow:
            assert self._turns.acquire(timeout=WAIT_SECONDS)
        if self.is_broken:
            raise StorageError("The disk is full.")
        self.commits.append(dict(changes))
        for key, value in changes.items():
            if value is None:
                self.stored.pop(key, None)
            else:
                self.stored[key] = value

    def close(self) -> None:
        pass

    def let_one_commit_through(self) -> None:
        self._turns.release()


class Bench:
    """A group commit over a fake engine, with an event loop that the test steps by hand."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.soon: deque[Callable[[], None]] = deque()
        self.from_thread: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.answers: list[Any] = []
        self.reloads = 0
        self.seen: list[Changes] = []
        self.commits = GroupCommit(
            self.engine,
            self.soon.append,
            self.from_thread.put,
            lambda seconds, function: self.soon.append(function),
            self.seen.append,
            self._reload,
            system_clock,
        )

    def _reload(self, failure: StorageError) -> Lost:
        self.reloads += 1
        return Lost(str(failure))

    def write(self, decide: Callable[[WriteBatch], Any]) -> None:
        self.commits.write(decide, self.answers.append)

    def put(self, key: bytes, value: bytes, answer: Any = "done") -> None:
        def decide(write_batch: WriteBatch) -> Any:
            write_batch.put(key, value)
            return answer

        self.write(decide)

    def read(self, key: bytes) -> bytes | None:
        found: list[bytes | None] = []
        self.write(lambda write_batch: found.append(write_batch.get(key)))
        return found[0]

    def turn(self) -> None:
        """Runs the loop until nothing is due, without waiting for the disk."""
        while self.soon:
            self.soon.popleft()()

    def finish_commit(self) -> None:
        """Waits until the writer thread has made one commit, and reports it to the loop."""
        self.engine.let_one_commit_through()
        self.from_thread.get(timeout=WAIT_SECONDS)()

    def settle(self) -> None:
        self.turn()
        while self.commits._committing is not None:
            self.finish_commit()
            self.turn()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.engine.is_slow = False
    for _ in range(10):
        bench.engine.let_one_commit_through()
    bench.commits.close()


def test_a_write_is_answered_only_after_its_commit(bench: Bench) -> None:
    bench.put(b"k", b"v")
    assert bench.answers == []
    bench.turn()
    assert bench.answers == []
    bench.finish_commit()
    assert bench.answers == ["done"]
    assert bench.engine.stored == {b"k": b"v"}


def test_writes_that_wait_share_one_commit(bench: Bench) -> None:
    for number in range(5):
        bench.put(b"k%d" % number, b"v", answer=number)
    bench.settle()
    assert bench.answers == [0, 1, 2, 3, 4]
    assert len(bench.engine.commits) == 1


def test_writes_that_come_during_a_commit_share_the_next(bench: Bench) -> None:
    bench.engine.is_slow = True
    bench.put(b"a", b"1", answer="first")
    bench.turn()
    bench.put(b"b", b"2", answer="second")
    bench.put(b"c", b"3", answer="third")
    bench.turn()
    bench.finish_commit()
    assert bench.answers == ["first"]
    bench.turn()
    bench.finish_commit()
    assert bench.answers == ["first", "second", "third"]
    assert bench.engine.commits == [{b"a": b"1"}, {b"b": b"2", b"c": b"3"}]


def test_a_slow_disk_is_asked_once_for_those_who_wait_and_those_who_write_again(
    bench: Bench,
) -> None:
    bench.engine.is_slow = True
    bench.put(b"a", b"1")
    bench.turn()
    bench.put(b"b", b"2")
    bench.finish_commit()
    bench.put(b"a", b"3")  # by the one who was just answered
    bench.turn()
    bench.finish_commit()
    bench.turn()
    assert bench.engine.commits == [{b"a": b"1"}, {b"b": b"2", b"a": b"3"}]
    assert len(bench.answers) == 3


def test_a_quick_disk_is_waited_for_on_the_one_thread(bench: Bench) -> None:
    bench.engine.waits_for_disk = False
    bench.put(b"a", b"1")
    bench.put(b"b", b"2")
    assert bench.answers == []
    bench.turn()
    assert bench.answers == ["done", "done"]
    assert bench.engine.commits == [{b"a": b"1", b"b": b"2"}]
    bench.engine.waits_for_disk = True
    bench.put(b"a", b"3")
    bench.turn()
    assert bench.answers == ["done", "done"]
    bench.finish_commit()
    assert len(bench.answers) == 3


def test_a_write_sees_what_was_decided_before_it(bench: Bench) -> None:
    def increment(write_batch: WriteBatch) -> int:
        number = int(write_batch.get(b"n") or b"0") + 1
        write_batch.put(b"n", b"%d" % number)
        return number

    bench.engine.is_slow = True
    bench.write(increment)  # decided, and being committed
    bench.turn()
    bench.write(increment)  # decided on the one being committed
    bench.write(increment)  # decided on the one that waits
    bench.settle()
    bench.write(increment)  # decided on what is stored
    bench.settle()
    assert bench.answers == [1, 2, 3, 4]
    assert bench.engine.stored == {b"n": b"4"}


def test_a_draft_sees_its_own_changes(bench: Bench) -> None:
    def decide(write_batch: WriteBatch) -> list[bytes | None]:
        before = write_batch.get(b"k")
        write_batch.put(b"k", b"v")
        between = write_batch.get(b"k")
        write_batch.delete(b"k")
        return [before, between, write_batch.get(b"k")]

    bench.write(decide)
    bench.settle()
    assert bench.answers == [[None, b"v", None]]


def test_nobody_sees_a_draft_before_its_function_returns(bench: Bench) -> None:
    def decide(write_batch: WriteBatch) -> bytes | None:
        write_batch.put(b"k", b"v")
        return bench.commits.get(b"k")

    bench.write(decide)
    bench.settle()
    assert bench.answers == [None]


def test_a_deletion_hides_what_is_stored_at_once(bench: Bench) -> None:
    bench.put(b"k", b"v")
    bench.settle()
    bench.write(lambda write_batch: write_batch.delete(b"k"))
    assert bench.read(b"k") is None
    bench.settle()
    assert bench.engine.stored == {}


def test_a_refused_write_leaves_no_trace(bench: Bench) -> None:
    def refuse(write_batch: WriteBatch) -> None:
        write_batch.put(b"k", b"v")
        write_batch.hold(b"k")
        raise Refused("no")

    bench.write(refuse)
    assert bench.read(b"k") is None
    assert not bench.commits.is_held(b"k")
    bench.settle()
    assert isinstance(bench.answers[0], Refused)
    assert bench.engine.commits == []


def test_a_refused_write_does_not_spoil_those_that_share_its_commit(bench: Bench) -> None:
    def refuse(write_batch: WriteBatch) -> None:
        write_batch.put(b"a", b"spoilt")
        raise Refused("no")

    bench.put(b"a", b"1", answer="first")
    bench.write(refuse)
    bench.put(b"b", b"2", answer="third")
    bench.settle()
    first, second, third = bench.answers
    assert (first, third) == ("first", "third")
    assert isinstance(second, Refused)
    assert bench.engine.stored == {b"a": b"1", b"b": b"2"}


def test_a_write_that_changes_nothing_is_answered_at_once(bench: Bench) -> None:
    bench.write(lambda write_batch: "nothing")
    assert bench.answers == ["nothing"]
    assert bench.engine.commits == []


def test_an_answer_that_rests_on_a_pending_write_waits_for_it(bench: Bench) -> None:
    bench.engine.is_slow = True
    bench.put(b"k", b"v", answer="put")
    bench.turn()

    def refuse(write_batch: WriteBatch) -> None:
        assert write_batch.get(b"k") == b"v"
        raise Refused("it is there")

    bench.write(refuse)
    assert bench.answers == []
    bench.settle()
    assert bench.answers[0] == "put"
    assert isinstance(bench.answers[1], Refused)


def test_an_unexpected_error_leaves_no_trace(bench: Bench) -> None:
    def fail(write_batch: WriteBatch) -> None:
        write_batch.put(b"k", b"v")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.write(fail)
    bench.put(b"other", b"v")
    bench.settle()
    assert bench.answers == ["done"]
    assert bench.engine.stored == {b"other": b"v"}


def test_a_lost_commit_refuses_everything_decided_on_top_of_it(bench: Bench) -> None:
    bench.put(b"safe", b"v", answer="safe")
    bench.settle()
    bench.engine.is_slow = True
    bench.put(b"a", b"1")
    bench.turn()
    bench.put(b"b", b"2")
    bench.put(b"c", b"3")
    bench.engine.is_broken = True
    bench.settle()
    assert bench.answers[0] == "safe"
    assert [type(answer) for answer in bench.answers[1:]] == [Lost] * 3
    assert bench.reloads == 1
    assert [bench.read(key) for key in (b"safe", b"a", b"b", b"c")] == [b"v", None, None, None]


def test_writes_go_on_after_a_lost_commit(bench: Bench) -> None:
    bench.engine.is_broken = True
    bench.put(b"a", b"1")
    bench.settle()
    bench.engine.is_broken = False
    bench.put(b"b", b"2", answer="kept")
    bench.settle()
    assert isinstance(bench.answers[0], Lost)
    assert bench.answers[1] == "kept"
    assert bench.engine.stored == {b"b": b"2"}


def test_the_catalog_is_read_again_before_a_lost_write_is_answered(bench: Bench) -> None:
    bench.engine.is_broken = True
    seen: list[int] = []
    bench.commits.write(
        lambda write_batch: write_batch.put(b"a", b"1"), lambda answer: seen.append(bench.reloads)
    )
    bench.settle()
    assert seen == [1]


def test_a_refusal_stays_an_error_when_the_commit_it_waits_for_is_lost(bench: Bench) -> None:
    def refuse(write_batch: WriteBatch) -> None:
        raise Refused("no")

    bench.engine.is_broken = True
    bench.put(b"a", b"1")
    bench.write(refuse)
    bench.settle()
    assert isinstance(bench.answers[0], Lost)
    assert isinstance(bench.answers[1], Refused)


def test_a_key_is_held_until_its_transaction_is_committed(bench: Bench) -> None:
    def transaction(write_batch: WriteBatch) -> None:
        write_batch.put(b"k", b"v")
        write_batch.hold(b"k")
        assert not write_batch.is_held(b"k")

    bench.engine.is_slow = True
    bench.write(transaction)
    assert bench.commits.is_held(b"k")
    bench.turn()
    assert bench.commits.is_held(b"k")
    assert not bench.commits.is_held(b"other")
    bench.finish_commit()
    assert not bench.commits.is_held(b"k")


def test_a_lost_transaction_holds_nothing(bench: Bench) -> None:
    bench.engine.is_slow = True
    bench.put(b"a", b"1")
    bench.turn()
    bench.write(lambda write_batch: write_batch.hold(b"k"))
    bench.engine.is_broken = True
    bench.settle()
    assert not bench.commits.is_held(b"k")


def test_a_commit_is_visible_to_reads_before_its_write_is_answered(bench: Bench) -> None:
    seen: list[bytes | None] = []
    bench.commits.write(
        lambda write_batch: write_batch.put(b"k", b"v"),
        lambda answer: seen.append(bench.engine.snapshot().get(b"k")),
    )
    bench.settle()
    assert seen == [b"v"]


def test_closing_keeps_what_was_gathered(bench: Bench) -> None:
    bench.put(b"k", b"v")
    bench.commits.close()
    assert bench.engine.stored == {b"k": b"v"}
    with pytest.raises(Empty):
        bench.from_thread.get_nowait()
    bench.commits = GroupCommit(
        bench.engine,
        bench.soon.append,
        bench.from_thread.put,
        lambda seconds, function: None,
        bench.seen.append,
        lambda failure: Lost(str(failure)),
        system_clock,
    )


class MoodyEngine(FakeEngine):
    """An engine that waits for the disk at random, and fails at random."""

    def __init__(self, random: Random, failures: float) -> None:
        super().__init__()
        self._random = random
        self._failures = failures

    @property
    def waits_for_disk(self) -> bool:  # type: ignore[override]
        return self._random.random() < 0.5

    def commit(self, changes: Changes) -> None:
        self.is_broken = self._random.random() < self._failures
        super().commit(changes)


class Count:
    """Writes that each increment a number; the loop runs due calls in random order."""

    KEY = b"number"

    def __init__(self, seed: int, failures: float) -> None:
        self.random = Random(seed)
        self.engine = MoodyEngine(self.random, failures)
        self.due: deque[Callable[[], None]] = deque()
        self.later: list[Callable[[], None]] = []
        self.from_thread: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.asked = self.refused = 0
        self.answers: list[int] = []
        self.commits = GroupCommit(
            self.engine,
            self.due.append,
            self.from_thread.put,
            lambda seconds, function: self.later.append(function),
            lambda changes: None,
            lambda failure: Lost(str(failure)),
            system_clock,
        )

    def add(self) -> None:
        def decide(write_batch: WriteBatch) -> int:
            number = int(write_batch.get(self.KEY) or 0) + 1
            write_batch.put(self.KEY, b"%d" % number)
            return number

        self.asked += 1
        self.commits.write(decide, self._hear)

    def _hear(self, answer: int | RequestError) -> None:
        if isinstance(answer, RequestError):
            self.refused += 1
            return
        assert int(self.engine.stored[self.KEY]) >= answer == len(self.answers) + 1
        self.answers.append(answer)
        if self.random.random() < 0.3:
            self.add()

    def step(self) -> None:
        with suppress(Empty):
            self.due.append(self.from_thread.get(timeout=0.001 * (self.random.random() < 0.1)))
        if self.later and self.random.random() < 0.2:
            self.due.append(self.later.pop(self.random.randrange(len(self.later))))
        if self.due:
            self.due.popleft()()

    def is_over(self) -> bool:
        return len(self.answers) + self.refused == self.asked


@pytest.mark.parametrize("failures", [0, 0.1])
@pytest.mark.parametrize("seed", range(30))
def test_whatever_comes_first_every_write_is_answered_once_and_in_order(
    seed: int, failures: float
) -> None:
    count = Count(seed, failures)
    for _ in range(200):
        if count.random.random() < 0.5:
            count.add()
        count.step()
    if seed % 2:
        deadline = monotonic() + WAIT_SECONDS
        while not count.is_over() and monotonic() < deadline:
            count.step()
        assert count.is_over()
    count.commits.close()
    stored = int(count.engine.stored[count.KEY])
    assert len(count.answers) <= stored <= count.asked - count.refused
    if not failures:
        assert stored == count.asked
