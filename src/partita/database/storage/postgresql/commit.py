"""Committing: the writes of many requests in one transaction, if what they read is still so.

Two round trips. The first checks and changes what was read; a key that does not come back was
overtaken. The second writes what follows from it, and commits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection

from partita.database.storage.postgresql.fetch import Bucket

ABSENT: Final = 0
"""The version of what is not there."""
KEY_BYTES_MAX: Final = 2600
"""PostgreSQL's index takes no longer ones."""

_KEYS: Final = "unnest(%b::bytea[], %b::smallint[])"
_CHECKED: Final = "unnest(%b::bytea[], %b::smallint[], %b::bigint[]) AS x(key, bucket, version)"
_SAME_ROW: Final = "r.key = x.key AND r.bucket = x.bucket"
_LOCK_CATALOG: Final = "SELECT version FROM partita_catalog WHERE id = 1 FOR SHARE"
_CHECK_LEASE: Final = "SELECT 1 FROM partita_leases WHERE name = %s AND token = %s FOR SHARE"
_INSERT: Final = """
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT key, bucket, value, %s FROM unnest(%b::bytea[], %b::smallint[], %b::bytea[])
        AS x(key, bucket, value)
    ON CONFLICT (key, bucket) DO NOTHING RETURNING key"""
_UPDATE: Final = f"""
    UPDATE partita_rows AS r SET value = x.value, version = %s
    FROM unnest(%b::bytea[], %b::smallint[], %b::bigint[], %b::bytea[])
        AS x(key, bucket, version, value)
    WHERE {_SAME_ROW} AND r.version = x.version RETURNING r.key"""
_TOUCH: Final = f"""
    UPDATE partita_rows AS r SET version = r.version FROM {_CHECKED}
    WHERE {_SAME_ROW} AND r.version = x.version RETURNING r.key"""
_DELETE_CHECKED: Final = f"""
    DELETE FROM partita_rows AS r USING {_CHECKED}
    WHERE {_SAME_ROW} AND r.version = x.version RETURNING r.key"""
_PUT: Final = """
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT key, bucket, value, %s FROM unnest(%b::bytea[], %b::smallint[], %b::bytea[])
        AS x(key, bucket, value)
    ON CONFLICT (key, bucket) DO UPDATE SET value = EXCLUDED.value, version = EXCLUDED.version"""
_DELETE: Final = f"""
    DELETE FROM partita_rows AS r USING {_KEYS} AS x(key, bucket) WHERE {_SAME_ROW}"""
_COUNT: Final = """
    INSERT INTO partita_counts (key, bucket, items, bytes)
    SELECT * FROM unnest(%b::bytea[], %b::smallint[], %b::bigint[], %b::bigint[])"""
_START_LOGS: Final = """
    INSERT INTO partita_sequences (key, last) SELECT key, 0 FROM unnest(%b::bytea[]) AS x(key)
    ON CONFLICT (key) DO NOTHING"""
_LOG: Final = """
    WITH taken AS (
        UPDATE partita_sequences AS s SET last = s.last + x.count
        FROM unnest(%b::bytea[], %b::bigint[]) AS x(key, count)
        WHERE s.key = x.key RETURNING s.key, s.last - x.count AS before
    )
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT c.prefix || int8send(taken.before + c.number), c.bucket, c.value, %s
    FROM unnest(%b::bytea[], %b::bytea[], %b::smallint[], %b::bigint[], %b::bytea[])
        AS c(log, prefix, bucket, number, value)
    JOIN taken ON taken.key = c.log"""
_SET_SEQUENCES: Final = """
    INSERT INTO partita_sequences (key, last) SELECT * FROM unnest(%b::bytea[], %b::bigint[])
    ON CONFLICT (key) DO UPDATE SET last = EXCLUDED.last"""
_REMOVE_SEQUENCES: Final = "DELETE FROM partita_sequences WHERE key = ANY(%b::bytea[])"
_REMOVE_COUNTS: Final = "DELETE FROM partita_counts WHERE key >= %b AND key < %b"
_REMOVE_SUMS: Final = "DELETE FROM partita_sums WHERE key >= %b AND key < %b"
_TOKEN: Final = "INSERT INTO partita_commits (token) VALUES (%s)"
_TOUCH_TOKEN: Final = "UPDATE partita_commits SET at = now() WHERE token = %s"
_MOVE_CATALOG: Final = "UPDATE partita_catalog SET version = version + 1 WHERE id = 1"


class LogEntry(NamedTuple):
    """A change for a log: its key begins with a prefix and ends with its sequence number."""

    log: bytes
    prefix: bytes
    number: int
    """From 1, within this commit."""
    value: bytes


class Lease(NamedTuple):
    name: str
    token: int


@dataclass
class CommitPlan:
    """What one transaction does."""

    token: int
    """Also the version of what is written: no other commit has it."""
    catalog_version: int
    checks: dict[bytes, int] = field(default_factory=dict)
    """The versions of what was read."""
    changes: dict[bytes, bytes | None] = field(default_factory=dict)
    counts: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    removed_counts: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Ranges of their keys."""
    log_entries: list[LogEntry] = field(default_factory=list)
    sequences: dict[bytes, int | None] = field(default_factory=dict)
    """Under an exclusive lock, logs are set or removed; otherwise their entries move them."""
    lease: Lease | None = None
    moves_catalog: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.checks or self.changes or self.counts or self.log_entries)


class Overtaken(Exception):
    """Keys whose versions have changed since they were read."""

    def __init__(self, keys: set[bytes]) -> None:
        super().__init__(f"{len(keys)} keys were overtaken")
        self.keys = keys


class CatalogMoved(Exception):
    """The catalog is another one than that which the writes were decided with."""


class LeaseLost(Exception):
    """Another server does the background work now."""


class OutcomeUnknown(Exception):
    """The connection was lost while the transaction was being committed."""


class _Statements:
    """Statements that are sent together."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection

    async def run(self, statement: str, *parameters: Any) -> Any:
        return await self._connection.execute(statement, parameters, binary=True)


async def commit(connection: AsyncConnection[Any], plan: CommitPlan, bucket: Bucket) -> None:
    """Commit a plan, or leave no trace of it; says why with one of the exceptions above."""
    try:
        await check_and_change(connection, plan, bucket, begins=True)
    except (Overtaken, CatalogMoved, LeaseLost, psycopg.Error):
        await _roll_back(connection)
        raise
    await finish(connection, plan, bucket)


async def check_and_change(
    connection: AsyncConnection[Any], plan: CommitPlan, bucket: Bucket, *, begins: bool
) -> None:
    """The first round trip: lock the catalog, check what was read, change what was checked."""
    statements = _Statements(connection)
    inserted, updated, touched, deleted = _checked_keys(plan)
    checks = plan.checks
    version = plan.token
    asked: list[tuple[list[bytes], Any]] = []
    locked = lease = None
    async with connection.pipeline():
        if begins:
            await statements.run("BEGIN")
            locked = await statements.run(_LOCK_CATALOG)
        if plan.lease is not None:
            lease = await statements.run(_CHECK_LEASE, plan.lease.name, plan.lease.token)
        if inserted:
            values = [plan.changes.get(key) or b"" for key in inserted]
            buckets = [bucket(key) for key in inserted]
            asked.append(
                (inserted, await statements.run(_INSERT, version, inserted, buckets, values))
            )
        if updated:
            buckets, versions = [bucket(key) for key in updated], [checks[key] for key in updated]
            values = [plan.changes[key] or b"" for key in updated]
            parameters = (version, updated, buckets, versions, values)
            asked.append((updated, await statements.run(_UPDATE, *parameters)))
        for keys, statement in ((touched, _TOUCH), (deleted, _DELETE_CHECKED)):
            if keys:
                buckets, versions = [bucket(key) for key in keys], [checks[key] for key in keys]
                asked.append((keys, await statements.run(statement, keys, buckets, versions)))
    if locked is not None and (await locked.fetchone())[0] != plan.catalog_version:
        raise CatalogMoved
    if lease is not None and await lease.fetchone() is None:
        raise LeaseLost
    overtaken: set[bytes] = set()
    for keys, cursor in asked:
        met = {key for (key,) in await cursor.fetchall()}
        overtaken.update(key for key in keys if key not in met)
    if overtaken:
        raise Overtaken(overtaken)


async def finish(connection: AsyncConnection[Any], plan: CommitPlan, bucket: Bucket) -> None:
    """The second round trip: write what follows from what was checked, and commit."""
    statements = _Statements(connection)
    try:
        async with on_all_copies(connection), connection.pipeline():
            await _write_the_rest(statements, plan, bucket)
            await statements.run("COMMIT")
    except psycopg.Error as error:
        if connection.broken or connection.closed:
            raise OutcomeUnknown from error
        await _roll_back(connection)
        raise


async def is_committed(connection: AsyncConnection[Any], token: int) -> bool:
    """Whether a transaction with an unknown outcome was committed; if not, it never will be."""
    async with on_all_copies(connection):
        try:
            await connection.execute(_TOKEN, [token])
        except psycopg.errors.UniqueViolation:
            # Only a commit of our own says that the standby has what came before it.
            await connection.execute(_TOUCH_TOKEN, [token])
            return True
    return False


@asynccontextmanager
async def on_all_copies(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    """A commit that PostgreSQL warns of may be on the primary only: its outcome is unknown."""
    warnings: list[str] = []

    def hear(diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            warnings.append(diagnostic.message_primary)

    connection.add_notice_handler(hear)
    try:
        yield
    finally:
        connection.remove_notice_handler(hear)
    if warnings:
        raise OutcomeUnknown(*warnings)


async def _write_the_rest(statements: _Statements, plan: CommitPlan, bucket: Bucket) -> None:
    checks, version = plan.checks, plan.token
    puts = sorted(
        key for key, value in plan.changes.items() if value is not None and key not in checks
    )
    gone = sorted(
        key
        for key in {*plan.changes, *(key for key, seen in checks.items() if seen == ABSENT)}
        if plan.changes.get(key) is None and checks.get(key, ABSENT) == ABSENT
    )
    if puts:
        values = [plan.changes[key] for key in puts]
        await statements.run(_PUT, version, puts, [bucket(key) for key in puts], values)
    if gone:
        await statements.run(_DELETE, gone, [bucket(key) for key in gone])
    if plan.counts:
        keys = list(plan.counts)
        items, sizes = zip(*plan.counts.values(), strict=True)
        buckets = [bucket(key) for key in keys]
        await statements.run(_COUNT, keys, buckets, list(items), list(sizes))
    for start, stop in plan.removed_counts:
        await statements.run(_REMOVE_COUNTS, start, stop)
        await statements.run(_REMOVE_SUMS, start, stop)
    await statements.run(_TOKEN, plan.token)
    if plan.moves_catalog:
        await statements.run(_MOVE_CATALOG)
    await _write_sequences(statements, plan.sequences)
    await _append_changes(statements, plan, bucket)


async def _write_sequences(statements: _Statements, sequences: Mapping[bytes, int | None]) -> None:
    kept = {key: last for key, last in sequences.items() if last is not None}
    if kept:
        await statements.run(_SET_SEQUENCES, list(kept), list(kept.values()))
    removed = [key for key, last in sequences.items() if last is None]
    if removed:
        await statements.run(_REMOVE_SEQUENCES, removed)


async def _append_changes(statements: _Statements, plan: CommitPlan, bucket: Bucket) -> None:
    """Last of all: from here to the commit, nobody else appends to these logs."""
    entries: Sequence[LogEntry] = plan.log_entries
    if not entries:
        return
    counts: dict[bytes, int] = {}
    for entry in entries:
        counts[entry.log] = max(counts.get(entry.log, 0), entry.number)
    logs = sorted(counts)
    await statements.run(_START_LOGS, logs)
    await statements.run(
        _LOG,
        logs,
        [counts[log] for log in logs],
        plan.token,
        [entry.log for entry in entries],
        [entry.prefix for entry in entries],
        [bucket(entry.prefix) for entry in entries],
        [entry.number for entry in entries],
        [entry.value for entry in entries],
    )


def _checked_keys(plan: CommitPlan) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
    """What was read, in one order for all transactions: to insert, update, touch and delete."""
    inserted, updated, touched, deleted = [], [], [], []
    for key in sorted(plan.checks):
        if plan.checks[key] == ABSENT:
            inserted.append(key)
        elif key not in plan.changes:
            touched.append(key)
        elif plan.changes[key] is None:
            deleted.append(key)
        else:
            updated.append(key)
    return inserted, updated, touched, deleted


async def _roll_back(connection: AsyncConnection[Any]) -> None:
    if not (connection.broken or connection.closed):
        await connection.execute("ROLLBACK")
