"""Connections to MariaDB or MySQL: a pool, named locks, and transactions that are repeated when the
server aborts them to resolve a deadlock."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

import asyncmy
from asyncmy.cursors import Cursor, DictCursor
from asyncmy.errors import Error, InternalError, OperationalError

from metric_catalogue.metrics.catalogue_errors import (
    CatalogueError,
    CatalogueMoved,
    CatalogueUnavailable,
    DatabaseUnavailable,
)
from partita.errors import PartitaError

# asyncmy logs every warning of the server, even for CREATE TABLE IF NOT EXISTS.
logging.getLogger("asyncmy").setLevel(logging.ERROR)

PASSWORD = "PARTITA_METRICS_PASSWORD"
PORT = 3306
CONNECT_SECONDS_MAX = 10
ANSWER_SECONDS_MAX = 60
"""How long a statement may take. This is longer than it may wait for a lock."""
IDLE_SECONDS_MAX = 1.0
"""A connection that was idle for longer is pinged before it is used."""
LOCK_SECONDS_MAX = 10
HOLDER_SECONDS = 1.0
"""A statement that takes longer looks up which session holds the lock that it waits for."""
LOCKS_MAX = 8
TRIES_MAX = 10
DEADLOCK, LOCK_WAIT = 1213, 1205
DUPLICATE = 1062
REFUSED_BY_TRIGGER = 1644
SETTINGS = (
    # With READ COMMITTED a statement sees what was committed before it began; with the default,
    # REPEATABLE READ, it sees what was committed before the transaction's first read.
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION group_concat_max_len = 1000000",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES'",
)
LOCK_HOLDER = """
SELECT ID, USER, HOST, NULL AS trx_started
FROM information_schema.PROCESSLIST WHERE ID = IS_USED_LOCK(%s)
"""

UNAVAILABLE = (OSError, OperationalError, InternalError, asyncio.IncompleteReadError)
"""Lost connections, and errors that may pass. Other errors are bugs."""

Row = dict[str, Any]
T = TypeVar("T")


class DatabaseAddress(NamedTuple):
    host: str
    port: int
    user: str
    password: str
    database: str

    def __repr__(self) -> str:
        return f"mysql://{self.user}@{self.host}:{self.port}/{self.database}"


def parse_address(url: str, environment: Mapping[str, str] = os.environ) -> DatabaseAddress:
    """Parses `mysql://user:password@host:port/database`. The password may instead be in the
    environment variable PARTITA_METRICS_PASSWORD."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    if parts.scheme not in ("mysql", "mariadb") or not parts.hostname or not database:
        raise _malformed()
    try:
        port = parts.port or PORT
    except ValueError:
        raise _malformed() from None
    return DatabaseAddress(
        host=parts.hostname,
        port=port,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or "") or environment.get(PASSWORD, ""),
        database=unquote(database),
    )


class LockTimeout(CatalogueUnavailable):
    """Raised when another session held a lock for too long. The message names that session."""


def _malformed() -> PartitaError:
    # The message does not repeat the URL, which may contain a password.
    return PartitaError("Name the database as mysql://user@host:port/database.")


class DatabaseSession:
    """One connection, inside or outside a transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.number = int(connection.thread_id())
        """The server's number of the connection, as PROCESSLIST shows it."""
        self.used_at = 0.0

    @asynccontextmanager
    async def _cursor(self, kind: type[Cursor] = Cursor) -> AsyncIterator[Any]:
        async with asyncio.timeout(ANSWER_SECONDS_MAX), self._connection.cursor(kind) as cursor:
            yield cursor

    async def rows(self, statement: str, *values: object) -> list[Row]:
        async with self._cursor(DictCursor) as cursor:
            await cursor.execute(statement, values or None)
            return list(await cursor.fetchall())

    async def row(self, statement: str, *values: object) -> Row | None:
        rows = await self.rows(statement, *values)
        return rows[0] if rows else None

    async def run(self, statement: str, *values: object) -> int:
        """Returns the number of rows that it changed."""
        async with self._cursor() as cursor:
            return int(await cursor.execute(statement, values or None))

    async def run_many(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        if rows:
            async with self._cursor() as cursor:
                await cursor.executemany(statement, rows)

    async def insert(self, statement: str, *values: object) -> int:
        """Returns the id of the new row."""
        async with self._cursor() as cursor:
            await cursor.execute(statement, values or None)
            return int(cursor.lastrowid)

    async def begin(self) -> None:
        await self.run("BEGIN")

    async def commit(self) -> None:
        await self.run("COMMIT")

    async def rollback(self) -> None:
        await self.run("ROLLBACK")

    async def answers(self) -> bool:
        """Pings the server, which may have been restarted. Returns False, and closes the
        connection, when it is lost."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                await self._connection.ping(reconnect=False)
        except (Error, OSError):
            self.close()
            return False
        return True

    def close(self) -> None:
        self._connection.close()


class ConnectionPool:
    """Connections to one database."""

    def __init__(
        self,
        address: DatabaseAddress,
        connections: int = 16,
        lock_seconds: int = LOCK_SECONDS_MAX,
        now: Callable[[], float] = monotonic,
    ) -> None:
        """`lock_seconds` is how long a statement waits for a locked row."""
        self.address = address
        self.server_of: Callable[[int], Awaitable[str | None]] | None = None
        """Finds which server of the catalogue a session belongs to, for error messages."""
        self._lock_seconds = lock_seconds
        self._now = now
        self._free: list[DatabaseSession] = []
        self._open: WeakSet[DatabaseSession] = WeakSet()
        self._places = asyncio.Semaphore(connections)
        # Locks have connections of their own: the holder of one needs another for its work, and
        # holders alone could use up the pool.
        self._lock_places = asyncio.Semaphore(LOCKS_MAX)

    @asynccontextmanager
    async def session(
        self, places: asyncio.Semaphore | None = None
    ) -> AsyncIterator[DatabaseSession]:
        """Lends a connection. A connection with an error is not used again, and the error becomes a
        CatalogueUnavailable."""
        async with places or self._places:
            session = await self._take()
            try:
                yield session
            except CatalogueError:
                # The request was refused and its transaction rolled back; the connection is fine.
                self._put_back(session)
                raise
            except UNAVAILABLE as error:
                session.close()
                raise self._unavailable(error) from error
            except BaseException:
                # The interrupted work may have left a statement or a transaction open.
                session.close()
                raise
            self._put_back(session)

    async def _take(self) -> DatabaseSession:
        while self._free:
            session = self._free.pop()
            is_fresh = self._now() - session.used_at <= IDLE_SECONDS_MAX
            if is_fresh or await session.answers():
                return session
        return await self._connect()

    def _put_back(self, session: DatabaseSession) -> None:
        session.used_at = self._now()
        self._free.append(session)

    async def _connect(self) -> DatabaseSession:
        address = self.address
        try:
            connection = await asyncmy.connect(
                host=address.host,
                port=address.port,
                user=address.user,
                password=address.password,
                database=address.database,
                # "utf8" would be MariaDB's alias for three-byte UTF-8.
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=CONNECT_SECONDS_MAX,
            )
            session = DatabaseSession(connection)
            for statement in SETTINGS:
                await session.run(statement)
            await session.run(f"SET SESSION innodb_lock_wait_timeout = {self._lock_seconds}")
        except (OSError, Error) as error:
            raise self._unavailable(error) from error
        self._open.add(session)
        return session

    def sessions(self) -> list[int]:
        """Returns the numbers of this server's connections; some may have ended."""
        return [session.number for session in self._open]

    def _unavailable(self, error: BaseException) -> CatalogueUnavailable:
        if number(error) == REFUSED_BY_TRIGGER:
            # The triggers of the fence raise it; the schema has no other triggers.
            return CatalogueMoved()
        reason = error.args[-1] if error.args else type(error).__name__
        return DatabaseUnavailable(f"The database {self.address!r} does not answer: {reason}")

    async def rows(self, statement: str, *values: object) -> list[Row]:
        """Returns the rows of a query. The query is repeated once when the connection turns out to
        be lost."""
        try:
            async with self.session() as session:
                return await session.rows(statement, *values)
        except CatalogueUnavailable:
            self.close()
            async with self.session() as session:
                return await session.rows(statement, *values)

    async def transaction(self, work: Callable[[DatabaseSession], Awaitable[T]]) -> T:
        """Runs `work` in a transaction, and returns its result after the commit. After a deadlock
        `work` is called again."""
        for tried in range(1, TRIES_MAX + 1):
            async with self.session() as session:
                try:
                    await session.begin()
                    result = await self.naming_holders(session, work(session))
                    await session.commit()
                    return result
                except Error as error:
                    with suppress(Error, OSError):
                        await session.rollback()
                    if number(error) != DEADLOCK or tried == TRIES_MAX:
                        raise
                except Exception:
                    with suppress(Error, OSError):
                        await session.rollback()
                    raise
            await asyncio.sleep(0.01 * tried)
        raise AssertionError("The last try ends with a result or an error.")

    async def naming_holders(self, session: DatabaseSession, work: Awaitable[T]) -> T:
        """Returns the result of `work`. When it waits too long for a locked row, the error names
        the session that holds the lock."""
        task = asyncio.ensure_future(work)
        holders: list[str] = []
        try:
            while not (await asyncio.wait({task}, timeout=HOLDER_SECONDS))[0]:
                with suppress(CatalogueError):
                    holders = await self._holders(session.number) or holders
            return task.result()
        except Error as error:
            if number(error) != LOCK_WAIT:
                raise
            named = "; ".join(holders) or "a session that the server does not name"
            raise LockTimeout(
                f"A row is locked by {named}: end that session, or try again."
            ) from error
        finally:
            task.cancel()

    async def _holders(self, waiting: int) -> list[str]:
        # Imported here because it takes long, and only a session that waits needs it.
        from partita_migrate.moving.switching.fences.mariadb_fence import HOLDERS
        from partita_migrate.moving.switching.fences.source_session import VALUE

        for statement in HOLDERS:
            # Lock waits are in information_schema in MariaDB and in performance_schema in MySQL;
            # each server refuses the statement of the other.
            with suppress(CatalogueError, Error):
                if sessions := await self._described(statement.replace(VALUE, "%s"), waiting):
                    return sessions
        return []

    async def open_transactions(self) -> list[str]:
        """Returns the sessions with an open transaction. CREATE TRIGGER, by which the fence is
        installed, waits for all of them."""
        from partita_migrate.moving.switching.fences.mariadb_fence import OPEN_ONES

        return await self._described(*OPEN_ONES)

    async def _described(self, statement: str, *values: object) -> list[str]:
        sessions = []
        for row in await self.rows(statement, *values):
            begun = row["trx_started"]
            since = f", in a transaction since {begun:%H:%M:%S}" if begun is not None else ""
            server = await self.server_of(row["ID"]) if self.server_of is not None else None
            named = f", which is the server {server}" if server else ""
            sessions.append(f"session {row['ID']} of {row['USER']} at {row['HOST']}{since}{named}")
        return sessions

    @asynccontextmanager
    async def lock(self, name: str, seconds_max: float = LOCK_SECONDS_MAX) -> AsyncIterator[None]:
        """Holds a named lock of the server. The server releases it with the connection, even if
        this process is killed."""
        key = _lock_key(name)
        async with self.session(self._lock_places) as session:
            row = await session.row("SELECT GET_LOCK(%s, %s) AS is_locked", key, seconds_max)
            if row is None or row["is_locked"] != 1:
                holders = await self._described(LOCK_HOLDER, key) or ["another process"]
                raise LockTimeout(f"The lock {name!r} is held by {holders[0]}: try again.")
            try:
                yield
            finally:
                # A server that was restarted meanwhile has no such lock any more.
                with suppress(*UNAVAILABLE):
                    await session.row("SELECT RELEASE_LOCK(%s)", key)

    def close(self) -> None:
        """Closes idle connections."""
        for session in self._free:
            session.close()
        self._free.clear()


def _lock_key(name: str) -> str:
    """Returns the lock's name for the server, which takes at most 64 characters. The hash is
    computed here because MySQL 9.6 has dropped MD5()."""
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def number(error: BaseException) -> int:
    """Returns the number of a server's error, such as 1213; 0 for other errors."""
    code = error.args[0] if error.args else 0
    return code if isinstance(code, int) else 0
