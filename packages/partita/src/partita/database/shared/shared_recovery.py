"""Recovery over PostgreSQL: bases, backups, restores, exports and imports (docs/adr/0009).

A thread of the leader does the work that is a background job of an embedded database. A step reads
and decides on that thread; its commit, on the event loop, checks what it has read. Commits of all
servers write their changes in followed tables, with a stamp, into `partita_recovery`; from there
the leader moves them into the archive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import Connection

from partita.database.recovery.recovery_bases import followed_tables
from partita.database.recovery.recovery_context import RecoveryContext, run_at_once
from partita.database.recovery.recovery_records import (
    IN_PROGRESS,
    BackupRecord,
    ExportRecord,
    RecoveryBase,
    RecoveryRecords,
)
from partita.database.recovery.s3.object_buckets import ObjectBuckets
from partita.database.shared.leader_election import LeaderElection
from partita.database.shared.live_view import LiveView
from partita.database.shared.rounds.fetched_view import CATALOG_SPACES, COUNTED, FetchedView
from partita.database.shared.rounds.round_drafts import RoundDraft, RoundState
from partita.database.shared.rounds.write_rounds import Rounds
from partita.database.storage.postgresql.optimistic_commit import PROMISE_STAMPS, stamp_row
from partita.database.storage.postgresql.postgresql_archive import PostgresqlArchive
from partita.database.storage.postgresql.postgresql_pool import SESSION, failure
from partita.database.storage.postgresql.postgresql_schema import ARCHIVE_VERSION
from partita.database.storage.postgresql.trip_plans import FencingLease
from partita.database.storage.recovery_log import (
    MICROSECONDS,
    STAMP_KEY,
    RecoveryLog,
    commits_of,
    new_log_file,
    pack_blocks,
)
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.upkeep.recovery_jobs import RecoveryJobs
from partita.errors import StorageError
from partita.foundation.clock import Clock, system_stopwatch

logger = logging.getLogger(__name__)

IDLE_SECONDS: Final = 1.0
MOVED_ROWS_MAX: Final = 5000
"""How many rows one transaction moves into the archive; a commit of requests is never divided."""
PENDING_ROWS_MAX: Final = 2000
PENDING_SECONDS_MAX: Final = 3600.0
"""Rows are moved when there are more than `PENDING_ROWS_MAX`, or some are older than this."""
LOOK_SECONDS: Final = 10.0

_MOMENT: Final = """
    SELECT greatest(%s, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
        (SELECT max(last) FROM partita_sequences WHERE key = ANY(%b::bytea[])))"""
_KEYS: Final = "SELECT DISTINCT key FROM partita_recovery"
_BOUND: Final = """
    SELECT stamp FROM partita_recovery WHERE key = %b ORDER BY stamp LIMIT 1 OFFSET %s"""
_TAKE: Final = """
    DELETE FROM partita_recovery WHERE key = %b AND stamp < %s RETURNING stamp, place, value"""
_DROP: Final = "DELETE FROM partita_recovery WHERE key = %b"
_PENDING: Final = """
    SELECT (SELECT count(*) FROM (SELECT 1 FROM partita_recovery LIMIT %s) AS n),
        (SELECT min(stamp) FROM partita_recovery)"""
_NO_BOUND: Final = (1 << 63) - 1


class RecoveryDecision(NamedTuple):
    """The result of one step on the thread."""

    found_work: bool
    draft: RoundDraft
    write_batch: WriteBatch
    catalog_version: int


class SharedRecoveryLog(RecoveryLog):
    """The recovery log of a shared database, as tasks use it."""

    def __init__(self, archive: PostgresqlArchive, clock: Clock, flush: Callable[[], None]) -> None:
        super().__init__(archive, clock, FetchedView())
        self._clock = clock
        self.flush = flush  # type: ignore[method-assign]

    def latest(self) -> int:
        """Returns the present. `flush`, which precedes every read of the log, lets later commits
        get higher stamps."""
        return int(self._clock() * MICROSECONDS)


class SharedRecovery:
    """The recovery of a shared database. Requests use the context `requests`; everything else
    happens on the thread."""

    def __init__(
        self,
        url: str,
        leadership: LeaderElection,
        catalog: TableCatalog,
        records: RecoveryRecords,
        view: Any,
        *,
        clock: Clock,
        transient_seconds: float,
        table_arn: Callable[[str], str],
        buckets: ObjectBuckets,
        new_id: Callable[[], str],
    ) -> None:
        self._url = url
        self._leadership = leadership
        self._connected: Connection[Any] | None = None
        self._view = LiveView(self._connection, self._moment)
        archive = PostgresqlArchive(self._connection, lambda: leadership.lease)
        log = SharedRecoveryLog(archive, clock, self._flush)
        own_catalog, own_records = TableCatalog(self._view), RecoveryRecords(self._view)
        rest = (clock, run_at_once, transient_seconds, table_arn, buckets)
        self._clock = clock
        self._work = RecoveryContext(own_catalog, own_records, self._view, archive, log, *rest)
        self._jobs = RecoveryJobs(self._work, new_id)
        self.requests = RecoveryContext(catalog, records, view, archive, log, *rest)
        self.is_kept = RecoveryJobs(self.requests, new_id).is_kept
        self._looked_at = 0.0
        self._led_under: FencingLease | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="partita-recovery")
        self._woken = asyncio.Event()
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None

    def followed(self) -> Mapping[bytes, str]:
        """The followed tables: table ids by the prefix of their items."""
        return followed_tables(self.requests.catalog, self.requests.records)

    def start(self, rounds: Rounds) -> None:
        self._task = asyncio.create_task(self._keep(rounds))

    def wake(self) -> None:
        self._woken.set()

    async def stop(self) -> None:
        self._is_stopping = True
        self.wake()
        if self._task is not None:
            await self._task
        self._thread.shutdown()
        self._disconnect()

    # On the event loop

    async def _keep(self, rounds: Rounds) -> None:
        while not self._is_stopping:
            self._woken.clear()
            found_work = False
            lease = self._leadership.lease
            if lease != self._led_under:
                # Another server may have led in between. The version of the catalog does not show
                # everything that it has done, such as progress.
                self._led_under = lease
                self._restart()
            if lease is not None and rounds.schema_version >= ARCHIVE_VERSION:
                try:
                    found_work = await self._step(rounds)
                except StorageError:
                    # The connections of requests have the same problem, and log it.
                    self._restart()
                except Exception:
                    logger.exception("Background work on backups failed.")
                    self._restart()
            if not found_work:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), IDLE_SECONDS)

    async def _step(self, rounds: Rounds) -> bool:
        loop = asyncio.get_running_loop()
        lease = self._leadership.lease
        decision = await loop.run_in_executor(self._thread, self._decide)
        if decision.draft.changes:
            draft = decision.draft
            version = await rounds.commit_background(draft, decision.catalog_version, lease)
            if not version:
                self._jobs.restart()
                self._view.forget_catalog()
                return True
            if draft.only_shows_progress:
                self._view.note_progress(draft.changes, version)
            for callback in decision.write_batch.callbacks:
                callback()
        return decision.found_work

    def _restart(self) -> None:
        self._jobs.restart()
        self._view.forget_catalog()
        self._disconnect()

    # On the thread

    def _decide(self) -> RecoveryDecision:
        try:
            self._refresh()
            self._flush_when_due()
            state = RoundState(self._clock, self._view, reads_sequences=True)
            write_batch = state.begin(frozenset())
            found_work = self._jobs.work(write_batch)
            draft = state.end(write_batch)
            for key in draft.changes:
                if key.startswith(COUNTED) and key not in draft.figures:
                    # A table that is being loaded has absolute counts instead of differences.
                    draft.figures[key] = self._view.figure(key)
                if key.startswith(CATALOG_SPACES):
                    draft.checks[key] = self._view.catalog_row_version(key)
            self._view.forget()
        except psycopg.Error as error:
            raise failure(self._url, error) from error
        return RecoveryDecision(found_work, draft, write_batch, self._view.catalog_version)

    def _refresh(self) -> None:
        if not self._view.refresh_catalog():
            return
        before = self._manifests()
        self._work.catalog.reload()
        self._work.records.reload()
        self._work.records.removals += not before <= self._manifests()

    def _manifests(self) -> set[str]:
        records = self._work.records
        backups = {backup.manifest for backup in records.of(BackupRecord)}
        return backups | {base.manifest for base in records.of(RecoveryBase)}

    def _connection(self) -> Connection[Any]:
        if self._connected is None or self._connected.closed:
            self._connected = psycopg.connect(self._url, **SESSION)
        return self._connected

    def _disconnect(self) -> None:
        if self._connected is not None:
            self._connected.close()

    # Stamps and the log

    def _moment(self, at_least: int = 0) -> int:
        """Returns a stamp such that all commits with it or a lower one are visible: no later commit
        gets such a stamp."""
        followed = followed_tables(self._work.catalog, self._work.records)
        rows = [stamp_row(prefix) for prefix in followed]
        connection = self._connection()
        row = connection.execute(_MOMENT, [at_least, rows], binary=True).fetchone()
        assert row is not None
        moment: int = row[0]
        connection.execute(PROMISE_STAMPS, [moment, rows], binary=True)
        return moment

    def _flush(self) -> None:
        """Moves the rows of followed tables into the archive, up to every moment that an export or
        restore needs.

        The followed tables are read after the rows, so that the table of each row is known.
        """
        needed = [
            *(
                export.until
                for export in self._work.records.of(ExportRecord)
                if export.status == IN_PROGRESS
            ),
            *(table.origin.stamp or 0 for table in self._work.catalog if table.origin),
        ]
        self._moment(max(needed, default=0))
        keys = [bytes(key) for (key,) in self._connection().execute(_KEYS, binary=True)]
        self._refresh()
        followed = followed_tables(self._work.catalog, self._work.records)
        for key in keys:
            table_id = followed.get(key[len(STAMP_KEY) :])
            if table_id is None:
                self._connection().execute(_DROP, [key])
            else:
                while self._move(key, table_id):
                    pass

    def _move(self, key: bytes, table_id: str) -> bool:
        """Moves some commits of a table; returns True if there are more."""
        connection = self._connection()
        with connection.transaction():
            first, last = (
                connection.execute(_BOUND, [key, offset]).fetchone()
                for offset in (0, MOVED_ROWS_MAX)
            )
            if first is None:
                return False
            bound = _NO_BOUND if last is None else max(last[0], first[0] + 1)
            commits = commits_of(connection.execute(_TAKE, [key, bound], binary=True))
            if commits:
                name = new_log_file(table_id, commits[0][0])
                self._work.archive.append(name, b"".join(pack_blocks(commits)))
        return last is not None

    def _flush_when_due(self) -> None:
        now = system_stopwatch()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        row = self._connection().execute(_PENDING, [PENDING_ROWS_MAX]).fetchone()
        rows, oldest = (0, None) if row is None else row
        if oldest is None:
            return
        age = self._clock() - oldest / MICROSECONDS
        if rows == PENDING_ROWS_MAX or age > PENDING_SECONDS_MAX:
            self._flush()
