"""Rounds: requests that wait are run together, over what all of them ask for.

Reads (`reading.py`) and writes have rounds of their own, a few at a time. What changes the catalog
is decided under an exclusive lock, alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Iterable, Set
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection

from partita.database.shared.rounds.contended_keys import ContendedKeys
from partita.database.shared.rounds.fetched_view import FetchedView, bucket_of
from partita.database.shared.rounds.read_rounds import TRANSACTION_SECONDS_MAX, ReadRounds
from partita.database.shared.rounds.round_drafts import (
    RoundDraft,
    RoundState,
    add_draft,
    conflicting_drafts,
)
from partita.database.shared.rounds.round_queue import RoundQueue
from partita.database.shared.rounds.round_runner import RoundDependencies, is_idle
from partita.database.shared.rounds.shared_requests import SharedRequest
from partita.database.storage.postgresql.batch_fetch import fetch
from partita.database.storage.postgresql.optimistic_commit import (
    BEGIN_LOCKED,
    CatalogMoved,
    CommitConflict,
    LeaseLost,
    OutcomeUnknown,
    check_and_change,
    commit,
    finish,
    is_committed,
    roll_back,
)
from partita.database.storage.postgresql.trip_plans import CommitPlan, FencingLease
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.errors import (
    InternalServerError,
    StorageError,
    ThrottlingException,
    TransactionInProgressException,
)

logger = logging.getLogger(__name__)

WRITE_ROUNDS_MAX: Final = 3
LOCKS_MAX: Final = 200
"""Rows that a round locks one by one."""
WAITING_MAX: Final = 10_000
"""Requests beyond are throttled."""
ATTEMPT_SECONDS_MAX: Final = 5.0
"""For how long a write that is overtaken is decided again."""
OUTCOME_SECONDS_MAX: Final = 30.0
"""For how long the database is asked what became of a commit."""
LAST_OUTCOME_SECONDS_MAX: Final = 3.0
"""The same while the server stops."""
INSTANCE_BITS: Final = 40
LOCK_CATALOG: Final = "SELECT version FROM partita_catalog WHERE id = 1 FOR UPDATE"
UNKNOWN_VERSION: Final = 0
NOT_COMMITTED: Final = (
    *(CatalogMoved, LeaseLost, CommitConflict),
    *(psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure),
)
"""What a commit may raise that only has to be decided again."""
BUSY: Final = "Too many requests at once: try again in a moment."
IN_PROGRESS: Final = "The transaction with the given request token is already in progress."
ANOTHER_LEADS: Final = "Another server leads: this is left to it."
OVERTAKEN: Final = "The item is written too often at once: try again in a moment."


class DecidedWrite(NamedTuple):
    """The outcome of a run that lacked nothing."""

    request: SharedRequest
    outcome: Any
    draft: RoundDraft
    write_batch: WriteBatch | None
    """None when the write was refused."""


class Rounds(ReadRounds):
    def __init__(self, surroundings: RoundDependencies, instance: int) -> None:
        super().__init__(surroundings)
        self._instance = instance
        self._last_token = 0
        self._writes = RoundQueue(WRITE_ROUNDS_MAX, self._write_round)
        self._hot_writes = RoundQueue(1, self._hot_round)
        self._exclusive = RoundQueue(1, self._exclusive_round, requests_max=1)
        self._lanes = (
            *(self._replica_reads, self._reads, self._transaction_reads),
            *(self._writes, self._hot_writes, self._exclusive),
        )
        self._hot = ContendedKeys()
        self._committing: set[bytes] = set()
        """What rounds of this server are committing now."""
        self._deferred: list[SharedRequest] = []
        """Requests that need some of it."""
        self._figures: dict[bytes, bytes] = {}
        """Counts as they were a moment ago: for writes, which only move them."""
        self._is_stopping = False
        self.followed: Container[bytes] = frozenset()
        """Prefixes of items whose changes are kept for recovery."""

    def submit(self, request: SharedRequest) -> None:
        lane = self._lane(request)
        if len(lane.waiting) >= WAITING_MAX:
            request.done(ThrottlingException(BUSY))
        else:
            lane.add([request])

    def _lane(self, request: SharedRequest) -> RoundQueue:
        return super()._lane(request) if request.write is None else self._writes

    def forget_figures(self) -> None:
        self._figures = {}

    async def stop(self) -> None:
        """Let what is under way come to its end."""
        self._is_stopping = True
        for lane in self._lanes:
            await lane.stop()

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
            known = FetchedView(self._figures)
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
    ) -> tuple[int, list[DecidedWrite]]:
        """Run all writes, each over those before it, until none lacks anything.

        Returns the version of the catalog too that they were decided with.
        """
        known = FetchedView(self._figures)
        is_checked = await self._fetch_foreseen(connection, known, requests)
        return await self._decide_over(connection, requests, known, is_checked=is_checked)

    async def _decide_over(
        self,
        connection: AsyncConnection[Any],
        requests: list[SharedRequest],
        known: FetchedView,
        *,
        is_checked: bool,
    ) -> tuple[int, list[DecidedWrite]]:
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

    def _run_write(
        self, request: SharedRequest, known: FetchedView, state: RoundState
    ) -> DecidedWrite | None:
        write = request.write
        assert write is not None
        write_batch = state.begin(request.held)

        outcome = self._run(request, known, lambda: write(write_batch))
        if known.is_lacking:
            state.end(None)
            return None
        if isinstance(outcome, Exception):
            return DecidedWrite(request, outcome, state.end(None), None)
        return DecidedWrite(request, outcome, state.end(write_batch), write_batch)

    def _sort_out(
        self, requests: list[SharedRequest], decided: list[DecidedWrite]
    ) -> list[DecidedWrite]:
        """Those to be committed now; the others are answered, or wait for their turn elsewhere."""
        elsewhere: set[RoundDraft] = set()
        ready: list[DecidedWrite] = []
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
        ready: list[DecidedWrite],
        *,
        begins: bool = True,
    ) -> list[DecidedWrite]:
        """Commit drafts in one transaction; those that are to be committed without the others."""
        plan = self._plan(version, ready)
        keys = {*plan.checks, *plan.changes}
        self._committing |= keys
        lost: Iterable[DecidedWrite] = ready
        changed: Set[bytes] = frozenset()
        remaining: list[DecidedWrite] = []
        try:
            await commit(connection, plan, bucket_of, begins=begins)
            self._connections.availability.recover()
            lost = ()
        except CommitConflict as error:
            changed = error.keys
            self._hot.add(changed)
            gone = conflicting_drafts([one.draft for one in ready], error.keys)
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

    def _try_again(self, one: DecidedWrite, changed: Set[bytes]) -> None:
        request = one.request
        seconds = self._clock() - request.now
        if request.lease is not None:
            request.done(_refusal(request))
        elif any(
            key.startswith(table_layout.TOKENS) and key in one.draft.checks for key in changed
        ):
            request.done(TransactionInProgressException(IN_PROGRESS))
        elif seconds > ATTEMPT_SECONDS_MAX:
            request.done(ThrottlingException(OVERTAKEN))
        else:
            is_transaction = one.write_batch is not None and one.write_batch.holds
            if is_transaction and seconds > TRANSACTION_SECONDS_MAX:
                request.held = changed
            self._writes.add([request])

    def _answer(self, one: DecidedWrite) -> None:
        if one.write_batch is not None:
            for callback in one.write_batch.callbacks:
                callback()
        one.request.done(one.outcome)

    def _plan(self, version: int, ready: list[DecidedWrite]) -> CommitPlan:
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
    ) -> DecidedWrite:
        known = FetchedView()
        while True:
            state = RoundState(self.clock, known, reads_sequences=True)
            one = self._run_write(request, known, state)
            if one is not None:
                return one
            await self._fetch(connection, known, self.catalog_version)

    async def _commit_alone(
        self, connection: AsyncConnection[Any], version: int, one: DecidedWrite
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

    async def commit_background(
        self, draft: RoundDraft, version: int, lease: FencingLease | None
    ) -> int:
        """Commit a draft that was not decided in a round, if what it read is still so; the version
        of what it has written, or 0."""
        is_exclusive = not draft.only_shows_progress
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
                return plan.token if await self._is_committed(plan.token) else 0
            except (*NOT_COMMITTED, psycopg.Error) as error:
                if not is_idle(connection):
                    await roll_back(connection)
                if isinstance(error, NOT_COMMITTED):
                    return 0
                raise
        return plan.token


def _refusal(request: SharedRequest) -> InternalServerError | bool:
    """What is said to who has been overtaken by another leader."""
    return False if request.fence is None else InternalServerError(ANOTHER_LEADS)
