"""Rounds: requests that wait are run together, over what all of them ask for.

Reads and writes have rounds of their own, a few at a time. What changes the catalog is decided
under an exclusive lock, alone. All of it happens on one thread; only PostgreSQL is waited for.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Container, Iterable, Set
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from partita.clock import Clock
from partita.database.events import layout as event_layout
from partita.database.recovery import layout as recovery_layout
from partita.database.shared.drafts import Draft, RoundState, add_draft, overtaken
from partita.database.shared.hot_keys import HotKeys
from partita.database.shared.known import CurrentView, Known, bucket_of
from partita.database.shared.lanes import Lane
from partita.database.shared.replica import LAG_SECONDS_MAX, Replica
from partita.database.shared.requests import RequestLedger, SharedRequest
from partita.database.storage.engine import prefix_end
from partita.database.storage.postgresql.commit import (
    BEGIN_LOCKED,
    CatalogMoved,
    CommitPlan,
    Lease,
    LeaseLost,
    OutcomeUnknown,
    Overtaken,
    check_and_change,
    commit,
    finish,
    is_committed,
    roll_back,
)
from partita.database.storage.postgresql.connections import Connections
from partita.database.storage.postgresql.fetch import Wanted, fetch
from partita.database.storage.postgresql.heartbeat import STALE_SECONDS, beat
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import layout
from partita.database.tables.stored import NO_LIMIT, decoding_budget
from partita.errors import (
    InternalServerError,
    RequestError,
    StorageError,
    ThrottlingException,
    TransactionInProgressException,
)

logger = logging.getLogger(__name__)

READ_ROUNDS_MAX: Final = 3
WRITE_ROUNDS_MAX: Final = 3
LOCKS_MAX: Final = 200
"""Rows that a round locks one by one."""
WAITING_MAX: Final = 10_000
"""Requests beyond are throttled."""
ATTEMPT_SECONDS_MAX: Final = 5.0
"""For how long a write that is overtaken is decided again."""
TRANSACTION_SECONDS_MAX: Final = 0.5
"""The same for a transaction; then it conflicts."""
OUTCOME_SECONDS_MAX: Final = 30.0
"""For how long the database is asked what became of a commit."""
LAST_OUTCOME_SECONDS_MAX: Final = 3.0
"""The same while the server stops."""
INSTANCE_BITS: Final = 40
LOCK_CATALOG: Final = "SELECT version FROM partita_catalog WHERE id = 1 FOR UPDATE"
UNKNOWN_VERSION: Final = 0
NOTHING: Final = Wanted((), (), (), ())
NOT_COMMITTED: Final = (
    *(CatalogMoved, LeaseLost, Overtaken),
    *(psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure),
)
"""What a commit may raise that only has to be decided again."""
CATALOG_PREFIXES: Final = (layout.CATALOG, event_layout.STREAMS, recovery_layout.RECORDS)
BUSY: Final = "Too many requests at once: try again in a moment."
IN_PROGRESS: Final = "The transaction with the given request token is already in progress."
ANOTHER_LEADS: Final = "Another server leads: this is left to it."
OVERTAKEN: Final = "The item is written too often at once: try again in a moment."


class Decided(NamedTuple):
    """The outcome of a run that lacked nothing."""

    request: SharedRequest
    outcome: Any
    draft: Draft
    write_batch: WriteBatch | None
    """None when the write was refused."""


class Rounds:
    def __init__(
        self,
        connections: Connections,
        view: CurrentView,
        ledger: RequestLedger,
        instance: int,
        clock: Clock,
        reload_catalog: Callable[[], None],
        replica: Replica | None = None,
    ) -> None:
        self._connections = connections
        self._view = view
        self._ledger = ledger
        self._clock = clock
        self._reload_catalog = reload_catalog
        self._instance = instance
        self._replica = replica
        self._last_token = 0
        self._reads = Lane(READ_ROUNDS_MAX, self._read_round)
        self._replica_reads = Lane(READ_ROUNDS_MAX, self._replica_read_round)
        self._transaction_reads = Lane(1, self._transaction_read_round)
        self._writes = Lane(WRITE_ROUNDS_MAX, self._write_round)
        self._hot_writes = Lane(1, self._hot_round)
        self._exclusive = Lane(1, self._exclusive_round, requests_max=1)
        self._lanes = (
            *(self._replica_reads, self._reads, self._transaction_reads),
            *(self._writes, self._hot_writes, self._exclusive),
        )
        self._hot = HotKeys()
        self._committing: set[bytes] = set()
        """What rounds of this server are committing now."""
        self._deferred: list[SharedRequest] = []
        """Requests that need some of it."""
        self._figures: dict[bytes, bytes] = {}
        """Counts as they were a moment ago: for writes, which only move them."""
        self._now: float | None = None
        self._held: Set[bytes] = frozenset()
        self._is_stopping = False
        self.catalog_version = 0
        self.schema_version = 0
        self.followed: Container[bytes] = frozenset()
        """Prefixes of items whose changes are kept for recovery."""
        ledger.is_lacking = lambda: self._view.known.is_lacking

    def clock(self) -> float:
        """The time of the request that is being run, or else now."""
        return self._clock() if self._now is None else self._now

    def is_held(self, key: bytes) -> bool:
        """Whether the transaction that is being run has waited too long for who writes an item."""
        return key in self._held

    def submit(self, request: SharedRequest) -> None:
        lane = self._lane(request)
        if len(lane.waiting) >= WAITING_MAX:
            request.done(ThrottlingException(BUSY))
        else:
            lane.add([request])

    def _lane(self, request: SharedRequest) -> Lane:
        if request.write is not None:
            return self._writes
        if request.is_transaction:
            return self._transaction_reads
        if request.session is not None and self._replica is not None:
            is_current = self._replica.lag_seconds <= LAG_SECONDS_MAX
            return self._replica_reads if is_current else self._reads
        return self._reads

    def forget_figures(self) -> None:
        self._figures = {}

    async def stop(self) -> None:
        """Let what is under way come to its end."""
        self._is_stopping = True
        for lane in self._lanes:
            await lane.stop()

    async def load_catalog(self) -> None:
        async with self._connections.one() as connection:
            await self._load_catalog(connection)

    # Reads

    async def _read_round(self, requests: list[SharedRequest]) -> None:
        async with self._connections.one() as connection:
            known = Known()
            is_checked = await self._fetch_foreseen(connection, known, requests)
            while requests:
                version = self.catalog_version
                outcomes = [self._run(one, known, one.read) for one in requests]
                if not is_checked or any(outcome is None for outcome in outcomes):
                    is_checked = True
                    if not await self._fetch(connection, known, version):
                        continue
                for request, outcome in zip(list(requests), outcomes, strict=True):
                    if outcome is not None:
                        requests.remove(request)
                        request.done(outcome)

    async def _replica_read_round(self, requests: list[SharedRequest]) -> None:
        """Whom the replica cannot answer, the primary does."""
        replica = self._replica
        assert replica is not None
        try:
            async with replica.connections.one() as connection:
                source = await replica.identity(connection)
                await self._read_replica(replica, source, connection, requests)
        except StorageError:
            replica.lag_seconds = math.inf
        replica.reads["primary"] += len(requests)
        self._reads.add(requests[:])
        requests.clear()

    async def _read_replica(
        self,
        replica: Replica,
        source: str,
        connection: AsyncConnection[Any],
        requests: list[SharedRequest],
    ) -> None:
        """Answer those who may be answered; the others are left."""
        known, asked = Known(), list(requests)
        for request in asked:
            known.foresee(request.foreseen)
        while asked:
            wanted, parts = known.take_wanted()
            fetched = await fetch(connection, wanted, bucket_of)
            known.add(wanted, parts, fetched)
            replica.note(fetched)
            if fetched.catalog_version != self.catalog_version:
                return
            for request in list(asked):
                session = request.session
                assert session is not None
                if not session.accepts(source, fetched.beat_at):
                    asked.remove(request)
                    continue
                outcome = self._run(request, known, request.read)
                if outcome is not None:
                    asked.remove(request)
                    requests.remove(request)
                    request.is_old = True
                    session.note(source, fetched.beat_at)
                    replica.reads["replica"] += 1
                    request.done(outcome)

    async def _transaction_read_round(self, requests: list[SharedRequest]) -> None:
        """Fetch twice: what has the same versions both times was there at one moment between.

        On one node a single statement would do. Over several there is no snapshot of all.
        """
        async with self._connections.one() as connection:
            known = Known()
            await self._fetch_foreseen(connection, known, requests)
            while requests:
                outcomes = await self._read_over(connection, requests, known)
                version, latest = self.catalog_version, Known()
                latest.foresee(known.keys())
                if not await self._fetch(connection, latest, version):
                    known = latest
                    continue
                for request, outcome in zip(list(requests), outcomes, strict=True):
                    keys = request.foreseen or known.keys()
                    changed = {key for key in keys if known.version(key) != latest.version(key)}
                    if not changed or request.held:
                        requests.remove(request)
                        request.done(outcome)
                    elif self._clock() - request.now > TRANSACTION_SECONDS_MAX:
                        request.held = changed
                known = latest

    async def _read_over(
        self, connection: AsyncConnection[Any], requests: list[SharedRequest], known: Known
    ) -> list[Any]:
        """The outcomes of reads, when all that they lack has been fetched."""
        while True:
            outcomes = [self._run(one, known, one.read) for one in requests]
            if all(outcome is not None for outcome in outcomes):
                return outcomes
            await self._fetch(connection, known, self.catalog_version)

    async def _fetch_foreseen(
        self, connection: AsyncConnection[Any], known: Known, requests: Iterable[SharedRequest]
    ) -> bool:
        """Fetch what requests are known to need before they are run; whether anything was fetched
        since they came, with the catalog that they will be run with."""
        for request in requests:
            known.foresee(request.foreseen)
        return known.is_wanting and await self._fetch(connection, known, self.catalog_version)

    def _run(self, request: SharedRequest, known: Known, function: Callable[[], Any] | None) -> Any:
        """The outcome of a function, or None when it lacks something."""
        assert function is not None
        known.begin_run()
        before, self._view.known = self._view.known, known
        self._now, self._held = request.now, request.held
        self._ledger.begin(request)
        decoding_budget.bytes_left = NO_LIMIT
        outcome: Any
        try:
            outcome = function()
        except RequestError as error:
            outcome = error.with_traceback(None)
            outcome.__context__ = None
        except Exception as error:
            # What lacks a value may stumble over it.
            outcome = error
        finally:
            self._now, self._held = None, frozenset()
            self._ledger.end()
            self._view.known = before
        return None if known.is_lacking else outcome

    async def _fetch(self, connection: AsyncConnection[Any], known: Known, version: int) -> bool:
        """Fetch what is lacking; whether the catalog still is that of a version."""
        wanted, parts = known.take_wanted()
        asked_at = self._clock()
        fetched = await fetch(connection, wanted, bucket_of)
        known.add(wanted, parts, fetched)
        self.schema_version = fetched.schema_version
        if self._replica is not None:
            self._replica.note_primary(fetched, asked_at)
        if fetched.beat_age_seconds > STALE_SECONDS and _is_idle(connection):
            await beat(connection)
        if fetched.catalog_version != self.catalog_version:
            await self._load_catalog(connection)
        return fetched.catalog_version == version

    async def refresh_catalog(self, connection: AsyncConnection[Any]) -> None:
        """For what looks at the catalog before any request does: rights, and pages."""
        await self._fetch(connection, Known(), self.catalog_version)
        if self._replica is not None:
            await self._refresh_replica(self._replica)

    async def _refresh_replica(self, replica: Replica) -> None:
        """How far behind it is, for those who look at it and for those who would ask it."""
        try:
            async with replica.connections.one() as connection:
                replica.note(await fetch(connection, NOTHING, bucket_of))
        except StorageError:
            replica.lag_seconds = math.inf

    async def _load_catalog(self, connection: AsyncConnection[Any]) -> None:
        """Read the catalog into memory, all at once when everything of it is there."""
        known, version = Known(), 0
        while True:
            known.begin_run()
            for prefix in CATALOG_PREFIXES:
                for _ in known.range(prefix, prefix_end(prefix)):
                    pass
            if not known.is_lacking:
                break
            wanted, parts = known.take_wanted()
            fetched = await fetch(connection, wanted, bucket_of)
            known.add(wanted, parts, fetched)
            if version != fetched.catalog_version:
                # It may have changed while it was read: from the beginning.
                known, version = Known(), fetched.catalog_version
        before, self._view.known = self._view.known, known
        try:
            self._reload_catalog()
        finally:
            self._view.known = before
        self.catalog_version = version

    # Writes

    async def _write_round(self, requests: list[SharedRequest]) -> None:
        self._divert_hot(requests)
        if not requests:
            return
        async with self._connections.one() as connection:
            version, decided = await self._decide(connection, requests)
            ready = self._sort_out(requests, decided)
            while ready:
                ready = await self._commit(connection, requests, version, ready)

    def _divert_hot(self, requests: list[SharedRequest]) -> None:
        hot = [one for one in requests if one.is_free and self._hot.meets(one.foreseen)]
        for request in hot:
            requests.remove(request)
        self._hot_writes.add(hot)

    async def _hot_round(self, requests: list[SharedRequest]) -> None:
        """Lock what is needed first, in one order for all servers; then decide, and commit."""
        async with self._connections.one() as connection:
            known = Known(self._figures)
            for request in requests:
                known.foresee(request.foreseen)
            wanted, parts = known.take_wanted()
            locked = sorted(wanted.keys)[:LOCKS_MAX]
            try:
                fetched = await fetch(connection, wanted, bucket_of, BEGIN_LOCKED, locked)
                known.add(wanted, parts, fetched)
                if fetched.catalog_version != self.catalog_version:
                    await self._load_catalog(connection)
                # Who has come while the locks were waited for is decided with the others.
                keys = frozenset(locked)
                requests += self._hot_writes.take(lambda one: one.foreseen <= keys)
                version, decided = await self._decide_over(
                    connection, requests, known, is_checked=True
                )
                ready = self._sort_out(requests, decided)
                if not ready:
                    await roll_back(connection)
            except psycopg.Error:
                await roll_back(connection)
                raise
            begins = False
            while ready:
                ready = await self._commit(connection, requests, version, ready, begins=begins)
                begins = True

    async def _decide(
        self, connection: AsyncConnection[Any], requests: list[SharedRequest]
    ) -> tuple[int, list[Decided]]:
        """Run all writes, each over those before it, until none lacks anything.

        Returns the version of the catalog too that they were decided with.
        """
        known = Known(self._figures)
        is_checked = await self._fetch_foreseen(connection, known, requests)
        return await self._decide_over(connection, requests, known, is_checked=is_checked)

    async def _decide_over(
        self,
        connection: AsyncConnection[Any],
        requests: list[SharedRequest],
        known: Known,
        *,
        is_checked: bool,
    ) -> tuple[int, list[Decided]]:
        while True:
            reads_sequences = any(request.lease is not None for request in requests)
            state = RoundState(self.clock, known, reads_sequences=reads_sequences)
            version = self.catalog_version
            ran = [self._run_write(request, known, state) for request in requests]
            decided = [one for one in ran if one is not None]
            is_complete = len(decided) == len(requests)
            if is_complete and is_checked:
                return version, decided
            is_same = await self._fetch(connection, known, version)
            if is_complete and is_same:
                return version, decided
            is_checked = True

    def _run_write(self, request: SharedRequest, known: Known, state: RoundState) -> Decided | None:
        write = request.write
        assert write is not None
        write_batch = state.begin(request.held)

        outcome = self._run(request, known, lambda: write(write_batch))
        if known.is_lacking:
            state.end(None)
            return None
        if isinstance(outcome, Exception):
            return Decided(request, outcome, state.end(None), None)
        return Decided(request, outcome, state.end(write_batch), write_batch)

    def _sort_out(self, requests: list[SharedRequest], decided: list[Decided]) -> list[Decided]:
        """Those to be committed now; the others are answered, or wait for their turn elsewhere."""
        elsewhere: set[Draft] = set()
        ready: list[Decided] = []
        for one in decided:
            draft = one.draft
            if draft.changes_catalog:
                self._exclusive.add([one.request])
            elif draft.touches(self._committing) or not elsewhere.isdisjoint(draft.rests_on):
                self._defer(one.request)
            elif not draft.changes and not draft.rests_on:
                self._answer(one)
            else:
                ready.append(one)
                continue
            requests.remove(one.request)
            if draft.changes or draft.rests_on:
                elsewhere.add(draft)
        return ready

    async def _commit(
        self,
        connection: AsyncConnection[Any],
        requests: list[SharedRequest],
        version: int,
        ready: list[Decided],
        *,
        begins: bool = True,
    ) -> list[Decided]:
        """Commit drafts in one transaction; those that are to be committed without the others."""
        plan = self._plan(version, ready)
        keys = {*plan.checks, *plan.changes}
        self._committing |= keys
        lost: Iterable[Decided] = ready
        changed: Set[bytes] = frozenset()
        remaining: list[Decided] = []
        try:
            await commit(connection, plan, bucket_of, begins=begins)
            self._connections.availability.recover()
            lost = ()
        except Overtaken as error:
            changed = error.keys
            self._hot.add(changed)
            gone = overtaken([one.draft for one in ready], error.keys)
            lost = [one for one in ready if one.draft in gone]
            remaining = [one for one in ready if one.draft not in gone]
        except CatalogMoved:
            await self._load_catalog(connection)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
            pass
        except LeaseLost:
            for one in ready:
                requests.remove(one.request)
                one.request.done(_refusal(one.request))
            ready = []
            lost = ()
        except OutcomeUnknown:
            if await self._is_committed(plan.token):
                lost = ()
        finally:
            self._committing -= keys
            deferred, self._deferred = self._deferred, []
            self._writes.add(deferred)
        for one in lost:
            requests.remove(one.request)
            self._try_again(one, changed)
        again = {id(one) for one in (*lost, *remaining)}
        for one in ready:
            if id(one) not in again:
                requests.remove(one.request)
                self._answer(one)
        return remaining

    def _defer(self, request: SharedRequest) -> None:
        """Until a commit under way has come to its end."""
        if self._committing:
            self._deferred.append(request)
        else:
            self._writes.add([request])

    def _try_again(self, one: Decided, changed: Set[bytes]) -> None:
        request = one.request
        seconds = self._clock() - request.now
        if request.lease is not None:
            request.done(_refusal(request))
        elif any(key.startswith(layout.TOKENS) and key in one.draft.checks for key in changed):
            request.done(TransactionInProgressException(IN_PROGRESS))
        elif seconds > ATTEMPT_SECONDS_MAX:
            request.done(ThrottlingException(OVERTAKEN))
        else:
            is_transaction = one.write_batch is not None and one.write_batch.holds
            if is_transaction and seconds > TRANSACTION_SECONDS_MAX:
                request.held = changed
            self._writes.add([request])

    def _answer(self, one: Decided) -> None:
        if one.write_batch is not None:
            for callback in one.write_batch.callbacks:
                callback()
        one.request.done(one.outcome)

    def _plan(self, version: int, ready: list[Decided]) -> CommitPlan:
        plan = CommitPlan(self._next_token(), version)
        for one in ready:
            add_draft(plan, one.draft, self.followed)
            plan.lease = plan.lease or one.request.lease or one.request.fence
        return plan

    def _next_token(self) -> int:
        """No other commit has it, of this server or another."""
        self._last_token += 1
        return self._instance << INSTANCE_BITS | self._last_token

    async def _is_committed(self, token: int) -> bool:
        """Ask until there is an answer: a guess could lose a write, or do it twice."""
        started = self._clock()
        while True:
            try:
                async with self._connections.one() as connection:
                    return await is_committed(connection, token)
            except (StorageError, OutcomeUnknown):
                limit = LAST_OUTCOME_SECONDS_MAX if self._is_stopping else OUTCOME_SECONDS_MAX
                if self._clock() - started > limit:
                    raise
                await asyncio.sleep(0.2)

    # What changes the catalog

    async def _exclusive_round(self, requests: list[SharedRequest]) -> None:
        (request,) = requests
        async with self._connections.one() as connection:
            await connection.execute("BEGIN")
            try:
                cursor = await connection.execute(LOCK_CATALOG)
                row = await cursor.fetchone()
                assert row is not None
                version: int = row[0]
                if version != self.catalog_version:
                    await self._load_catalog(connection)
                one = await self._decide_alone(connection, request)
                if one.draft.changes:
                    await self._commit_alone(connection, version, one)
                else:
                    await connection.execute("ROLLBACK")
            except LeaseLost:
                await connection.execute("ROLLBACK")
                requests.clear()
                request.done(_refusal(request))
                return
            except BaseException:
                if not (connection.closed or connection.broken):
                    await connection.execute("ROLLBACK")
                raise
            requests.clear()
            self._answer(one)
            if one.draft.changes:
                # Another round may have read it meanwhile: then it is read once more.
                is_next = self.catalog_version == version
                self.catalog_version = version + 1 if is_next else UNKNOWN_VERSION

    async def _decide_alone(
        self, connection: AsyncConnection[Any], request: SharedRequest
    ) -> Decided:
        known = Known()
        while True:
            state = RoundState(self.clock, known, reads_sequences=True)
            one = self._run_write(request, known, state)
            if one is not None:
                return one
            await self._fetch(connection, known, self.catalog_version)

    async def _commit_alone(
        self, connection: AsyncConnection[Any], version: int, one: Decided
    ) -> None:
        plan = CommitPlan(self._next_token(), version, moves_catalog=True)
        plan.lease = one.request.lease or one.request.fence
        add_draft(plan, one.draft, self.followed, is_exclusive=True)
        await check_and_change(connection, plan, bucket_of, begins=False)
        try:
            await finish(connection, plan, bucket_of)
        except OutcomeUnknown:
            if not await self._is_committed(plan.token):
                raise

    # What a thread has decided

    async def commit_background(self, draft: Draft, version: int, lease: Lease | None) -> bool:
        """Commit a draft that was not decided in a round, if what it read is still so."""
        is_exclusive = draft.changes_catalog
        plan = CommitPlan(self._next_token(), version, lease=lease, moves_catalog=is_exclusive)
        add_draft(plan, draft, self.followed, is_exclusive=is_exclusive)
        async with self._connections.one() as connection:
            try:
                if is_exclusive:
                    await connection.execute("BEGIN")
                    await connection.execute(LOCK_CATALOG)
                    await check_and_change(connection, plan, bucket_of, begins=False)
                    await finish(connection, plan, bucket_of)
                    # Read again, as all other servers do.
                    self.catalog_version = UNKNOWN_VERSION
                else:
                    await commit(connection, plan, bucket_of)
            except OutcomeUnknown:
                return await self._is_committed(plan.token)
            except (*NOT_COMMITTED, psycopg.Error) as error:
                if not _is_idle(connection):
                    await roll_back(connection)
                if isinstance(error, NOT_COMMITTED):
                    return False
                raise
        return True


def _refusal(request: SharedRequest) -> InternalServerError | bool:
    """What is said to who has been overtaken by another leader."""
    return False if request.fence is None else InternalServerError(ANOTHER_LEADS)


def _is_idle(connection: AsyncConnection[Any]) -> bool:
    """Outside of a transaction, whose commit shows by itself that the primary is one."""
    return connection.info.transaction_status == TransactionStatus.IDLE
