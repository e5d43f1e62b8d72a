"""Connections to MariaDB or MySQL: a pool, locks by name, and transactions that are repeated when
the server aborts them to resolve a deadlock."""

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

from metric_catalogue.failures import CatalogueError, DatabaseUnavailable, Moved, Unavailable
from partita.errors import PartitaError

# It logs every warning of the server, even for CREATE TABLE IF NOT EXISTS.
logging.getLogger("asyncmy").setLevel(logging.ERROR)

PASSWORD = "PARTITA_METRICS_PASSWORD"
PORT = 3306
CONNECT_SECONDS_MAX = 10
ANSWER_SECONDS_MAX = 60
"""Longer than a statement may wait for a lock."""
IDLE_SECONDS_MAX = 1.0
"""After which a connection is pinged before it is used."""
LOCK_SECONDS_MAX = 10
HOLDER_SECONDS = 1.0
"""After which who waits for a lock looks who has it."""
LOCKS_MAX = 8
TRIES_MAX = 10
DEADLOCK, LOCK_WAIT = 1213, 1205
DUPLICATE = 1062
REFUSED_BY_TRIGGER = 1644
SETTINGS = (
    # A statement sees what was committed before it, not before the transaction's first statement.
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION group_concat_max_len = 1000000",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES'",
)
LOCK_HOLDER = """
SELECT ID, USER, HOST, NULL AS trx_started
FROM information_schema.PROCESSLIST WHERE ID = IS_USED_LOCK(%s)
"""

UNAVAILABLE = (OSError, OperationalError, InternalError, asyncio.IncompleteReadError)
"""Lost connections, and errors that may pass. Others are bugs."""

Row = dict[str, Any]
T = TypeVar("T")


class Address(NamedTuple):
    host: str
    port: int
    user: str
    password: str
    database: str

    def __repr__(self) -> str:
        return f"mysql://{self.user}@{self.host}:{self.port}/{self.database}"


def parse_address(url: str, environment: Mapping[str, str] = os.environ) -> Address:
    """`mysql://user:password@host:port/database`; the password may be in the environment."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    if parts.scheme not in ("mysql", "mariadb") or not parts.hostname or not database:
        raise _malformed()
    try:
        port = parts.port or PORT
    except ValueError:
        raise _malformed() from None
    return Address(
        host=parts.hostname,
        port=port,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or "") or environment.get(PASSWORD, ""),
        database=unquote(database),
    )


class LockHeld(Unavailable):
    pass


def _malformed() -> PartitaError:
    # Without the URL, which may contain a password.
    return PartitaError("Name the database as mysql://user@host:port/database.")


class Session:
    """One connection, inside or outside a transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.number = int(connection.thread_id())
        """As the server counts it."""
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
        """Whether it can be used: the server may have been restarted meanwhile."""
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
    def __init__(
        self,
        address: Address,
        connections: int = 16,
        lock_seconds: int = LOCK_SECONDS_MAX,
        now: Callable[[], float] = monotonic,
    ) -> None:
        """`lock_seconds`: how long a statement waits for a row."""
        self.address = address
        self.server_of: Callable[[int], Awaitable[str | None]] | None = None
        """Which server of the catalogue has a session, where somebody knows."""
        self._lock_seconds = lock_seconds
        self._now = now
        self._free: list[Session] = []
        self._open: WeakSet[Session] = WeakSet()
        self._places = asyncio.Semaphore(connections)
        # Separate, because the holder of a lock needs another connection for its work.
        self._lock_places = asyncio.Semaphore(LOCKS_MAX)

    @asynccontextmanager
    async def session(self, places: asyncio.Semaphore | None = None) -> AsyncIterator[Session]:
        """Errors of the connection become Unavailable, and it is not used again."""
        async with places or self._places:
            session = await self._take()
            try:
                yield session
            except CatalogueError:
                # A refusal; its transaction has been rolled back.
                self._put_back(session)
                raise
            except UNAVAILABLE as error:
                session.close()
                raise self._unavailable(error) from error
            except BaseException:
                # The work that broke off may have left a statement or a transaction open.
                session.close()
                raise
            self._put_back(session)

    async def _take(self) -> Session:
        while self._free:
            session = self._free.pop()
            is_fresh = self._now() - session.used_at <= IDLE_SECONDS_MAX
            if is_fresh or await session.answers():
                return session
        return await self._connect()

    def _put_back(self, session: Session) -> None:
        session.used_at = self._now()
        self._free.append(session)

    async def _connect(self) -> Session:
        address = self.address
        try:
            connection = await asyncmy.connect(
                host=address.host,
                port=address.port,
                user=address.user,
                password=address.password,
                database=address.database,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=CONNECT_SECONDS_MAX,
            )
            session = Session(connection)
            for statement in SETTINGS:
                await session.run(statement)
            await session.run(f"SET SESSION innodb_lock_wait_timeout = {self._lock_seconds}")
        except (OSError, Error) as error:
            raise self._unavailable(error) from error
        self._open.add(session)
        return session

    def sessions(self) -> list[int]:
        """Their numbers; some may have ended."""
        return [session.number for session in self._open]

    def _unavailable(self, error: BaseException) -> Unavailable:
        if number(error) == REFUSED_BY_TRIGGER:
            # The fence, which no other trigger resembles.
            return Moved()
        reason = error.args[-1] if error.args else type(error).__name__
        return DatabaseUnavailable(f"The database {self.address!r} does not answer: {reason}")

    async def rows(self, statement: str, *values: object) -> list[Row]:
        """The rows of a query, which is repeated when a connection turns out to be lost."""
        try:
            async with self.session() as session:
                return await session.rows(statement, *values)
        except Unavailable:
            self.close()
            async with self.session() as session:
                return await session.rows(statement, *values)

    async def transaction(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """The result of `work`, after the commit; `work` may be called more than once."""
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

    async def naming_holders(self, session: Session, work: Awaitable[T]) -> T:
        """The result of `work`. When it waits for a row in vain, the error says who has that."""
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
            held = "; ".join(holders) or "a session that the server does not name"
            raise LockHeld(f"A row is locked by {held}: end that, or try again.") from error
        finally:
            task.cancel()

    async def _holders(self, waiting: int) -> list[str]:
        # Needed by those who wait, and not quickly imported.
        from partita_migrate.moving.fences.mariadb import HOLDERS
        from partita_migrate.moving.fences.session import VALUE

        for statement in HOLDERS:
            # MariaDB's is none of MySQL's, and the other way round.
            with suppress(CatalogueError, Error):
                if found := await self._described(statement.replace(VALUE, "%s"), waiting):
                    return found
        return []

    async def open_transactions(self) -> list[str]:
        """Returns the sessions with an open transaction. CREATE TRIGGER, by which the fence is
        installed, waits for all of them."""
        from partita_migrate.moving.fences.mariadb import OPEN_ONES

        return await self._described(*OPEN_ONES)

    async def _described(self, statement: str, *values: object) -> list[str]:
        found = []
        for row in await self.rows(statement, *values):
            begun = row["trx_started"]
            since = f", in a transaction since {begun:%H:%M:%S}" if begun is not None else ""
            server = await self.server_of(row["ID"]) if self.server_of is not None else None
            named = f", which is the server {server}" if server else ""
            found.append(f"session {row['ID']} of {row['USER']} at {row['HOST']}{since}{named}")
        return found

    @asynccontextmanager
    async def lock(self, name: str, seconds_max: float = LOCK_SECONDS_MAX) -> AsyncIterator[None]:
        """A named lock of the server; it ends with the connection, even if this process dies."""
        key = _lock_key(name)
        async with self.session(self._lock_places) as session:
            got = await session.row("SELECT GET_LOCK(%s, %s) AS got", key, seconds_max)
            if got is None or got["got"] != 1:
                held = await self._described(LOCK_HOLDER, key) or ["another process"]
                raise LockHeld(f"The lock {name!r} is held by {held[0]}: try again.")
            try:
                yield
            finally:
                # A server that was restarted meanwhile has forgotten it.
                with suppress(*UNAVAILABLE):
                    await session.row("SELECT RELEASE_LOCK(%s)", key)

    def close(self) -> None:
        """Close idle connections."""
        for session in self._free:
            session.close()
        self._free.clear()


def _lock_key(name: str) -> str:
    """A name has 64 characters at most. Computed here: MySQL 9.6 has no MD5() any more."""
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def number(error: BaseException) -> int:
    """The number of a server's error; 0 for others."""
    found = error.args[0] if error.args else 0
    return found if isinstance(found, int) else 0
