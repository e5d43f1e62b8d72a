"""Leader election: one server at a time holds the lease for background work, with a fencing token.

The server that holds the lease passes its token with every commit of background work. A server that
lost the lease without noticing has an outdated token, and `storage/postgresql/optimistic_commit.py`
refuses its commits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from secrets import token_urlsafe
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from partita.database.storage.postgresql.heartbeat import beat
from partita.database.storage.postgresql.optimistic_commit import OutcomeUnknown
from partita.database.storage.postgresql.postgresql_pool import PostgresqlPool
from partita.database.storage.postgresql.trip_plans import FencingLease
from partita.errors import StorageError
from partita.foundation.clock import system_stopwatch

logger = logging.getLogger(__name__)

NAME: Final = "upkeep"
LEASE_SECONDS: Final = 5.0
RENEWAL_SECONDS: Final = 1.0
COUNT_ROWS_MAX: Final = 100
"""The leader sums up appended counts when there are more."""

_TAKE: Final = """
    INSERT INTO partita_leases AS l (name, holder, token, expires_at)
    VALUES (%(name)s, %(holder)s, 1, now() + make_interval(secs => %(seconds)s))
    ON CONFLICT (name) DO UPDATE SET
        token = l.token + CASE WHEN l.holder = EXCLUDED.holder THEN 0 ELSE 1 END,
        holder = EXCLUDED.holder, expires_at = EXCLUDED.expires_at
    WHERE l.holder = EXCLUDED.holder OR l.expires_at < now()
    RETURNING token"""
_RELEASE: Final = "UPDATE partita_leases SET expires_at = now() WHERE name = %s AND holder = %s"
_HAS_MANY_COUNTS: Final = f"""
    SELECT count(*) > {COUNT_ROWS_MAX}
    FROM (SELECT 1 FROM partita_counts LIMIT {COUNT_ROWS_MAX + 1}) AS n"""
_TAKE_COUNTS: Final = "DELETE FROM partita_counts RETURNING key, bucket, items, bytes"
_ADD_SUMS: Final = """
    INSERT INTO partita_sums AS s (key, bucket, items, bytes)
    SELECT * FROM unnest(%b::bytea[], %b::smallint[], %b::bigint[], %b::bigint[])
    ON CONFLICT (key, bucket) DO UPDATE SET
        items = s.items + EXCLUDED.items, bytes = s.bytes + EXCLUDED.bytes"""
_REMOVE_ZEROS: Final = """
    DELETE FROM partita_sums WHERE key = ANY(%b::bytea[]) AND items = 0 AND bytes = 0"""
_FORGET_COMMITS: Final = "DELETE FROM partita_commits WHERE at < now() - interval '1 hour'"
_FORGET_USAGE: Final = "DELETE FROM partita_usage WHERE at < now() - interval '1 hour'"
_REGISTER: Final = """
    UPDATE partita_instances SET seen_at = now(), endpoint = %s, secret = %s WHERE number = %s"""
_LEADER: Final = """
    SELECT i.number, i.endpoint, i.secret FROM partita_leases l
    JOIN partita_instances i ON i.number = l.holder WHERE l.name = %s AND l.expires_at > now()"""

Refresh = Callable[[AsyncConnection[Any]], Awaitable[None]]


class LeadingServer(NamedTuple):
    """The server that does the background work, and how to reach it."""

    number: int
    endpoint: str
    secret: str
    """Proves that a request comes from another of these servers."""


class LeaderElection:
    """Registers this server and asks for the lease, once a second."""

    def __init__(self, connections: PostgresqlPool, instance: int, refresh: Refresh) -> None:
        """`refresh` is called with every renewal."""
        self._connections = connections
        self._instance = instance
        self._refresh = refresh
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = asyncio.Event()
        self._renewed_at = 0.0
        self.lease: FencingLease | None = None
        """The lease, while this server believes that it leads; its commits check it."""
        self.leader: LeadingServer | None = None
        self.endpoint = ""
        """The URL at which the other servers reach this one."""
        self.secret = token_urlsafe()
        self.on_change: Callable[[], None] = _nothing

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
            logger.warning("%s The lease will expire by itself.", error)

    async def _keep(self) -> None:
        while not self._is_stopping.is_set():
            try:
                await self._renew()
                self._connections.availability.recover()
            except StorageError:
                self._forget_lease()
            except OutcomeUnknown:
                self._forget_lease()
                self._connections.availability.fail("its standby does not confirm commits")
            except Exception:
                self._forget_lease()
                logger.exception("The lease could not be renewed.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_stopping.wait(), RENEWAL_SECONDS)

    def _forget_lease(self) -> None:
        """Stop leading, but only when the lease has expired: until then, no other server can lead,
        and the database may be back in a moment."""
        if system_stopwatch() - self._renewed_at > LEASE_SECONDS:
            self._lead(None, None)

    async def _renew(self) -> None:
        began = system_stopwatch()
        async with self._connections.one() as connection:
            await self._refresh(connection)
            await beat(connection)
            await connection.execute(_REGISTER, [self.endpoint, self.secret, self._instance])
            parameters = {"name": NAME, "holder": self._instance, "seconds": LEASE_SECONDS}
            cursor = await connection.execute(_TAKE, parameters)
            row = await cursor.fetchone()
            cursor = await connection.execute(_LEADER, [NAME])
            leader = await cursor.fetchone()
            self._renewed_at = began
            self._lead(
                None if row is None else FencingLease(NAME, row[0]),
                None if leader is None else LeadingServer(*leader),
            )
            if self.lease is not None:
                await _sum_counts(connection)
                await connection.execute(_FORGET_COMMITS)
                await connection.execute(_FORGET_USAGE)

    def _lead(self, lease: FencingLease | None, leader: LeadingServer | None) -> None:
        has_changed = lease != self.lease
        self.lease, self.leader = lease, leader
        if has_changed:
            self.on_change()


async def _sum_counts(connection: AsyncConnection[Any]) -> None:
    """Add up the counts that servers have appended, if there are many rows."""
    cursor = await connection.execute(_HAS_MANY_COUNTS)
    if await cursor.fetchone() != (True,):
        return
    async with connection.transaction():
        cursor = await connection.execute(_TAKE_COUNTS, binary=True)
        sums: dict[tuple[bytes, int], tuple[int, int]] = {}
        for key, bucket, items, size in await cursor.fetchall():
            place = bytes(key), bucket
            before = sums.get(place, (0, 0))
            sums[place] = before[0] + items, before[1] + size
        rows = [(*place, *sums[place]) for place in sorted(sums)]
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            await connection.execute(_ADD_SUMS, columns, binary=True)
            await connection.execute(_REMOVE_ZEROS, [columns[0]])


def _nothing() -> None:
    pass
