"""A database: an engine, its catalog, its single writer and its upkeep, ready for requests.

Reads run at once on a snapshot. Writes run at once too, but are answered when their commit is
safe. All of it happens on one thread; only the disk is waited for on another.
"""

from __future__ import annotations

from collections.abc import Callable

from partita.clock import Clock, system_clock
from partita.errors import DynamoDBError
from partita.operations.context import (
    ReadContext,
    ReadHandler,
    Request,
    Service,
    WriteContext,
    WriteHandler,
)
from partita.storage.commits import CallSoon, Draft, GroupCommit
from partita.storage.engine import Engine
from partita.tables.catalog import Catalog, check_format
from partita.upkeep.jobs import Jobs
from partita.upkeep.keeper import CallLater, Keeper


class Database:
    def __init__(
        self,
        engine: Engine,
        *,
        call_soon: CallSoon,
        call_from_thread: CallSoon,
        call_later: CallLater,
        clock: Clock = system_clock,
        region: str = "us-east-1",
        account_id: str = "123456789012",
        transient_seconds: float = 0.0,
    ) -> None:
        check_format(engine)
        snapshot = engine.snapshot()
        catalog = Catalog(snapshot)
        self._engine = engine
        jobs = Jobs(catalog, snapshot, clock)

        def forget_lost_commit() -> None:
            catalog.reload()
            jobs.start_again()

        self._commits = GroupCommit(engine, call_soon, call_from_thread, forget_lost_commit)
        self._keeper = Keeper(jobs, self._commits, call_soon, call_later)
        self.service = Service(catalog, clock, region, account_id, transient_seconds)
        self._reads = ReadContext(self.service, snapshot, self._commits.is_held)
        catalog.on_change = self._keeper.wake

    def start(self) -> None:
        """Begin the background work, on the thread that will call `read` and `write`."""
        self._keeper.start()

    def read(self, handler: ReadHandler, request: Request) -> bytes:
        return handler(self._reads, request)

    def write(
        self, handler: WriteHandler, request: Request, done: Callable[[bytes | DynamoDBError], None]
    ) -> None:
        def decide(draft: Draft) -> bytes:
            return handler(WriteContext(self.service, draft), request)

        self._commits.write(decide, done)

    def close(self) -> None:
        self._keeper.stop()
        self._commits.close()
        self._engine.close()
