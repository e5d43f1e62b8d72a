"""Reads that may be a moment old, from a replica; never older than what a client has seen before.

The heartbeat row, which every server moves, comes with whatever is read. As a replica repeats
commits in their order, one that shows a heartbeat has all that was committed before it: so what a
client saw of the primary at some time is on a replica whose heartbeat is of a later time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection

from partita.clock import Clock
from partita.database.storage.postgresql.connections import Connections
from partita.database.storage.postgresql.plans import Fetched
from partita.prometheus_text import MetricFamily, PrometheusSample, gauge

CONNECTIONS_MAX: Final = 4
LAG_SECONDS_MAX: Final = 10.0
"""Who is further behind is not asked."""
_IDENTITY: Final = """
    SELECT coalesce(host(inet_server_addr()), '') || ':' || coalesce(inet_server_port(), 0)
        || ' ' || pg_postmaster_start_time()"""


class Replica:
    """Where reads go that need not be strongly consistent, and how far behind it is."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._clock = clock
        self.connections = Connections(url, CONNECTIONS_MAX, is_primary=False)
        self._ahead_seconds = 0.0
        """By how much the primary's clock is ahead of ours, at most."""
        self._beat_at = 0.0
        """The last heartbeat of the primary that was seen."""
        self.lag_seconds = 0.0
        self._identities: WeakKeyDictionary[AsyncConnection[Any], str] = WeakKeyDictionary()
        self.reads = {"replica": 0, "primary": 0}

    async def identity(self, connection: AsyncConnection[Any]) -> str:
        """Of the server that a connection leads to, and of its start."""
        found = self._identities.get(connection)
        if found is None:
            cursor = await connection.execute(_IDENTITY)
            (found,) = await cursor.fetchone() or ("",)
            self._identities[connection] = found
        return found

    def note_primary(self, fetched: Fetched, asked_at: float) -> None:
        self._ahead_seconds = fetched.beat_at + fetched.beat_age_seconds - asked_at
        self._beat_at = fetched.beat_at

    def note(self, fetched: Fetched) -> None:
        self.lag_seconds = max(0.0, self._beat_at - fetched.beat_at)

    def primary_time(self) -> float:
        """Not before the present time by the primary's clock."""
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
            "Eventually consistent reads, by who answered them.",
            [PrometheusSample(count, {"from": source}) for source, count in self.reads.items()],
        )
