"""Whatever commit is lost, and whatever was decided on top of it: log, shards and items agree."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partita.changes import streams
from partita.errors import StorageError
from partita.operations.database import Database
from partita.operations.registry import WRITES
from partita.storage.branch import BranchEngine
from partita.storage.engine import Changes
from partita.tables.check import check
from partita.tables.findings import Folder

WAIT_SECONDS = 5.0
NOW = 1_800_000_000.0
VIEW = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


class Disk(BranchEngine):
    """Refuses commits while it is broken."""

    is_broken = False
    waits_for_disk = True

    def commit(self, changes: Changes) -> None:
        if self.is_broken:
            raise StorageError("The disk is full.")
        super().commit(changes)


class Bench:
    """A database on a loop that a test turns by hand."""

    def __init__(self) -> None:
        self.now = NOW
        self.disk = Disk()
        self.soon: deque[Callable[[], None]] = deque()
        self.later: list[Callable[[], None]] = []
        self.from_thread: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.asked = self.answered = 0
        self.database = Database(
            self.disk,
            call_soon=self.soon.append,
            call_from_thread=self.from_thread.put,
            call_later=lambda seconds, function: self.later.append(function),
            clock=lambda: self.now,
        )
        self.database.start()

    def ask(self, operation: str, **request: Any) -> None:
        self.asked += 1
        self.database.write(WRITES[operation], request, self.answer)

    def answer(self, result: Any) -> None:
        self.answered += 1

    def turn(self) -> None:
        """Until all is answered and nothing is left to do."""
        while self.soon or self.answered < self.asked:
            if self.soon:
                self.soon.popleft()()
            else:
                self.from_thread.get(timeout=WAIT_SECONDS)()

    def settle(self) -> None:
        """Let upkeep do what the time brings about."""
        for _ in range(20):
            later, self.later = self.later, []
            for step in later:
                step()
            self.turn()
            # One more write, so that the commit of a piece is waited for.
            self.ask("PutItem", TableName="things", Item={"pk": {"S": "tick"}})
            self.turn()

    def findings(self) -> list[str]:
        return [str(finding) for finding in check(Folder(self.disk.snapshot()))]


KEYS = st.sampled_from("abcd")
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("delete"), KEYS, st.just(0)),
    st.tuples(st.just("switch"), KEYS, st.integers(0, 1)),
    st.tuples(st.just("turn"), KEYS, st.just(0)),
    st.tuples(st.just("settle"), KEYS, st.integers(0, 30)),
    st.tuples(st.just("break"), KEYS, st.integers(0, 1)),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=30))
def test_log_and_items_agree(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, str, int]]
) -> None:
    monkeypatch.setattr(streams, "SHARD_CHANGES_MAX", 2)
    bench = Bench()
    bench.ask(
        "CreateTable",
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification=VIEW,
    )
    bench.turn()
    for kind, key, number in steps:
        name = {"TableName": "things"}
        if kind == "put":
            bench.ask("PutItem", **name, Item={"pk": {"S": key}, "n": {"N": str(number)}})
        elif kind == "delete":
            bench.ask("DeleteItem", **name, Key={"pk": {"S": key}})
        elif kind == "switch":
            specification = VIEW if number else {"StreamEnabled": False}
            bench.ask("UpdateTable", **name, StreamSpecification=specification)
        elif kind == "turn":
            bench.turn()
        elif kind == "settle":
            bench.now += number * 3600
            bench.settle()
        else:
            bench.turn()
            bench.disk.is_broken = bool(number)
    bench.turn()
    bench.disk.is_broken = False
    bench.settle()
    assert bench.findings() == []
    bench.database.close()
