"""Runs requests over fetched data, and fetches what they were missing.

The outcome of a run that missed something is dropped; the request is run again. All runs happen on
one thread, which never waits except for PostgreSQL.
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
from partita.database.storage.postgresql.trip_plans import FetchPlan, FetchResult
from partita.database.tables import table_layout
from partita.database.tables.stored_item import NO_LIMIT, decoding_budget
from partita.errors import RequestError, StorageError
from partita.foundation.clock import Clock

NOTHING: Final = FetchPlan((), (), (), ())
CATALOG_PREFIXES: Final = (table_layout.CATALOG, event_layout.STREAMS, recovery_layout.RECORDS)


class RoundDependencies(NamedTuple):
    """Parts of a shared database that its rounds use."""

    connections: PostgresqlPool
    view: CurrentView
    ledger: RequestLedger
    clock: Clock
    reload_catalog: Callable[[], None]
    replica: ReadReplica | None


class RoundRunner:
    def __init__(self, dependencies: RoundDependencies) -> None:
        self._connections = dependencies.connections
        self._view = dependencies.view
        self._ledger = dependencies.ledger
        self._clock = dependencies.clock
        self._reload_catalog = dependencies.reload_catalog
        self._replica = dependencies.replica
        self._now: float | None = None
        self._conflicting_items: Set[bytes] = frozenset()
        self.catalog_version = 0
        self.schema_version = 0
        self._ledger.has_misses = lambda: self._view.current.has_misses

    def clock(self) -> float:
        """The time of the request that is being run, or the present time outside of a run."""
        return self._clock() if self._now is None else self._now

    def is_held(self, key: bytes) -> bool:
        """True for an item that the running transaction must report a conflict on."""
        return key in self._conflicting_items

    async def load_catalog(self) -> None:
        async with self._connections.one() as connection:
            await self._load_catalog(connection)

    async def refresh_catalog(self, connection: AsyncConnection[Any]) -> None:
        """Load the catalog if it has changed: rights and pages look at it outside of rounds."""
        await self._fetch(connection, FetchedView(), self.catalog_version)
        if self._replica is not None:
            await self._refresh_replica(self._replica)

    async def _fetch_predicted(
        self,
        connection: AsyncConnection[Any],
        view: FetchedView,
        requests: Iterable[SharedRequest],
    ) -> bool:
        """Fetch the predicted keys of requests before they are run. Returns True if something was
        fetched and the catalog is up to date."""
        for request in requests:
            view.prefetch(request.predicted_keys)
        return view.needs_fetch and await self._fetch(connection, view, self.catalog_version)

    def _run(
        self, request: SharedRequest, view: FetchedView, function: Callable[[], Any] | None
    ) -> Any:
        """The outcome of a run: a value or an exception; None if it missed something."""
        assert function is not None
        view.begin_run()
        before, self._view.current = self._view.current, view
        self._now, self._conflicting_items = request.now, request.conflicting_items
        self._ledger.begin(request)
        decoding_budget.bytes_left = NO_LIMIT
        outcome: Any
        try:
            outcome = function()
        except RequestError as error:
            # Its traceback would keep this frame, and with it the whole request, in memory.
            outcome = error.with_traceback(None)
            outcome.__context__ = None
        except Exception as error:
            # Missing values read as absent, so that even an impossible state may be met.
            outcome = error
        finally:
            self._now, self._conflicting_items = None, frozenset()
            self._ledger.end()
            self._view.current = before
        return None if view.has_misses else outcome

    async def _fetch(
        self, connection: AsyncConnection[Any], view: FetchedView, version: int
    ) -> bool:
        """Fetch what was missing. Returns True if the catalog still has the given version."""
        asked_at = self._clock()
        fetched = await fetch_misses(connection, view)
        self.schema_version = fetched.schema_version
        if self._replica is not None:
            self._replica.note_primary(fetched, asked_at)
        # A former primary may still answer. Its commits wait for a standby that is gone, so that
        # moving the heartbeat fails there.
        if fetched.beat_age_seconds > STALE_SECONDS and is_idle(connection):
            await beat(connection)
        if fetched.catalog_version != self.catalog_version:
            await self._load_catalog(connection)
        return fetched.catalog_version == version

    async def _refresh_replica(self, replica: ReadReplica) -> None:
        """Measure how far the replica is behind, for the metrics and for the next reads."""
        try:
            async with replica.connections.one() as connection:
                replica.note(await fetch(connection, NOTHING, bucket_of))
        except StorageError:
            replica.lag_seconds = math.inf

    async def _load_catalog(self, connection: AsyncConnection[Any]) -> None:
        """Read the catalog into memory; it is replaced only when all of it was fetched."""
        view, version = FetchedView(), 0
        while True:
            view.begin_run()
            for prefix in CATALOG_PREFIXES:
                for _ in view.range(prefix, prefix_end(prefix)):
                    pass
            if not view.has_misses:
                break
            fetched = await fetch_misses(connection, view)
            if version != fetched.catalog_version:
                # It changed while it was read: start again.
                view, version = FetchedView(), fetched.catalog_version
        before, self._view.current = self._view.current, view
        try:
            self._reload_catalog()
        finally:
            self._view.current = before
        self.catalog_version = version


async def fetch_misses(connection: AsyncConnection[Any], view: FetchedView) -> FetchResult:
    """Fetch everything that a view has noted, in one round trip."""
    plan, parts = view.take_misses()
    fetched = await fetch(connection, plan, bucket_of)
    view.add(plan, parts, fetched)
    return fetched


def is_idle(connection: AsyncConnection[Any]) -> bool:
    """True outside of a transaction. Inside of one, its commit proves that the primary still is
    the primary, so that no heartbeat is needed."""
    return connection.info.transaction_status == TransactionStatus.IDLE
