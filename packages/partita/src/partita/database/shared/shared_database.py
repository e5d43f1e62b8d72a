"""A database that several servers share: catalog, rounds and background work over PostgreSQL.

Requests are run in rounds, and may be run more than once: see `rounds/`. One of the servers leads,
and does the background work.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Any, Final

from psycopg import AsyncConnection

from partita.database.capacity.ledger import OFF
from partita.database.capacity.scaling.capacity_schedules import ScheduledChange
from partita.database.execution.database_interface import AnswerLater, Done
from partita.database.execution.optimistic.drafts import ValueDraft
from partita.database.execution.response_cache import ResponseCache
from partita.database.logs.change_log import change_log_layout as change_layout
from partita.database.logs.event_log.event_streams import EventStreams
from partita.database.operations.operation_context import (
    DatabaseService,
    PermittedRequest,
    ReadContext,
    ReadHandler,
    WriteContext,
    WriteHandler,
)
from partita.database.recovery.recovery_records import SharedRecoveryRecords
from partita.database.recovery.s3.object_buckets import ObjectBuckets
from partita.database.shared.capacity_usage import CapacityUsage
from partita.database.shared.client_sessions import PRIMARY, ClientSession
from partita.database.shared.leader_election import LeaderElection
from partita.database.shared.operation_plans import OTHER, PLANS
from partita.database.shared.read_replica import ReadReplica
from partita.database.shared.rounds.fetched_view import CurrentView
from partita.database.shared.rounds.key_prediction import predict_keys
from partita.database.shared.rounds.round_runner import RoundDependencies
from partita.database.shared.rounds.shared_requests import (
    RequestLedger,
    RequestThroughput,
    SharedRequest,
)
from partita.database.shared.rounds.write_rounds import Rounds
from partita.database.shared.shared_recovery import SharedRecovery
from partita.database.storage.postgresql import postgresql_schema
from partita.database.storage.postgresql.postgresql_pool import PostgresqlPool, host_towards
from partita.database.storage.postgresql.postgresql_schema import ARCHIVE_VERSION
from partita.database.storage.postgresql.trip_plans import FencingLease
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog, new_secret
from partita.database.upkeep.auto_scaling_job import AutoScalingJob
from partita.database.upkeep.background_worker import BackgroundWorker
from partita.database.upkeep.event_log_jobs import EventLogJobs
from partita.database.upkeep.kinesis_delivery import KinesisDelivery
from partita.database.upkeep.table_jobs import TableJobs
from partita.errors import UnknownOperationException
from partita.foundation.clock import Clock, Stopwatch, system_stopwatch

CONNECTIONS_MAX: Final = 8


class SharedDatabase:
    def __init__(
        self,
        connections: PostgresqlPool,
        instance: int,
        *,
        clock: Clock,
        stopwatch: Stopwatch = system_stopwatch,
        region: str = "us-east-1",
        account_id: str = "123456789012",
        transient_seconds: float = 0.0,
        capacity: str = OFF,
        schedules: Sequence[ScheduledChange] = (),
        is_lenient: bool = False,
        replica: ReadReplica | None = None,
        url: str = "",
        buckets: ObjectBuckets | None = None,
    ) -> None:
        """Use `open`, which also loads the catalog."""
        self._connections = connections
        self.replica = replica
        self.session: ClientSession | None = None
        """The session of the client whose request is being submitted, if there is a replica."""
        self.fence: FencingLease | None = None
        """The lease that the request being submitted depends on: that of a companion's server."""
        self.own_host = ""
        """The address of this machine, as the database sees it."""
        view = self._view = CurrentView()
        catalog, event_streams, records = (
            TableCatalog(view),
            EventStreams(view),
            SharedRecoveryRecords(view),
        )
        ledger = RequestLedger(clock, capacity)

        def reload() -> None:
            catalog.reload()
            event_streams.reload()
            records.reload()
            self.service.meter()
            self._follow_tables()

        dependencies = RoundDependencies(connections, view, ledger, clock, reload, replica)
        self._rounds = Rounds(dependencies, instance)
        self._usage = CapacityUsage(ledger, instance, clock)
        self.leadership = LeaderElection(connections, instance, self._refresh)
        now = self._rounds.clock
        scaling = AutoScalingJob(catalog, view, now, ledger, schedules)
        events = EventLogJobs(event_streams, view, now)
        destinations = KinesisDelivery(catalog, event_streams, view, region)
        other_jobs = [scaling.work, events.work, destinations.work]
        self._recovery = SharedRecovery(
            *(url, self.leadership, catalog, records, view),
            clock=clock,
            transient_seconds=transient_seconds,
            table_arn=lambda name: f"arn:aws:dynamodb:{region}:{account_id}:table/{name}",
            buckets=buckets or ObjectBuckets(),
            new_id=lambda: str(uuid.uuid4()),
        )
        jobs = TableJobs(catalog, view, now, stopwatch, other_jobs, self._recovery.is_kept)
        loop = asyncio.get_running_loop()
        commits = BackgroundCommits(self._rounds, self.leadership, jobs)
        self._worker = BackgroundWorker(jobs, commits, loop.call_soon, loop.call_later)
        self.service = DatabaseService(
            catalog,
            now,
            stopwatch,
            region,
            account_id,
            transient_seconds,
            ledger,
            event_streams,
            RequestThroughput(now, ledger),
            is_lenient=is_lenient,
            recovery=self._recovery.requests,
        )
        self.reads = ReadContext(self.service, view, self._rounds.is_held)
        catalog.on_change = self._on_catalog_change
        event_streams.on_change = self._worker.wake
        records.on_change = self._on_records_change

    @staticmethod
    async def open(url: str, reads: str | None = None, **more: Any) -> SharedDatabase:
        """Open the database at a URL; `reads` is the URL of a replica for eventually consistent
        reads.
        """
        connections = PostgresqlPool(url, CONNECTIONS_MAX)
        await connections.open()
        replica = None if reads is None else ReadReplica(reads, more["clock"])
        if replica is not None:
            await replica.connections.open()
        try:
            async with connections.one() as connection:
                await postgresql_schema.check(connection)
                await postgresql_schema.add_row(connection, table_layout.SECRET_KEY, new_secret())
                instance = await postgresql_schema.register(connection)
                own_host = host_towards(connection)
            database = SharedDatabase(connections, instance, replica=replica, url=url, **more)
            database.own_host = own_host
            await database._rounds.load_catalog()
        except BaseException:
            await connections.close()
            if replica is not None:
                await replica.connections.close()
            raise
        return database

    def start(self, lead: Callable[[bool], None]) -> None:
        self.leadership.on_change = lambda: lead(self.leadership.lease is not None)
        self.leadership.start()
        self._worker.start()
        self._recovery.start(self._rounds)

    async def close(self) -> None:
        self._worker.stop()
        await self._recovery.stop()
        await self._rounds.stop()
        await self.leadership.stop()
        await self._connections.close()
        if self.replica is not None:
            await self.replica.connections.close()

    def read(
        self,
        handler: ReadHandler,
        permitted: PermittedRequest,
        cache_key: bytes = b"",
        cache: ResponseCache | None = None,
    ) -> AnswerLater:
        return partial(self._submit_read, handler, permitted)

    def read_now(self, handler: ReadHandler, permitted: PermittedRequest) -> bytes:
        self._view.current.begin_run()
        return self._run_read(handler, permitted)

    def write(self, handler: WriteHandler, permitted: PermittedRequest, done: Done) -> None:
        version = self.service.catalog.version

        def decide(write_batch: WriteBatch) -> bytes:
            current = self._renewed(permitted, version)
            context = WriteContext(self.service, write_batch, current.refusals)
            return handler(context, current.request)

        plan = PLANS.get(handler, OTHER)
        if plan.needs_archive and not self.has_archive:
            done(UnknownOperationException())
            return
        keys = predict_keys(self.service.catalog, plan.targets, permitted.request, is_write=True)
        self._submit(decide, done, keys)

    def get(self, key: bytes, done: Done, *, is_latest: bool) -> None:
        if key.startswith(change_layout.SEQUENCES):
            # The commit numbers log entries; drafts count from zero.
            done(None)
            return

        def read() -> tuple[bytes | None]:
            return (self._view.get(key),)

        def unpack(outcome: Any) -> None:
            done(outcome if isinstance(outcome, BaseException) else outcome[0])

        self._rounds.submit(
            SharedRequest(self._rounds.clock(), unpack, read, predicted_keys=frozenset((key,)))
        )

    def is_held(self, key: bytes) -> bool:
        # Conflicts with transactions, here and on other servers, are found by the versions of rows.
        return False

    def commit_draft(self, draft: ValueDraft, done: Done) -> None:
        keys = draft.checks.keys() | draft.figures.keys()
        if not draft.is_read_only:

            def decide(write_batch: WriteBatch) -> bytes:
                return draft.run_write(WriteContext(self.service, write_batch), {})

            self._submit(decide, done, keys)
            return

        def confirm() -> bytes:
            return draft.run_read(self.reads, {})

        self._rounds.submit(SharedRequest(self._rounds.clock(), done, confirm, predicted_keys=keys))

    def deferred(self, done: Done) -> Done | None:
        # The fence of a request is only known while it is being submitted.
        return None if self.fence is not None else self._noted(done)

    def _renewed(self, permitted: PermittedRequest, version: int) -> PermittedRequest:
        """Authorizes a request again if another server has changed the catalog since: a table may
        be new, or may have another policy."""
        if permitted.again is None or self.service.catalog.version == version:
            return permitted
        return permitted.again()

    def _run_read(self, handler: ReadHandler, permitted: PermittedRequest) -> bytes:
        self.reads.refusals = permitted.refusals
        return handler(self.reads, permitted.request)

    def _submit_read(self, handler: ReadHandler, permitted: PermittedRequest, done: Done) -> None:
        version = self.service.catalog.version

        def read() -> bytes:
            return self._run_read(handler, self._renewed(permitted, version))

        plan = PLANS.get(handler, OTHER)
        if plan.needs_archive and not self.has_archive:
            done(UnknownOperationException())
            return
        sent = permitted.request
        request = SharedRequest(
            *(self._rounds.clock(), done, read),
            predicted_keys=predict_keys(self.service.catalog, plan.targets, sent, is_write=False),
            is_transaction=plan.is_transaction,
            session=self.session if plan.may_be_old(sent) else None,
        )
        request.done = self._noted(done, request)
        self._rounds.submit(request)

    def _submit(self, decide: Callable[[WriteBatch], bytes], done: Done, keys: Set[bytes]) -> None:
        now, done = self._rounds.clock(), self._noted(done)
        self._rounds.submit(
            SharedRequest(now, done, write=decide, predicted_keys=keys, fence=self.fence)
        )

    def _noted(self, done: Done, request: SharedRequest | None = None) -> Done:
        """Notes the time of an answer from the primary in the client's session, so that the client
        does not read from a replica that is behind it."""
        session, replica = self.session, self.replica
        if session is None or replica is None:
            return done

        def note(result: Any) -> None:
            if request is None or not request.is_old:
                session.note(PRIMARY, replica.primary_time())
            done(result)

        return note

    async def _refresh(self, connection: AsyncConnection[Any]) -> None:
        await self._rounds.refresh_catalog(connection)
        await self._usage.exchange(connection)

    @property
    def has_archive(self) -> bool:
        """True if the schema has the tables for recovery; an older schema does not."""
        return self._rounds.schema_version >= ARCHIVE_VERSION

    def _on_catalog_change(self) -> None:
        self.service.meter()
        self._follow_tables()
        self._worker.wake()

    def _on_records_change(self) -> None:
        self._follow_tables()
        self._worker.wake()

    def _follow_tables(self) -> None:
        self._rounds.followed = self._recovery.followed()
        self._recovery.wake()


class BackgroundCommits:
    """Commits of background work: they count only while this server leads."""

    def __init__(self, rounds: Rounds, leadership: LeaderElection, jobs: TableJobs) -> None:
        self._rounds = rounds
        self._leadership = leadership
        self._jobs = jobs

    def write(self, decide: Callable[[WriteBatch], Any], done: Done) -> None:
        self._rounds.forget_figures()
        lease = self._leadership.lease
        if lease is None:
            self._jobs.restart()
            done(False)
            return
        self._rounds.submit(SharedRequest(self._rounds.clock(), done, write=decide, lease=lease))
