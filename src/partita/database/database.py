"""A database: an engine, its catalog, its single writer and its upkeep, ready for requests.

Reads run at once on a snapshot. Writes run at once too, but are answered when their commit is
safe. All of it happens on one thread; only the disk is waited for on another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from partita.clock import Clock, system_clock
from partita.database.capacity.ledger import OFF, Ledger
from partita.database.capacity.schedules import ScheduledChange
from partita.database.events.streams import EventStreams
from partita.database.operations.context import (
    ReadContext,
    ReadHandler,
    Request,
    Service,
    WriteContext,
    WriteHandler,
)
from partita.database.response_cache import ResponseCache
from partita.database.storage.engine import Changes, Engine
from partita.database.storage.group_commit import CallSoon, GroupCommit, WriteBatch
from partita.database.tables.catalog import Catalog, check_format
from partita.database.upkeep.destinations import DestinationJobs
from partita.database.upkeep.events import EventJobs
from partita.database.upkeep.jobs import Jobs
from partita.database.upkeep.keeper import CallLater, Keeper
from partita.database.upkeep.scaling import Scaling
from partita.errors import DynamoDBError

CACHED_OPERATIONS = ("GetItem", "Query")


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
        capacity: str = OFF,
        schedules: Sequence[ScheduledChange] = (),
    ) -> None:
        check_format(engine)
        snapshot = engine.snapshot()
        catalog = Catalog(snapshot)
        event_streams = EventStreams(snapshot)
        self._engine = engine
        self.response_caches = {name: ResponseCache() for name in CACHED_OPERATIONS}
        ledger = Ledger(clock, capacity)
        scaling = Scaling(catalog, snapshot, clock, ledger, schedules)
        events = EventJobs(event_streams, snapshot, clock)
        destinations = DestinationJobs(catalog, event_streams, snapshot, region)
        jobs = Jobs(catalog, snapshot, clock, [scaling.work, events.work, destinations.work])

        def forget_lost_commit() -> None:
            catalog.reload()
            event_streams.reload()
            self._take_catalog()
            jobs.start_again()

        self._commits = GroupCommit(
            engine,
            call_soon,
            call_from_thread,
            call_later,
            self._forget_answers,
            forget_lost_commit,
            clock,
        )
        self._keeper = Keeper(jobs, self._commits, call_soon, call_later)
        self.service = Service(
            catalog, clock, region, account_id, transient_seconds, ledger, event_streams
        )
        self.service.meter()
        self.reads = ReadContext(self.service, snapshot, self._commits.is_held)
        catalog.on_change = self._see_catalog_change
        event_streams.on_change = self._keeper.wake

    def start(self) -> None:
        """Begin the background work, on the thread that will call `read` and `write`."""
        self._keeper.start()

    def read(
        self,
        handler: ReadHandler,
        request: Request,
        question: bytes = b"",
        cache: ResponseCache | None = None,
    ) -> bytes:
        """Read at once. Where an answer shall be known, it is kept; not if it is charged for."""
        self.reads.take_partition()
        answer = handler(self.reads, request)
        partition = self.reads.take_partition()
        if cache is not None and partition is not None and not self.service.ledger.is_on:
            cache.keep(question, answer, partition)
        return answer

    def _forget_answers(self, changes: Changes) -> None:
        for cache in self.response_caches.values():
            cache.forget_changed(changes)

    def _see_catalog_change(self) -> None:
        self._take_catalog()
        self._keeper.wake()

    def _take_catalog(self) -> None:
        """What follows from the tables that there are."""
        for cache in self.response_caches.values():
            cache.forget_all()
        self.service.meter()

    def write(
        self, handler: WriteHandler, request: Request, done: Callable[[bytes | DynamoDBError], None]
    ) -> None:
        def decide(write_batch: WriteBatch) -> bytes:
            return handler(WriteContext(self.service, write_batch), request)

        self._commits.write(decide, done)

    def close(self) -> None:
        self._keeper.stop()
        self._commits.close()
        self._engine.close()
