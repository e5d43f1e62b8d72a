"""Connections to PostgreSQL: a bounded pool, and errors in words for an operator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from partita.errors import StorageError

CONNECT_SECONDS_MAX: Final = 10
WAIT_SECONDS_MAX: Final = 10.0
"""For a connection of the pool."""
SESSION: Final[dict[str, Any]] = {
    "autocommit": True,
    "connect_timeout": CONNECT_SECONDS_MAX,
    "application_name": "partita",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


class Connections:
    def __init__(self, url: str, count_max: int) -> None:
        self._place = place(url)
        self._pool = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=count_max,
            kwargs=SESSION,
            timeout=WAIT_SECONDS_MAX,
            open=False,
        )

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection; what the database says against a statement is a StorageError."""
        try:
            async with self._pool.connection() as connection:
                yield connection
        except PoolTimeout as error:
            raise StorageError(f"No connection to {self._place} is to be had.") from error
        except psycopg.Error as error:
            raise StorageError(f"{self._place}: {_words(error)}.") from error


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[AsyncConnection[Any]]:
    """A connection of its own, for a command."""
    try:
        async with await AsyncConnection.connect(url, **SESSION) as connection:
            yield connection
    except psycopg.Error as error:
        raise failure(url, error) from error


def failure(url: str, error: psycopg.Error) -> StorageError:
    return StorageError(f"{place(url)}: {_words(error)}.")


def place(url: str) -> str:
    """The database that a URL names, without the password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise StorageError(f"The storage is not a PostgreSQL URL: {_words(error)}.") from error
    host, port = parts.get("host", "localhost"), parts.get("port", 5432)
    return f"PostgreSQL at {host}:{port}/{parts.get('dbname', '')}"


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
