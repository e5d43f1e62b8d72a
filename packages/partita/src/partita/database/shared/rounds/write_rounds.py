"""Rounds of writes: waiting requests are decided together, over one fetch, and share a commit.

A round fetches what its requests read, decides them one after the other, and commits their drafts
in one transaction that checks the versions of all rows read. Drafts that conflict are decided again
in a later round. A request that changes the catalog is decided alone, under an exclusive lock.
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
from partita.database.storage.engine import ConflictDetected
from partita.database.storage.postgresql.batch_fetch import fetch
from partita.database.storage.postgresql.optimistic_commit import (
    BEGIN_LOCKED,
    CatalogMoved,
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
"""The most rows that a round of contended keys locks."""
WAITING_MAX: Final = 10_000
"""With more waiting requests, new ones are throttled."""
ATTEMPT_SECONDS_MAX: Final = 5.0
"""How long a write that conflicts is decided again, before it is throttled."""
OUTCOME_SECONDS_MAX: Final = 30.0
"""How long the database is asked whether a commit with an unknown outcome was made."""
LAST_OUTCOME_SECONDS_MAX: Final = 3.0
"""The same, while the server stops."""
INSTANCE_BITS: Final = 40
LOCK_CATALOG: Final = "SELECT version FROM partita_catalog WHERE id = 1 FOR UPDATE"
UNKNOWN_VERSION: Final = 0
NOT_COMMITTED: Final = (
    *(CatalogMoved, LeaseLost, ConflictDetected),
    *(psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure),
)
"""Errors of a commit that changed nothing: the drafts are decided again."""
BUSY: Final = "Too many requests at once: try again in a moment."
IN_PROGRESS: Final = "The transaction with the given request token is already in progress."
ANOTHER_LEADS: Final = "Another server has become the leader and does this work now."
TOO_CONTENDED: Final = "Too many writes to the item at once: try again in a moment."


class DecidedWrite(NamedTuple):
    """The outcome of a run that missed nothing."""

    request: SharedRequest
    outcome: Any
    draft: RoundDraft
    write_batch: WriteBatch | None
    """None when the write was refused."""


class Rounds(ReadRounds):
    def __init__(self, dependencies: RoundDependencies, instance: int) -> None:
        super().__init__(dependencies)
        self._instance = instance
        self._last_token = 0
        self._writes = RoundQueue(WRITE_ROUNDS_MAX, self._write_round)
        self._contended_writes = RoundQueue(1, self._contended_round)
        self._exclusive = RoundQueue(1, self._exclusive_round, requests_max=1)
        self._queues = (
            *(self._replica_reads, self._reads, self._transaction_reads),
            *(self._writes, self._contended_writes, self._exclusive),
        )
        self._contended = ContendedKeys()
        self._committing: set[bytes] = set()
        """Keys that rounds of this server are committing now."""
        self._deferred: list[SharedRequest] = []
        """Requests that touch these keys and wait for the end of their commits."""
        self._figures: dict[bytes, bytes] = {}
        """Counts that may be outdated. That is enough for writes, which only add to them."""
        self._is_stopping = False
        self.followed: Container[bytes] = frozenset()
        """Prefixes of items whose changes are logged for recovery."""

    def submit(self, request: SharedRequest) -> None:
        queue = self._queue(request)
        if len(queue.waiting) >= WAITING_MAX:
            request.done(ThrottlingException(BUSY))
        else:
            queue.add([request])

    def _queue(self, request: SharedRequest) -> RoundQueue:
        return super()._queue(request) if request.write is None else self._writes

    def forget_figures(self) -> None:
        self._figures = {}

    async def stop(self) -> None:
        """Wait for the requests under way."""
        self._is_stopping = True
        for queue in self._queues:
            await queue.stop()

    # Writes

    async def _write_round(self, requests: list[SharedRequest]) -> None:
        self._divert_contended(requests)
        if not requests:
            return
        async with self._connections.one() as connection:
            version, decisions = await self._decide(connection, requests)
            ready = self._sort_out(requests, decisions)
            while ready:
                ready = await self._commit(connection, requests, version, ready)

    def _divert_contended(self, requests: list[SharedRequest]) -> None:
        contended = [
            request
            for request in requests
            if request.is_free and self._contended.meets(request.predicted_keys)
        ]
        for request in contended:
            requests.remove(request)
        self._contended_writes.add(contended)

    async def _contended_round(self, requests: list[SharedRequest]) -> None:
        """Lock the rows first, in the same order on all servers; then decide and commit."""
        async with self._connections.one() as connection:
            view = FetchedView(self._figures)
            for request in requests:
                view.prefetch(request.predicted_keys)
            plan, parts = view.take_misses()
            locked = sorted(plan.keys)[:LOCKS_MAX]
            try:
                fetched = await fetch(connection, plan, bucket_of, BEGIN_LOCKED, locked)
                view.add(plan, parts, fetched)
                if fetched.catalog_version != self.catalog_version:
                    await self._load_catalog(connection)
                # Requests that came while this round waited for the locks join it.
                keys = frozenset(locked)
                requests += self._contended_writes.take(
                    lambda request: request.predicted_keys <= keys
                )
                version, decisions = await self._decide_over(
                    connection, requests, view, is_checked=True
                )
                ready = self._sort_out(requests, decisions)
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
        """Run all writes, each on top of those before it, until they miss nothing.

        Returns the version of the catalog that they were decided with, and the outcomes.
        """
        view = FetchedView(self._figures)
        is_checked = await self._fetch_predicted(connection, view, requests)
        return await self._decide_over(connection, requests, view, is_checked=is_checked)

    async def _decide_over(
        self,
        connection: AsyncConnection[Any],
        requests: list[SharedRequest],
        view: FetchedView,
        *,
        is_checked: bool,
    ) -> tuple[int, list[DecidedWrite]]:
        while True:
            reads_sequences = any(request.lease is not None for request in requests)
            state = RoundState(self.clock, view, reads_sequences=reads_sequences)
            version = self.catalog_version
            ran = [self._run_write(request, view, state) for request in requests]
            decisions = [decision for decision in ran if decision is not None]
            is_complete = len(decisions) == len(requests)
            if is_complete and is_checked:
                return version, decisions
            is_same = await self._fetch(connection, view, version)
            if is_complete and is_same:
                return version, decisions
            is_checked = True

    def _run_write(
        self, request: SharedRequest, view: FetchedView, state: RoundState
    ) -> DecidedWrite | None:
        write = request.write
        assert write is not None
        write_batch = state.begin(request.conflicting_items)

        outcome = self._run(request, view, lambda: write(write_batch))
        if view.has_misses:
            state.end(None)
            return None
        if isinstance(outcome, Exception):
            return DecidedWrite(request, outcome, state.end(None), None)
        return DecidedWrite(request, outcome, state.end(write_batch), write_batch)

    def _sort_out(
        self, requests: list[SharedRequest], decisions: list[DecidedWrite]
    ) -> list[DecidedWrite]:
        """Returns the drafts to commit now. Other requests are answered, or queued elsewhere."""
        elsewhere: set[RoundDraft] = set()
        ready: list[DecidedWrite] = []
        for decision in decisions:
            draft = decision.draft
            if draft.changes_catalog:
                self._exclusive.add([decision.request])
            elif draft.touches(self._committing) or not elsewhere.isdisjoint(draft.rests_on):
                self._defer(decision.request)
            elif not draft.changes and not draft.rests_on:
                self._answer(decision)
            else:
                ready.append(decision)
                continue
            requests.remove(decision.request)
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
        """Commit drafts in one transaction. Returns those that should be committed without the ones
        that conflicted."""
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
        except ConflictDetected as error:
            changed = error.keys
            self._contended.add(changed)
            gone = conflicting_drafts([decision.draft for decision in ready], error.keys)
            lost = [decision for decision in ready if decision.draft in gone]
            remaining = [decision for decision in ready if decision.draft not in gone]
        except CatalogMoved:
            await self._load_catalog(connection)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
            # PostgreSQL rolled back: decide all of them again.
            pass
        except LeaseLost:
            for decision in ready:
                requests.remove(decision.request)
                decision.request.done(_refusal(decision.request))
            ready = []
            lost = ()
        except OutcomeUnknown:
            if await self._is_committed(plan.token):
                lost = ()
        finally:
            # In any outcome, requests that waited for these keys can be decided now.
            self._committing -= keys
            deferred, self._deferred = self._deferred, []
            self._writes.add(deferred)
        for decision in lost:
            requests.remove(decision.request)
            self._try_again(decision, changed)
        again = {id(decision) for decision in (*lost, *remaining)}
        for decision in ready:
            if id(decision) not in again:
                requests.remove(decision.request)
                self._answer(decision)
        return remaining

    def _defer(self, request: SharedRequest) -> None:
        """Queue a request again when a commit under way has ended."""
        if self._committing:
            self._deferred.append(request)
        else:
            self._writes.add([request])

    def _try_again(self, decision: DecidedWrite, changed: Set[bytes]) -> None:
        request = decision.request
        seconds = self._clock() - request.now
        if request.lease is not None:
            request.done(_refusal(request))
        elif any(
            # Another server is using the same client request token at this moment.
            key.startswith(table_layout.TOKENS) and key in decision.draft.checks
            for key in changed
        ):
            request.done(TransactionInProgressException(IN_PROGRESS))
        elif seconds > ATTEMPT_SECONDS_MAX:
            request.done(ThrottlingException(TOO_CONTENDED))
        else:
            is_transaction = decision.write_batch is not None and decision.write_batch.holds
            if is_transaction and seconds > TRANSACTION_SECONDS_MAX:
                request.conflicting_items = changed
            self._writes.add([request])

    def _answer(self, decision: DecidedWrite) -> None:
        if decision.write_batch is not None:
            for callback in decision.write_batch.callbacks:
                callback()
        decision.request.done(decision.outcome)

    def _plan(self, version: int, ready: list[DecidedWrite]) -> CommitPlan:
        plan = CommitPlan(self._next_token(), version)
        for decision in ready:
            add_draft(plan, decision.draft, self.followed)
            plan.lease = plan.lease or decision.request.lease or decision.request.fence
        return plan

    def _next_token(self) -> int:
        """A number that no other commit of any server has."""
        self._last_token += 1
        return self._instance << INSTANCE_BITS | self._last_token

    async def _is_committed(self, token: int) -> bool:
        """Ask until there is an answer: a guess could lose a write, or repeat it."""
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
                decision = await self._decide_alone(connection, request)
                if decision.draft.changes:
                    await self._commit_alone(connection, version, decision)
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
            self._answer(decision)
            if decision.draft.changes:
                # Another round may have read it meanwhile: then it is read once more.
                is_next = self.catalog_version == version
                self.catalog_version = version + 1 if is_next else UNKNOWN_VERSION

    async def _decide_alone(
        self, connection: AsyncConnection[Any], request: SharedRequest
    ) -> DecidedWrite:
        view = FetchedView()
        while True:
            state = RoundState(self.clock, view, reads_sequences=True)
            decision = self._run_write(request, view, state)
            if decision is not None:
                return decision
            await self._fetch(connection, view, self.catalog_version)

    async def _commit_alone(
        self, connection: AsyncConnection[Any], version: int, decision: DecidedWrite
    ) -> None:
        plan = CommitPlan(self._next_token(), version, moves_catalog=True)
        plan.lease = decision.request.lease or decision.request.fence
        add_draft(plan, decision.draft, self.followed, is_exclusive=True)
        await check_and_change(connection, plan, bucket_of, begins=False)
        try:
            await finish(connection, plan, bucket_of)
        except OutcomeUnknown:
            if not await self._is_committed(plan.token):
                raise

    # Drafts that the thread for backups has decided

    async def commit_background(
        self, draft: RoundDraft, version: int, lease: FencingLease | None
    ) -> int:
        """Commit a draft that was not decided in a round. Returns the version of the rows that it
        wrote, or 0 if it conflicted."""
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
                    # Load the catalog again, as the other servers do.
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
    """The answer to a request whose lease was lost: False tells background work to stop."""
    return False if request.fence is None else InternalServerError(ANOTHER_LEADS)
