"""Connections to PostgreSQL: a bounded pool, and error messages for operators."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from partita.database.storage.postgresql.availability import Availability
from partita.database.storage.postgresql.heartbeat import check_primary
from partita.database.storage.postgresql.optimistic_commit import OutcomeUnknown
from partita.database.storage.postgresql.postgresql_schema import OtherSchema
from partita.database.storage.postgresql.round_trips import notice_pooler
from partita.errors import StorageError
from partita.foundation.clock import system_stopwatch

CONNECT_SECONDS_MAX: Final = 5
WAIT_SECONDS_MAX: Final = 10.0
"""How long a request waits for a connection of the pool."""
FAILING_WAIT_SECONDS_MAX: Final = 1.0
"""How long it waits while the database is known to be unavailable; clients retry anyway."""
CHECK_SECONDS_MAX: Final = 2.0
"""How long a new connection may take to show that it leads to a primary."""
USE_SECONDS_MAX: Final = 10.0
"""After this time a connection that does not answer counts as lost."""
CLOSE_SECONDS_MAX: Final = 1.0
# The TCP settings notice a dead peer within about ten seconds, instead of two hours.
SESSION: Final[dict[str, Any]] = {
    "autocommit": True,
    "connect_timeout": CONNECT_SECONDS_MAX,
    "application_name": "partita",
    "prepare_threshold": None,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class PostgresqlPool:
    """A pool of connections to one database."""

    def __init__(self, url: str, count_max: int, *, is_primary: bool = True) -> None:
        """If `is_primary`, each new connection is checked: it has to lead to the primary."""
        self._place = place(url)
        self.availability = Availability(self._place, system_stopwatch)
        self._attempts = _Attempts()
        self._pool = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=count_max,
            kwargs={**SESSION, "load_balance_hosts": "random"} if is_primary else SESSION,
            configure=_configure if is_primary else notice_pooler,
            timeout=WAIT_SECONDS_MAX,
            # After this time the pool gives up, and the next request starts a new attempt. Its own
            # backoff would grow to minutes.
            reconnect_timeout=1.0,
            open=False,
        )

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close(CLOSE_SECONDS_MAX)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Yields a connection; errors of the database are raised as StorageError."""
        is_failing = self.availability.is_failing
        wait = FAILING_WAIT_SECONDS_MAX if is_failing else WAIT_SECONDS_MAX
        try:
            async with self._pool.connection(wait) as connection:
                limit = asyncio.get_running_loop().call_later(USE_SECONDS_MAX, hang_up, connection)
                try:
                    yield connection
                finally:
                    limit.cancel()
        except (PoolTimeout, PoolClosed) as error:
            raise self._failure(self._attempts.problem or "no connection is available") from error
        except psycopg.Error as error:
            raise self._failure(_words(error)) from error
        except OtherSchema as error:
            raise self._failure(str(error).rstrip(".")) from error

    def _failure(self, reason: str) -> StorageError:
        self.availability.fail(reason)
        return StorageError(f"{self._place}: {reason}.")


class _Attempts(logging.Handler):
    """Keeps the pool's last message about a failed attempt to connect, instead of logging all."""

    def __init__(self) -> None:
        super().__init__()
        self.problem = ""
        pool = logging.getLogger("psycopg.pool")
        pool.propagate = False
        pool.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        failures = [argument for argument in arguments if isinstance(argument, psycopg.Error)]
        self.problem = _words(failures[-1]) if failures else self.problem


async def _configure(connection: AsyncConnection[Any]) -> None:
    loop = asyncio.get_running_loop()
    limit = loop.call_later(CHECK_SECONDS_MAX, hang_up, connection)
    try:
        await notice_pooler(connection)
        await check_primary(connection)
    except OutcomeUnknown as error:
        raise psycopg.OperationalError(str(error)) from error
    finally:
        limit.cancel()


def hang_up(connection: AsyncConnection[Any]) -> None:
    """Shuts a connection down, so that whoever waits for it gets an error.

    The waiting task is not cancelled: a commit that was on its way has an unknown outcome, and the
    normal handling of lost connections finds it out.
    """
    with suppress(OSError, psycopg.Error):
        own = socket.socket(fileno=os.dup(connection.fileno()))
        with own:
            own.shutdown(socket.SHUT_RDWR)


def host_towards(connection: AsyncConnection[Any]) -> str:
    """The local address of a connection; empty for a Unix domain socket."""
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        if own.family not in (socket.AF_INET, socket.AF_INET6):
            return ""
        host: str = own.getsockname()[0]
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[AsyncConnection[Any]]:
    """Opens a single connection, for a command."""
    try:
        async with await AsyncConnection.connect(url, **SESSION) as connection:
            yield connection
    except psycopg.Error as error:
        raise failure(url, error) from error


def failure(url: str, error: psycopg.Error) -> StorageError:
    return StorageError(f"{place(url)}: {_words(error)}.")


def is_url(storage: str) -> bool:
    """True if a storage is a database URL and not a folder."""
    return storage.startswith(("postgresql://", "postgres://"))


def place(url: str) -> str:
    """A description of the database that a URL names, without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise StorageError(
            f"The storage is not a PostgreSQL URL such as postgresql://user@host/db: "
            f"{_words(error)}."
        ) from error
    host, port = parts.get("host", "localhost"), parts.get("port", 5432)
    return f"PostgreSQL at {host}:{port}/{parts.get('dbname', '')}"


def _words(error: psycopg.Error) -> str:
    """The first line of an error: the problem. Further lines have its position and hints."""
    first_line = str(error).strip().partition("\n")[0]
    return " ".join(first_line.split()).rstrip(".") or type(error).__name__
