"""The archive of recovery as a table in PostgreSQL; each append to a file adds a row.

`put` and `append` return after their commit. Everything runs on one thread with its own connection.
Only the leader removes files: a server that was suspended and replaced as the leader does not know
which files have become necessary since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from psycopg import Connection

from partita.database.storage.postgresql.trip_plans import FencingLease
from partita.errors import StorageError

_REMOVE: Final = "DELETE FROM partita_archive WHERE name = %s"
_APPEND: Final = """
    INSERT INTO partita_archive (name, part, content)
    SELECT %s, coalesce(max(part) + 1, 0), %b FROM partita_archive WHERE name = %s"""
_GET: Final = "SELECT content FROM partita_archive WHERE name = %s ORDER BY part"
_SIZE: Final = """
    SELECT coalesce(sum(octet_length(content)), 0)::bigint FROM partita_archive WHERE name = %s"""
_HAS: Final = "SELECT 1 FROM partita_archive WHERE name = %s LIMIT 1"
_NAMES: Final = """
    SELECT DISTINCT name FROM partita_archive WHERE name >= %s AND name < %s ORDER BY name"""
_REMOVE_LEADING: Final = f"""
    {_REMOVE} AND EXISTS (SELECT 1 FROM partita_leases
        WHERE name = %s AND token = %s AND expires_at > now())"""


class PostgresqlArchive:
    def __init__(
        self,
        connection: Callable[[], Connection[Any]],
        lease: Callable[[], FencingLease | None] = lambda: None,
    ) -> None:
        """`delete` does nothing without a lease."""
        self._connection = connection
        self._lease = lease

    def put(self, name: str, content: bytes) -> None:
        connection = self._connection()
        with connection.transaction():
            connection.execute(_REMOVE, [name])
            connection.execute(_APPEND, [name, content, name])

    def append(self, name: str, content: bytes) -> None:
        self._connection().execute(_APPEND, [name, content, name])

    def get(self, name: str) -> bytes:
        parts = self._connection().execute(_GET, [name], binary=True).fetchall()
        if not parts:
            raise StorageError(f"{name} is not in the archive.")
        return b"".join(bytes(content) for (content,) in parts)

    def size(self, name: str) -> int:
        row = self._connection().execute(_SIZE, [name]).fetchone()
        return 0 if row is None else int(row[0])

    def has(self, name: str) -> bool:
        return self._connection().execute(_HAS, [name]).fetchone() is not None

    def names(self, prefix: str) -> list[str]:
        # A prefix ends with "/", and "0" is the next character.
        rows = self._connection().execute(_NAMES, [prefix, prefix[:-1] + "0"])
        return [name for (name,) in rows]

    def delete(self, name: str) -> None:
        lease = self._lease()
        if lease is not None:
            self._connection().execute(_REMOVE_LEADING, [name, *lease])

    def sync(self) -> None:
        """Does nothing: each call has committed already."""
