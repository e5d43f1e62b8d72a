"""Partita's tables in PostgreSQL: created by `partita storage init`, checked at every start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.errors import DuplicateTable, UniqueViolation

from partita.errors import StorageError

SCHEMA_VERSION: Final = 2
OLDEST_VERSION: Final = 1
"""The oldest schema that this Partita works with, without later features: an upgrade replaces the
servers one by one first, and the tables when all servers are new."""
ARCHIVE_VERSION: Final = 2
"""The first schema with tables for recovery."""
COPYING: Final = 0
"""The version of a database with an unfinished copy."""
SERVER_VERSION_MIN: Final = 150_000

TABLES: Final = (
    """CREATE TABLE partita_rows (
        key bytea NOT NULL, bucket smallint NOT NULL, value bytea NOT NULL, version bigint NOT NULL,
        PRIMARY KEY (key, bucket))""",
    """CREATE TABLE partita_counts (
        key bytea NOT NULL, bucket smallint NOT NULL, items bigint NOT NULL, bytes bigint NOT NULL)
    """,
    "CREATE INDEX partita_counts_key ON partita_counts (key)",
    """CREATE TABLE partita_sums (
        key bytea NOT NULL, bucket smallint NOT NULL, items bigint NOT NULL, bytes bigint NOT NULL,
        PRIMARY KEY (key, bucket))""",
    """CREATE TABLE partita_usage (
        server bigint NOT NULL, table_number bigint NOT NULL, index_name text NOT NULL,
        reads float8 NOT NULL, writes float8 NOT NULL, at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (server, table_number, index_name))""",
    """CREATE TABLE partita_sequences (
        key bytea NOT NULL PRIMARY KEY, last bigint NOT NULL)""",
    """CREATE TABLE partita_catalog (
        id smallint NOT NULL PRIMARY KEY, version bigint NOT NULL)""",
    "INSERT INTO partita_catalog VALUES (1, 1)",
    """CREATE TABLE partita_heartbeat (
        id smallint NOT NULL PRIMARY KEY, at timestamptz NOT NULL)""",
    "INSERT INTO partita_heartbeat VALUES (1, now())",
    """CREATE TABLE partita_commits (
        token bigint NOT NULL PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())""",
    """CREATE TABLE partita_leases (
        name text NOT NULL PRIMARY KEY, holder bigint NOT NULL, token bigint NOT NULL,
        expires_at timestamptz NOT NULL)""",
    """CREATE TABLE partita_instances (
        number bigint NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        started_at timestamptz NOT NULL DEFAULT now(), seen_at timestamptz NOT NULL DEFAULT now(),
        endpoint text NOT NULL DEFAULT '', secret text NOT NULL DEFAULT '')
    """,
    "CREATE TABLE partita_format (version integer NOT NULL PRIMARY KEY)",
    f"INSERT INTO partita_format VALUES ({OLDEST_VERSION})",
)
UPGRADES: Final[Mapping[int, tuple[str, ...]]] = {
    2: (
        """CREATE TABLE partita_recovery (
            key bytea NOT NULL, stamp bigint NOT NULL, place bytea NOT NULL, value bytea)""",
        "CREATE INDEX partita_recovery_stamp ON partita_recovery (key, stamp)",
        """CREATE TABLE partita_archive (
            name text COLLATE "C" NOT NULL, part bigint NOT NULL, content bytea NOT NULL,
            PRIMARY KEY (name, part))""",
    ),
}
"""The statements that upgrade a schema to a version, from the version before it."""

_FIRST_ROW: Final = "INSERT INTO partita_rows (key, bucket, value, version) VALUES (%b, 0, %b, 1)"
_EXISTS: Final = "SELECT to_regclass('partita_format') IS NOT NULL"


class OtherSchema(StorageError):
    """Raised when the schema was changed to an unknown version while this server is running."""


async def init(
    connection: AsyncConnection[Any], rows: Mapping[bytes, bytes], *, is_copied_into: bool = False
) -> bool:
    """Creates the tables that are missing; returns True if there were any."""
    try:
        return await _init(connection, rows, is_copied_into=is_copied_into)
    except (UniqueViolation, DuplicateTable):
        # Another process has just created them.
        return await _init(connection, rows, is_copied_into=is_copied_into)


async def add_row(connection: AsyncConnection[Any], key: bytes, value: bytes) -> None:
    """Adds a row unless it exists: if several servers start at once, the first one adds it."""
    await connection.execute(f"{_FIRST_ROW} ON CONFLICT DO NOTHING", [key, value])


async def _init(
    connection: AsyncConnection[Any], rows: Mapping[bytes, bytes], *, is_copied_into: bool
) -> bool:
    async with connection.transaction():
        is_new = not await _value(connection, _EXISTS)
        if is_new:
            for statement in TABLES:
                await connection.execute(statement)
            for key, value in rows.items():
                await connection.execute(_FIRST_ROW, [key, value])
        else:
            await check(connection, is_copied_into=is_copied_into)
        return await _upgrade(connection) or is_new


async def _upgrade(connection: AsyncConnection[Any]) -> bool:
    """Upgrades the schema; servers that do not know the new one stop answering with this commit."""
    current = await _value(connection, "SELECT max(version) FROM partita_format")
    missing = [version for version in UPGRADES if COPYING < current < version]
    for version in missing:
        for statement in UPGRADES[version]:
            await connection.execute(statement)
        await connection.execute("UPDATE partita_format SET version = %s", [version])
    return bool(missing)


async def check(
    connection: AsyncConnection[Any], *, is_copied_into: bool = False, oldest: int = OLDEST_VERSION
) -> None:
    """Refuses a database without Partita's tables, or with a schema of an unsupported version."""
    server_version = connection.info.server_version
    if server_version < SERVER_VERSION_MIN:
        raise StorageError(
            f"The database is PostgreSQL {server_version // 10_000}; Partita needs "
            f"{SERVER_VERSION_MIN // 10_000} or newer."
        )
    if not await _value(connection, _EXISTS):
        raise StorageError(
            "The database has no tables of Partita; create them with partita storage init."
        )
    version = await _value(connection, "SELECT max(version) FROM partita_format")
    if not (version == COPYING and is_copied_into):
        problem = version_problem(version)
        if problem:
            raise StorageError(problem)
        if version < oldest:
            raise StorageError(
                f"The database has schema {version}; when all servers support schema "
                f"{SCHEMA_VERSION}, run partita storage init to upgrade it."
            )


def version_problem(version: int) -> str:
    """The reason why a schema version cannot be used; empty if it can."""
    if version == COPYING:
        return (
            "A copy into the database was not finished; run partita storage copy or partita "
            "restore again."
        )
    if not OLDEST_VERSION <= version <= SCHEMA_VERSION:
        return (
            f"The database has schema {version}, but this Partita supports {OLDEST_VERSION} to "
            f"{SCHEMA_VERSION}; use a matching version of Partita."
        )
    return ""


async def register(connection: AsyncConnection[Any]) -> int:
    """Returns a unique number for this start of a server."""
    number: int = await _value(
        connection, "INSERT INTO partita_instances DEFAULT VALUES RETURNING number"
    )
    return number


async def _value(connection: AsyncConnection[Any], statement: str) -> Any:
    cursor = await connection.execute(statement)
    row = await cursor.fetchone()
    return None if row is None else row[0]


_SERVERS = """
    SELECT number, started_at, number = (SELECT holder FROM partita_leases
        WHERE name = 'upkeep' AND expires_at > now())
    FROM partita_instances WHERE seen_at > now() - interval '10 seconds' ORDER BY number"""
_ROWS = """
    SELECT reltuples::bigint, pg_table_size(oid) FROM pg_class
    WHERE oid = 'partita_rows'::regclass"""


async def status(connection: AsyncConnection[Any]) -> AsyncIterator[str]:
    """Yields the lines of `partita storage status`."""
    version = await _value(connection, "SELECT max(version) FROM partita_format")
    catalog = await _value(connection, "SELECT version FROM partita_catalog")
    yield f"schema {version}, catalog version {catalog}"
    if version < SCHEMA_VERSION:
        yield f"partita storage init upgrades it to schema {SCHEMA_VERSION}"
    cursor = await connection.execute(_ROWS)
    for rows, size in await cursor.fetchall():
        yield f"about {max(rows, 0)} rows, {size} bytes"
    cursor = await connection.execute(_SERVERS)
    for number, started_at, leads in await cursor.fetchall():
        leader = ", leads" if leads else ""
        yield f"server {number}, started {started_at:%Y-%m-%d %H:%M:%S%z}{leader}"
