"""A database whose disk fails on request, on an event loop that the test runs step by step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from partita.assembly.service_registry import WRITES
from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.operations.operation_context import PermittedRequest
from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.engine import Changes
from partita.database.storage.group_commit import GATHER_SECONDS
from partita.errors import StorageError

WAIT_SECONDS = 60.0
NOW = 1_800_000_000.0


class Disk(BranchEngine):
    """Refuses commits while it is broken."""

    is_broken = False
    waits_for_disk = True

    def commit(self, changes: Changes) -> None:
        if self.is_broken:
            raise StorageError("The disk is full.")
        super().commit(changes)


class Bench:
    """A database on an event loop that the test runs step by step."""

    def __init__(self) -> None:
        self.now = NOW
        self.disk = Disk()
        self.soon: deque[Callable[[], None]] = deque()
        self.later: list[Callable[[], None]] = []
        self.from_thread: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.asked = self.answered = 0
        self.database = EmbeddedDatabase(
            self.disk,
            call_soon=self.soon.append,
            call_from_thread=self.from_thread.put,
            # A commit waits for others for less than one turn; background jobs wait for `settle`.
            call_later=lambda seconds, function: (
                self.soon if seconds == GATHER_SECONDS else self.later
            ).append(function),
            clock=lambda: self.now,
        )
        self.database.start()

    def ask(self, operation: str, **request: Any) -> None:
        self.asked += 1
        self.database.write(WRITES[operation], PermittedRequest(request), self.answer)

    def answer(self, result: Any) -> None:
        self.answered += 1

    def turn(self) -> None:
        """Runs the loop until all requests are answered and nothing is left to do."""
        while self.soon or self.answered < self.asked:
            if self.soon:
                self.soon.popleft()()
            else:
                self.from_thread.get(timeout=WAIT_SECONDS)()

    def settle(self) -> None:
        """Lets background jobs do the work that is due."""
        for _ in range(20):
            later, self.later = self.later, []
            for step in later:
                step()
            self.turn()
            # One more write, which waits for the commit of the job's step.
            self.ask("PutItem", TableName="things", Item={"pk": {"S": "tick"}})
            self.turn()

    def suffer(self, kind: str, number: int, unit_seconds: int) -> None:
        """Applies an event: a turn of the loop, passing time, or a disk that breaks or recovers."""
        if kind == "settle":
            self.now += number * unit_seconds
            self.settle()
        else:
            self.turn()
            if kind == "break":
                self.disk.is_broken = bool(number)

    def recover(self) -> None:
        self.turn()
        self.disk.is_broken = False
        self.settle()

    def findings(self) -> list[str]:
        return [str(finding) for finding in check(CheckedFolder(self.disk.snapshot()))]
