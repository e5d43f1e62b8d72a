"""Rounds of reads: from the primary, from a replica, and of transactions."""

from __future__ import annotations

import math
from typing import Any, Final

from psycopg import AsyncConnection

from partita.database.shared.read_replica import LAG_SECONDS_MAX, ReadReplica
from partita.database.shared.rounds.fetched_view import FetchedView
from partita.database.shared.rounds.round_queue import RoundQueue
from partita.database.shared.rounds.round_runner import RoundDependencies, RoundRunner, fetch_misses
from partita.database.shared.rounds.shared_requests import SharedRequest
from partita.errors import StorageError

READ_ROUNDS_MAX: Final = 3
TRANSACTION_SECONDS_MAX: Final = 0.5
"""How long a transaction that conflicts is decided again, before it fails with a
TransactionConflict."""


class ReadRounds(RoundRunner):
    def __init__(self, dependencies: RoundDependencies) -> None:
        super().__init__(dependencies)
        self._reads = RoundQueue(READ_ROUNDS_MAX, self._read_round)
        self._replica_reads = RoundQueue(READ_ROUNDS_MAX, self._replica_read_round)
        self._transaction_reads = RoundQueue(1, self._transaction_read_round)

    def _queue(self, request: SharedRequest) -> RoundQueue:
        if request.is_transaction:
            return self._transaction_reads
        if request.session is not None and self._replica is not None:
            is_current = self._replica.lag_seconds <= LAG_SECONDS_MAX
            return self._replica_reads if is_current else self._reads
        return self._reads

    async def _read_round(self, requests: list[SharedRequest]) -> None:
        async with self._connections.one() as connection:
            view = FetchedView()
            is_checked = await self._fetch_predicted(connection, view, requests)
            while requests:
                version = self.catalog_version
                outcomes = [self._run(request, view, request.read) for request in requests]
                if not is_checked or any(outcome is None for outcome in outcomes):
                    is_checked = True
                    if not await self._fetch(connection, view, version):
                        continue
                for request, outcome in zip(list(requests), outcomes, strict=True):
                    if outcome is not None:
                        requests.remove(request)
                        request.done(outcome)

    async def _replica_read_round(self, requests: list[SharedRequest]) -> None:
        """Read from the replica; requests that it cannot answer go to the primary."""
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
        """Answer the requests whose clients may read from this replica; leave the others."""
        view, unanswered = FetchedView(), list(requests)
        for request in unanswered:
            view.prefetch(request.predicted_keys)
        while unanswered:
            fetched = await fetch_misses(connection, view)
            replica.note(fetched)
            if fetched.catalog_version != self.catalog_version:
                # The replica does not have the tables that this server knows.
                return
            for request in list(unanswered):
                session = request.session
                assert session is not None
                if not session.accepts(source, fetched.beat_at):
                    unanswered.remove(request)
                    continue
                outcome = self._run(request, view, request.read)
                if outcome is not None:
                    unanswered.remove(request)
                    requests.remove(request)
                    request.is_old = True
                    session.note(source, fetched.beat_at)
                    replica.reads["replica"] += 1
                    request.done(outcome)

    async def _transaction_read_round(self, requests: list[SharedRequest]) -> None:
        """Fetch everything twice: what has the same versions both times existed at one moment.

        A single statement would do on one node. Engines that distribute rows over several nodes,
        such as Citus, have no snapshot of all nodes.
        """
        async with self._connections.one() as connection:
            view = FetchedView()
            await self._fetch_predicted(connection, view, requests)
            while requests:
                outcomes = await self._read_over(connection, requests, view)
                version, latest = self.catalog_version, FetchedView()
                latest.prefetch(view.keys())
                if not await self._fetch(connection, latest, version):
                    view = latest
                    continue
                for request, outcome in zip(list(requests), outcomes, strict=True):
                    keys = request.predicted_keys or view.keys()
                    changed = {key for key in keys if view.version(key) != latest.version(key)}
                    if not changed or request.conflicting_items:
                        requests.remove(request)
                        request.done(outcome)
                    elif self._clock() - request.now > TRANSACTION_SECONDS_MAX:
                        request.conflicting_items = changed
                view = latest

    async def _read_over(
        self, connection: AsyncConnection[Any], requests: list[SharedRequest], view: FetchedView
    ) -> list[Any]:
        """Run reads until they miss nothing, and return their outcomes."""
        while True:
            outcomes = [self._run(request, view, request.read) for request in requests]
            if all(outcome is not None for outcome in outcomes):
                return outcomes
            await self._fetch(connection, view, self.catalog_version)
