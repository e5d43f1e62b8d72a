"""Leadership: background work is done by one server at a time, by a lease with a fencing token."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from psycopg import AsyncConnection

from partita.database.storage.postgresql.commit import Lease, OutcomeUnknown
from partita.database.storage.postgresql.connections import Connections
from partita.database.storage.postgresql.heartbeat import beat
from partita.errors import StorageError

logger = logging.getLogger(__name__)

NAME: Final = "upkeep"
LEASE_SECONDS: Final = 5.0
RENEWAL_SECONDS: Final = 1.0
COUNT_ROWS_MAX: Final = 100
"""When there are more, they are summed."""

_TAKE: Final = """
    INSERT INTO partita_leases AS l (name, holder, token, expires_at)
    VALUES (%(name)s, %(holder)s, 1, now() + make_interval(secs => %(seconds)s))
    ON CONFLICT (name) DO UPDATE SET
        token = l.token + CASE WHEN l.holder = EXCLUDED.holder THEN 0 ELSE 1 END,
        holder = EXCLUDED.holder, expires_at = EXCLUDED.expires_at
    WHERE l.holder = EXCLUDED.holder OR l.expires_at < now()
    RETURNING token"""
_RELEASE: Final = "UPDATE partita_leases SET expires_at = now() WHERE name = %s AND holder = %s"
_SUM_COUNTS: Final = f"""
    WITH appended AS (
        DELETE FROM partita_counts
        WHERE (SELECT count(*) FROM (SELECT 1 FROM partita_counts LIMIT {COUNT_ROWS_MAX + 1}) AS n)
            > {COUNT_ROWS_MAX}
        RETURNING key, bucket, items, bytes
    )
    INSERT INTO partita_counts (key, bucket, items, bytes)
    SELECT key, bucket, sum(items), sum(bytes) FROM appended GROUP BY key, bucket"""
_FORGET_COMMITS: Final = "DELETE FROM partita_commits WHERE at < now() - interval '1 hour'"
_SEEN: Final = "UPDATE partita_instances SET seen_at = now() WHERE number = %s"


Refresh = Callable[[AsyncConnection[Any]], Awaitable[None]]


class Leadership:
    """Says every second that this server is there, and asks to lead."""

    def __init__(self, connections: Connections, instance: int, refresh: Refresh) -> None:
        """`refresh` is what else is to be done as often."""
        self._connections = connections
        self._instance = instance
        self._refresh = refresh
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = asyncio.Event()
        self.lease: Lease | None = None
        """While this server leads, as far as it knows; its commits find out."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        if self._task is None:
            return
        self._is_stopping.set()
        await self._task
        if self.lease is None:
            return
        try:
            async with self._connections.one() as connection:
                await connection.execute(_RELEASE, [NAME, self._instance])
        except StorageError as error:
            logger.warning("%s The lease runs out by itself.", error)

    async def _keep(self) -> None:
        while not self._is_stopping.is_set():
            try:
                await self._renew()
                self._connections.availability.recover()
            except StorageError:
                self.lease = None
            except OutcomeUnknown:
                self.lease = None
                self._connections.availability.fail("its standby does not confirm commits")
            except Exception:
                self.lease = None
                logger.exception("The lease could not be renewed.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_stopping.wait(), RENEWAL_SECONDS)

    async def _renew(self) -> None:
        async with self._connections.one() as connection:
            await beat(connection)
            await connection.execute(_SEEN, [self._instance])
            parameters = {"name": NAME, "holder": self._instance, "seconds": LEASE_SECONDS}
            cursor = await connection.execute(_TAKE, parameters)
            row = await cursor.fetchone()
            self.lease = None if row is None else Lease(NAME, row[0])
            if self.lease is not None:
                await connection.execute(_SUM_COUNTS)
                await connection.execute(_FORGET_COMMITS)
            await self._refresh(connection)
