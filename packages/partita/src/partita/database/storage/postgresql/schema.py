"""The tables in PostgreSQL: created once, checked at every start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.errors import DuplicateTable, UniqueViolation

from partita.errors import StorageError

SCHEMA_VERSION: Final = 2
OLDEST_VERSION: Final = 1
"""What this Partita works with too, without what came later: servers are replaced one by one, and
the tables when all of them are new."""
ARCHIVE_VERSION: Final = 2
"""From which on there are tables for recovery."""
COPYING: Final = 0
"""The version of a database that a copy has not been finished into."""
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
"""What makes a schema of the one before it."""

_FIRST_ROW: Final = "INSERT INTO partita_rows (key, bucket, value, version) VALUES (%b, 0, %b, 1)"
_EXISTS: Final = "SELECT to_regclass('partita_format') IS NOT NULL"


class OtherSchema(StorageError):
    """While this server runs, the tables have become others than those it works with."""


async def init(
    connection: AsyncConnection[Any], rows: Mapping[bytes, bytes], *, is_copied_into: bool = False
) -> bool:
    """Create the tables, with some first rows, or those that are missing; whether any was."""
    try:
        return await _init(connection, rows, is_copied_into=is_copied_into)
    except (UniqueViolation, DuplicateTable):
        # Somebody else has just created them.
        return await _init(connection, rows, is_copied_into=is_copied_into)


async def add_row(connection: AsyncConnection[Any], key: bytes, value: bytes) -> None:
    """Add a row unless it is there; of servers that start at once, the first one adds it."""
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
    """Servers that do not know the new schema stop answering with the commit of this."""
    found = await _value(connection, "SELECT max(version) FROM partita_format")
    missing = [version for version in UPGRADES if COPYING < found < version]
    for version in missing:
        for statement in UPGRADES[version]:
            await connection.execute(statement)
        await connection.execute("UPDATE partita_format SET version = %s", [version])
    return bool(missing)


async def check(
    connection: AsyncConnection[Any], *, is_copied_into: bool = False, oldest: int = OLDEST_VERSION
) -> None:
    """Refuse a database that has no tables of ours, or those of another version."""
    found = connection.info.server_version
    if found < SERVER_VERSION_MIN:
        raise StorageError(
            f"The database is PostgreSQL {found // 10_000}; Partita needs "
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
                f"The database has schema {version}; run partita storage init, which makes it "
                f"{SCHEMA_VERSION}, when all servers know that."
            )


def version_problem(version: int) -> str:
    """What is wrong with tables that another Partita, or an unfinished copy, has left."""
    if version == COPYING:
        return (
            "A copy into the database was not finished; run partita storage copy, or partita "
            "restore, again."
        )
    if not OLDEST_VERSION <= version <= SCHEMA_VERSION:
        return (
            f"The database has schema {version}, this Partita works with {OLDEST_VERSION} to "
            f"{SCHEMA_VERSION}; use the Partita that fits."
        )
    return ""


async def register(connection: AsyncConnection[Any]) -> int:
    """The number of this start of a server: no two have the same."""
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
    """Lines for an operator."""
    found = await _value(connection, "SELECT max(version) FROM partita_format")
    catalog = await _value(connection, "SELECT version FROM partita_catalog")
    yield f"schema {found}, catalog version {catalog}"
    if found < SCHEMA_VERSION:
        yield f"partita storage init makes it schema {SCHEMA_VERSION}, for servers that know it"
    cursor = await connection.execute(_ROWS)
    for rows, size in await cursor.fetchall():
        yield f"about {max(rows, 0)} rows, {size} bytes"
    cursor = await connection.execute(_SERVERS)
    for number, started_at, leads in await cursor.fetchall():
        leader = ", leads" if leads else ""
        yield f"server {number}, started {started_at:%Y-%m-%d %H:%M:%S%z}{leader}"
