"""The embedded database: storage engine, catalog, single writer and background work of one process.

A read runs at once, on a snapshot. A write is decided at once too, but answered only when its
commit is durable. Everything runs on one thread; a second one waits for the disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from partita.database.capacity.ledger import OFF, Ledger
from partita.database.capacity.scaling.capacity_schedules import ScheduledChange
from partita.database.execution.optimistic.drafts import ValueDraft
from partita.database.execution.response_cache import (
    RESPONSE_CACHE_BYTES,
    ResponseCache,
    response_caches,
)
from partita.database.logs.event_log.event_streams import EventStreams
from partita.database.logs.event_log.shard_throughput import ShardThroughput
from partita.database.operations.operation_context import (
    OWN_REQUEST,
    DatabaseService,
    PermittedBytes,
    PermittedRequest,
    PlainHandler,
    ReadContext,
    ReadHandler,
    WriteContext,
    WriteHandler,
)
from partita.database.recovery.recovery_bases import followed_tables
from partita.database.recovery.recovery_context import RecoveryContext, Run, run_at_once
from partita.database.recovery.recovery_records import RecoveryRecords
from partita.database.recovery.s3.object_buckets import ObjectBuckets
from partita.database.storage.archive import Archive, MemoryArchive
from partita.database.storage.engine import (
    BulkLoadable,
    Changes,
    ConflictDetected,
    Engine,
    ReencryptableEngine,
)
from partita.database.storage.group_commit import CallSoon, GroupCommit
from partita.database.storage.recovery_log import RecoveryLog
from partita.database.storage.write_batch import LatestState, WriteBatch
from partita.database.tables.definition.table_catalog import TableCatalog, check_format
from partita.database.upkeep.auto_scaling_job import AutoScalingJob
from partita.database.upkeep.background_worker import BackgroundWorker, CallLater
from partita.database.upkeep.event_log_jobs import EventLogJobs
from partita.database.upkeep.kinesis_delivery import KinesisDelivery
from partita.database.upkeep.recovery_jobs import RecoveryJobs
from partita.database.upkeep.reencryption import Reencryption
from partita.database.upkeep.table_jobs import TableJobs
from partita.errors import DynamoDBError, InternalServerError, StorageError
from partita.foundation.clock import Clock, Stopwatch, system_stopwatch


def _ignore(is_leading: bool) -> None:
    pass


class EmbeddedDatabase:
    def __init__(
        self,
        engine: Engine,
        *,
        call_soon: CallSoon,
        call_from_thread: CallSoon,
        call_later: CallLater,
        clock: Clock,
        stopwatch: Stopwatch = system_stopwatch,
        region: str = "us-east-1",
        account_id: str = "123456789012",
        transient_seconds: float = 0.0,
        capacity: str = OFF,
        schedules: Sequence[ScheduledChange] = (),
        is_lenient: bool = False,
        response_cache_bytes: int = RESPONSE_CACHE_BYTES,
        sealed: ReencryptableEngine | None = None,
        archive: Archive | None = None,
        run: Run = run_at_once,
        buckets: ObjectBuckets | None = None,
    ) -> None:
        """`archive` keeps backups and earlier states of tables; `run` starts work that waits for
        it, on another thread."""
        check_format(engine)
        snapshot = engine.snapshot()
        catalog = TableCatalog(snapshot)
        event_streams = EventStreams(snapshot)
        self._engine = engine
        self.response_caches = response_caches(response_cache_bytes)
        ledger = Ledger(clock, capacity)
        scaling = AutoScalingJob(catalog, snapshot, clock, ledger, schedules)
        events = EventLogJobs(event_streams, snapshot, clock)
        destinations = KinesisDelivery(catalog, event_streams, snapshot, region)
        archive = archive or MemoryArchive()
        self._recovery_log = RecoveryLog(archive, clock, snapshot)
        records = RecoveryRecords(snapshot)
        recovery = RecoveryContext(
            catalog,
            records,
            snapshot,
            archive,
            self._recovery_log,
            clock,
            self._in_background(run, call_from_thread),
            transient_seconds,
            lambda name: f"arn:aws:dynamodb:{region}:{account_id}:table/{name}",
            buckets or ObjectBuckets(),
            engine if isinstance(engine, BulkLoadable) else None,
        )
        recovery_jobs = RecoveryJobs(recovery, _random_id)
        other_jobs = [scaling.work, events.work, destinations.work, recovery_jobs.work]
        if sealed is not None:
            other_jobs.append(Reencryption(sealed, catalog, event_streams, snapshot).work)
        jobs = TableJobs(catalog, snapshot, clock, stopwatch, other_jobs, recovery_jobs.is_kept)

        def forget_lost_commit(failure: StorageError) -> InternalServerError:
            catalog.reload()
            event_streams.reload()
            records.reload()
            self._apply_catalog()
            jobs.restart()
            recovery_jobs.restart()
            return InternalServerError(str(failure))

        self._commits = GroupCommit(
            engine,
            call_soon,
            call_from_thread,
            call_later,
            self._invalidate_responses,
            forget_lost_commit,
            clock,
        )
        self._worker = BackgroundWorker(jobs, self._commits, call_soon, call_later, recovery_jobs)
        self.service = DatabaseService(
            catalog,
            clock,
            stopwatch,
            region,
            account_id,
            transient_seconds,
            ledger,
            event_streams,
            ShardThroughput(clock),
            is_lenient=is_lenient,
            recovery=recovery,
        )
        self.service.meter()
        engine.archive_to(self._recovery_log)
        self._follow_tables()
        self.reads = ReadContext(self.service, snapshot, self._commits.is_held)
        catalog.on_change = self._on_catalog_change
        event_streams.on_change = self._worker.wake
        records.on_change = self._on_records_change

    @property
    def latest(self) -> LatestState:
        """The state after all writes decided so far, committed or not."""
        return self._commits

    def start(self, lead: Callable[[bool], None] = _ignore) -> None:
        """Start the background work, on the thread that will call `read` and `write`."""
        self._worker.start()
        lead(True)

    def read(
        self,
        handler: ReadHandler,
        permitted: PermittedRequest,
        cache_key: bytes = b"",
        cache: ResponseCache | None = None,
    ) -> bytes:
        """Read at once. Responses are not cached while the ledger is on: a hit would not be
        charged.
        """
        context = self.reads
        context.take_partition()
        context.refusals = permitted.refusals
        answer = handler(context, permitted.request)
        partition = context.take_partition()
        if cache is not None and partition is not None and not self.service.ledger.is_on:
            cache.put(cache_key, answer, partition)
        return answer

    def read_now(self, handler: ReadHandler, permitted: PermittedRequest) -> bytes:
        return handler(self.reads, permitted.request)

    def read_plainly(
        self, handler: PlainHandler, body: PermittedBytes, cache: ResponseCache | None
    ) -> bytes | None:
        """Answer a read from its undecoded body, or return None if it has to be decoded."""
        answer = handler(self.reads, body)
        if answer is not None and cache is not None:
            partition = self.reads.take_partition()
            assert partition is not None
            cache.put(body, answer, partition)
        return answer

    def clear_response_caches(self) -> None:
        for cache in self.response_caches.values():
            cache.clear()

    def _invalidate_responses(self, changes: Changes) -> None:
        for cache in self.response_caches.values():
            cache.invalidate(changes)

    def _on_catalog_change(self) -> None:
        self._apply_catalog()
        self._worker.wake()

    def _on_records_change(self) -> None:
        self._follow_tables()
        self._worker.wake()

    def _apply_catalog(self) -> None:
        """Adapt to a catalog that has changed."""
        self.clear_response_caches()
        self.service.meter()
        self._follow_tables()

    def follow_everything(self, is_on: bool) -> None:
        """Log all changes from the next commit on, for a backup of the whole database."""
        self._recovery_log.follow_everything(is_on)
        self._follow_tables()

    def _follow_tables(self) -> None:
        """Log the commits of tables with recovery on, and of tables that are being backed up."""
        work = self.service.recovery
        assert work is not None
        self._recovery_log.follow(followed_tables(work.catalog, work.records))
        is_following = self._recovery_log.is_following
        self._commits.archive = self._recovery_log if is_following else None

    def _in_background(self, run: Run, call_from_thread: CallSoon) -> Run:
        """A `run` that wakes the background work when the work that it started is done."""

        def start(work: Callable[[], Any]) -> Future[Any]:
            future = run(work)
            if not future.done():
                future.add_done_callback(lambda _: call_from_thread(self._worker.wake))
            return future

        return start

    def write(
        self,
        handler: WriteHandler,
        permitted: PermittedRequest,
        done: Callable[[bytes | DynamoDBError], None],
    ) -> None:
        def decide(write_batch: WriteBatch) -> bytes:
            context = WriteContext(self.service, write_batch, permitted.refusals)
            return handler(context, permitted.request)

        self._commits.write(decide, done)

    def get(self, key: bytes, done: Callable[[Any], None], *, is_latest: bool) -> None:
        done((self._commits if is_latest else self.reads.snapshot).get(key))

    def is_held(self, key: bytes) -> bool:
        return self._commits.is_held(key)

    def commit_draft(self, draft: ValueDraft, done: Callable[[Any], None]) -> None:
        try:
            if draft.is_read_only:
                done(draft.run_read(self.reads, OWN_REQUEST.request))
            else:
                self.write(draft.run_write, OWN_REQUEST, done)
        except (DynamoDBError, ConflictDetected) as error:
            done(error)

    def deferred(self, done: Callable[[Any], None]) -> Callable[[Any], None]:
        return done

    def close(self) -> None:
        self._worker.stop()
        self._commits.close()
        self._engine.close()


def _random_id() -> str:
    return str(uuid.uuid4())
