"""Eventually consistent reads from a replica; never older than what the same client has read
before.

Every server updates a heartbeat row, and every fetch returns it. A replica replays commits in their
order, so a replica that shows a heartbeat has everything that was committed before it. A client
that has read from the primary may therefore read from a replica with a later heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection

from partita.database.storage.postgresql.postgresql_pool import PostgresqlPool
from partita.database.storage.postgresql.trip_plans import FetchResult
from partita.foundation.clock import Clock
from partita.foundation.prometheus_text import MetricFamily, PrometheusSample, gauge

CONNECTIONS_MAX: Final = 4
LAG_SECONDS_MAX: Final = 10.0
"""A replica that is further behind is not used."""
_IDENTITY: Final = """
    SELECT coalesce(host(inet_server_addr()), '') || ':' || coalesce(inet_server_port(), 0)
        || ' ' || pg_postmaster_start_time()"""


class ReadReplica:
    """A replica for eventually consistent reads, and its lag."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._clock = clock
        self.connections = PostgresqlPool(url, CONNECTIONS_MAX, is_primary=False)
        self._ahead_seconds = 0.0
        """An upper bound of how much the clock of the primary is ahead of ours."""
        self._beat_at = 0.0
        """The latest heartbeat that was read from the primary."""
        self.lag_seconds = 0.0
        self._identities: WeakKeyDictionary[AsyncConnection[Any], str] = WeakKeyDictionary()
        self.reads = {"replica": 0, "primary": 0}

    async def identity(self, connection: AsyncConnection[Any]) -> str:
        """Distinguishes the servers behind one URL, and their restarts: address, port, start
        time."""
        identity = self._identities.get(connection)
        if identity is None:
            cursor = await connection.execute(_IDENTITY)
            (identity,) = await cursor.fetchone() or ("",)
            self._identities[connection] = identity
        return identity

    def note_primary(self, fetched: FetchResult, asked_at: float) -> None:
        self._ahead_seconds = fetched.beat_at + fetched.beat_age_seconds - asked_at
        self._beat_at = fetched.beat_at

    def note(self, fetched: FetchResult) -> None:
        self.lag_seconds = max(0.0, self._beat_at - fetched.beat_at)

    def primary_time(self) -> float:
        """The present time by the primary's clock, or later."""
        return self._clock() + self._ahead_seconds

    def metric_families(self) -> Iterator[MetricFamily]:
        yield gauge(
            "partita_storage_reads_lag_seconds",
            "How far the replica is behind the primary.",
            round(self.lag_seconds, 3),
        )
        yield MetricFamily(
            "partita_storage_reads_total",
            "counter",
            "Eventually consistent reads, by answering server.",
            [PrometheusSample(count, {"from": source}) for source, count in self.reads.items()],
        )
