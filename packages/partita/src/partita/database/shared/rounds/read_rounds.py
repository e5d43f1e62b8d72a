"""Rounds of reads: from the primary, from a replica, and those of transactions."""

from __future__ import annotations

import math
from typing import Any, Final

from psycopg import AsyncConnection

from partita.database.shared.read_replica import LAG_SECONDS_MAX, ReadReplica
from partita.database.shared.rounds.fetched_view import FetchedView, bucket_of
from partita.database.shared.rounds.round_queue import RoundQueue
from partita.database.shared.rounds.round_runner import RoundDependencies, RoundRunner
from partita.database.shared.rounds.shared_requests import SharedRequest
from partita.database.storage.postgresql.batch_fetch import fetch
from partita.errors import StorageError

READ_ROUNDS_MAX: Final = 3
TRANSACTION_SECONDS_MAX: Final = 0.5
"""For how long a transaction that is overtaken is decided again; then it conflicts."""


class ReadRounds(RoundRunner):
    def __init__(self, surroundings: RoundDependencies) -> None:
        super().__init__(surroundings)
        self._reads = RoundQueue(READ_ROUNDS_MAX, self._read_round)
        self._replica_reads = RoundQueue(READ_ROUNDS_MAX, self._replica_read_round)
        self._transaction_reads = RoundQueue(1, self._transaction_read_round)

    def _lane(self, request: SharedRequest) -> RoundQueue:
        if request.is_transaction:
            return self._transaction_reads
        if request.session is not None and self._replica is not None:
            is_current = self._replica.lag_seconds <= LAG_SECONDS_MAX
            return self._replica_reads if is_current else self._reads
        return self._reads

    async def _read_round(self, requests: list[SharedRequest]) -> None:
        async with self._connections.one() as connection:
            known = FetchedView()
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
        replica: ReadReplica,
        source: str,
        connection: AsyncConnection[Any],
        requests: list[SharedRequest],
    ) -> None:
        """Answer those who may be answered; the others are left."""
        known, asked = FetchedView(), list(requests)
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
            known = FetchedView()
            await self._fetch_foreseen(connection, known, requests)
            while requests:
                outcomes = await self._read_over(connection, requests, known)
                version, latest = self.catalog_version, FetchedView()
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
        self, connection: AsyncConnection[Any], requests: list[SharedRequest], known: FetchedView
    ) -> list[Any]:
        """The outcomes of reads, when all that they lack has been fetched."""
        while True:
            outcomes = [self._run(one, known, one.read) for one in requests]
            if all(outcome is not None for outcome in outcomes):
                return outcomes
            await self._fetch(connection, known, self.catalog_version)
