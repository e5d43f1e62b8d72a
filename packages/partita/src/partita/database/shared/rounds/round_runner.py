"""Running requests over what is known, and fetching what they lack.

A run that lacks something does not count. All runs happen on one thread; only PostgreSQL is waited
for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Set
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from partita.database.logs.event_log import event_log_layout as event_layout
from partita.database.recovery import recovery_layout
from partita.database.shared.read_replica import ReadReplica
from partita.database.shared.rounds.fetched_view import CurrentView, FetchedView, bucket_of
from partita.database.shared.rounds.shared_requests import RequestLedger, SharedRequest
from partita.database.storage.engine import prefix_end
from partita.database.storage.postgresql.batch_fetch import fetch
from partita.database.storage.postgresql.heartbeat import STALE_SECONDS, beat
from partita.database.storage.postgresql.postgresql_pool import PostgresqlPool
from partita.database.storage.postgresql.trip_plans import FetchPlan
from partita.database.tables import table_layout
from partita.database.tables.stored_item import NO_LIMIT, decoding_budget
from partita.errors import RequestError, StorageError
from partita.foundation.clock import Clock

NOTHING: Final = FetchPlan((), (), (), ())
CATALOG_PREFIXES: Final = (table_layout.CATALOG, event_layout.STREAMS, recovery_layout.RECORDS)


class RoundDependencies(NamedTuple):
    """What rounds are run over, and for."""

    connections: PostgresqlPool
    view: CurrentView
    ledger: RequestLedger
    clock: Clock
    reload_catalog: Callable[[], None]
    replica: ReadReplica | None


class RoundRunner:
    def __init__(self, surroundings: RoundDependencies) -> None:
        self._connections = surroundings.connections
        self._view = surroundings.view
        self._ledger = surroundings.ledger
        self._clock = surroundings.clock
        self._reload_catalog = surroundings.reload_catalog
        self._replica = surroundings.replica
        self._now: float | None = None
        self._held: Set[bytes] = frozenset()
        self.catalog_version = 0
        self.schema_version = 0
        self._ledger.is_lacking = lambda: self._view.known.is_lacking

    def clock(self) -> float:
        """The time of the request that is being run, or else now."""
        return self._clock() if self._now is None else self._now

    def is_held(self, key: bytes) -> bool:
        """Whether the transaction that is being run has waited too long for who writes an item."""
        return key in self._held

    async def load_catalog(self) -> None:
        async with self._connections.one() as connection:
            await self._load_catalog(connection)

    async def refresh_catalog(self, connection: AsyncConnection[Any]) -> None:
        """For what looks at the catalog before any request does: rights, and pages."""
        await self._fetch(connection, FetchedView(), self.catalog_version)
        if self._replica is not None:
            await self._refresh_replica(self._replica)

    async def _fetch_foreseen(
        self,
        connection: AsyncConnection[Any],
        known: FetchedView,
        requests: Iterable[SharedRequest],
    ) -> bool:
        """Fetch what requests are known to need before they are run; whether anything was fetched
        since they came, with the catalog that they will be run with."""
        for request in requests:
            known.foresee(request.foreseen)
        return known.is_wanting and await self._fetch(connection, known, self.catalog_version)

    def _run(
        self, request: SharedRequest, known: FetchedView, function: Callable[[], Any] | None
    ) -> Any:
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

    async def _fetch(
        self, connection: AsyncConnection[Any], known: FetchedView, version: int
    ) -> bool:
        """Fetch what is lacking; whether the catalog still is that of a version."""
        wanted, parts = known.take_wanted()
        asked_at = self._clock()
        fetched = await fetch(connection, wanted, bucket_of)
        known.add(wanted, parts, fetched)
        self.schema_version = fetched.schema_version
        if self._replica is not None:
            self._replica.note_primary(fetched, asked_at)
        if fetched.beat_age_seconds > STALE_SECONDS and is_idle(connection):
            await beat(connection)
        if fetched.catalog_version != self.catalog_version:
            await self._load_catalog(connection)
        return fetched.catalog_version == version

    async def _refresh_replica(self, replica: ReadReplica) -> None:
        """How far behind it is, for those who look at it and for those who would ask it."""
        try:
            async with replica.connections.one() as connection:
                replica.note(await fetch(connection, NOTHING, bucket_of))
        except StorageError:
            replica.lag_seconds = math.inf

    async def _load_catalog(self, connection: AsyncConnection[Any]) -> None:
        """Read the catalog into memory, all at once when everything of it is there."""
        known, version = FetchedView(), 0
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
                known, version = FetchedView(), fetched.catalog_version
        before, self._view.known = self._view.known, known
        try:
            self._reload_catalog()
        finally:
            self._view.known = before
        self.catalog_version = version


def is_idle(connection: AsyncConnection[Any]) -> bool:
    """Outside of a transaction, whose commit shows by itself that the primary is one."""
    return connection.info.transaction_status == TransactionStatus.IDLE
