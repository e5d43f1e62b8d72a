"""PostgreSQL as the target of a copy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import Connection

from partita.copies.storage_copy.snapshot_copy import Pair
from partita.database.logs.change_log import change_log_layout
from partita.database.shared.rounds.fetched_view import COUNTED, bucket_of
from partita.database.shared.rounds.write_rounds import INSTANCE_BITS
from partita.database.shared.stored_snapshot import StoredSnapshot
from partita.database.storage.engine import Changes
from partita.database.storage.postgresql import postgresql_schema
from partita.database.storage.postgresql.long_keys import stored_key, stored_value
from partita.database.storage.postgresql.optimistic_commit import PROMISE_STAMPS, stamp_row
from partita.database.storage.postgresql.postgresql_archive import PostgresqlArchive
from partita.database.storage.postgresql.postgresql_pool import SESSION, connected, failure
from partita.database.storage.postgresql.postgresql_schema import COPYING, SCHEMA_VERSION
from partita.database.storage.postgresql.trip_plans import FencingLease
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import FORMAT_VERSION
from partita.database.tables.table_statistics import collection_size_in, statistics_delta
from partita.errors import StorageError

LEASE: Final = "copy"
FIRST_ROWS: Final = {table_layout.FORMAT_KEY: str(FORMAT_VERSION).encode()}

_PUT: Final = """
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT key, bucket, value, %s FROM unnest(%b::bytea[], %b::smallint[], %b::bytea[])
        AS x(key, bucket, value)
    ON CONFLICT (key, bucket) DO UPDATE SET value = EXCLUDED.value, version = EXCLUDED.version"""
_PUT_SUMS: Final = """
    INSERT INTO partita_sums (key, bucket, items, bytes)
    SELECT * FROM unnest(%b::bytea[], %b::smallint[], %b::bigint[], %b::bigint[])
    ON CONFLICT (key, bucket) DO UPDATE SET items = EXCLUDED.items, bytes = EXCLUDED.bytes"""
_PUT_SEQUENCES: Final = """
    INSERT INTO partita_sequences (key, last) SELECT * FROM unnest(%b::bytea[], %b::bigint[])
    ON CONFLICT (key) DO UPDATE SET last = EXCLUDED.last"""
_DELETE: Final = "DELETE FROM {} WHERE key = ANY(%b::bytea[])"
_REGISTER: Final = "INSERT INTO partita_instances DEFAULT VALUES RETURNING number"
_TAKE_OVER: Final = """
    INSERT INTO partita_leases AS l (name, holder, token, expires_at)
    VALUES (%s, 0, 1, 'infinity')
    ON CONFLICT (name) DO UPDATE SET token = l.token + 1 RETURNING token"""
_HOLD: Final = "SELECT 1 FROM partita_leases WHERE name = %s AND token = %s FOR SHARE"
_RELEASE: Final = "DELETE FROM partita_leases WHERE name = %s"
_HAS_DATA: Final = "SELECT EXISTS (SELECT 1 FROM partita_rows WHERE key <> ALL (%s))"
_SERVERS: Final = """
    SELECT count(*) FROM partita_instances
    WHERE seen_at > now() - interval '10 seconds' AND endpoint <> ''"""


def create_tables(url: str, *, is_copied_into: bool = False) -> bool:
    """Creates the tables of shared storage that are missing; returns True if there were any."""

    async def run() -> bool:
        async with connected(url) as connection:
            return await postgresql_schema.init(
                connection, FIRST_ROWS, is_copied_into=is_copied_into
            )

    return asyncio.run(run())


class PostgresqlTarget:
    """A database without data, or with an unfinished copy.

    A new copy takes over the lease of an older one. Every write checks the lease: a copy that was
    suspended for long must not continue in a database that another one has finished.
    """

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        with connection.transaction():
            self._lease = FencingLease(LEASE, self._value(_TAKE_OVER, LEASE))
            version = self._value("SELECT max(version) FROM partita_format")
            empty_keys = [table_layout.FORMAT_KEY, table_layout.SECRET_KEY]
            if version != COPYING and self._value(_HAS_DATA, empty_keys):
                raise StorageError("The database has data already: copy into a new one.")
            if self._value(_SERVERS):
                raise StorageError("Servers are running on the database: stop them first.")
            self._run("UPDATE partita_format SET version = %s", COPYING)
            self._version = self._value(_REGISTER) << INSTANCE_BITS
        self.archive = PostgresqlArchive(lambda: connection, lambda: self._lease)

    def pairs(self, start: bytes, stop: bytes) -> list[Pair]:
        with self._connection.transaction():
            return list(StoredSnapshot(self._connection).range(start, stop))

    def write(self, changes: Changes) -> None:
        puts = {key: value for key, value in changes.items() if value is not None}
        removed = [key for key, value in changes.items() if value is None]
        space = next(iter(changes))[:1]
        with self._connection.transaction():
            self._check_lease()
            if space in COUNTED:
                self._put_sums(puts, removed)
            elif space == change_log_layout.SEQUENCES:
                numbers = [int.from_bytes(value, "big") for value in puts.values()]
                self._run(_PUT_SEQUENCES, list(puts), numbers)
                self._run(_DELETE.format("partita_sequences"), removed)
            else:
                self._version += 1
                buckets = [bucket_of(key) for key in puts]
                values = [stored_value(key, value) for key, value in puts.items()]
                self._run(_PUT, self._version, list(map(stored_key, puts)), buckets, values)
                self._run(_DELETE.format("partita_rows"), list(map(stored_key, removed)))

    def _put_sums(self, puts: dict[bytes, bytes], removed: list[bytes]) -> None:
        # Readers add the rows of partita_counts to the sum, so none may be left beside a new sum.
        self._run(_DELETE.format("partita_counts"), [*puts, *removed])
        self._run(_DELETE.format("partita_sums"), removed)
        sums = [
            (0, collection_size_in(value))
            if key.startswith(table_layout.COLLECTIONS)
            else statistics_delta(None, value)
            for key, value in puts.items()
        ]
        buckets = [bucket_of(key) for key in puts]
        items, sizes = [count for count, _ in sums], [size for _, size in sums]
        self._run(_PUT_SUMS, list(puts), buckets, items, sizes)

    def promise_stamps(self, stamp: int, prefixes: Iterable[bytes]) -> None:
        """Makes later commits of some tables get stamps above `stamp`."""
        self._run(PROMISE_STAMPS, stamp, [stamp_row(prefix) for prefix in prefixes])

    def finish(self) -> None:
        with self._connection.transaction():
            self._check_lease()
            self._run(_RELEASE, LEASE)
            self._run("UPDATE partita_catalog SET version = version + 1")
            self._run("UPDATE partita_format SET version = %s", SCHEMA_VERSION)

    def _run(self, statement: str, *parameters: Any) -> None:
        self._connection.execute(statement, parameters, binary=True)

    def _check_lease(self) -> None:
        if self._value(_HOLD, *self._lease) is None:
            raise StorageError("Another copy into the database has begun: this one ends.")

    def _value(self, statement: str, *parameters: Any) -> Any:
        row = self._connection.execute(statement, parameters).fetchone()
        return None if row is None else row[0]


@contextmanager
def postgresql_target(url: str) -> Iterator[PostgresqlTarget]:
    try:
        with psycopg.connect(url, **SESSION) as connection:
            yield PostgresqlTarget(connection)
    except psycopg.Error as error:
        raise failure(url, error) from error
