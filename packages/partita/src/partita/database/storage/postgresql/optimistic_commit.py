"""Optimistic commit: writes of many requests in one transaction, if what they read has not changed.

Usually it takes one round trip: the statements that check what was read come first, and if one of
them finds a difference, it fails and so ends the transaction before its COMMIT. That does not tell
which keys have changed. So after a failure, and if a lease or unchanged rows have to be checked, a
commit takes two round trips: the first checks and changes the rows that were read, and a key that
is missing in the result is in conflict; the second writes everything else and commits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import InvalidTextRepresentation

from partita.database.storage.engine import ConflictDetected
from partita.database.storage.postgresql import round_trips
from partita.database.storage.postgresql.batch_fetch import Bucket
from partita.database.storage.postgresql.long_keys import stored_key, stored_value
from partita.database.storage.postgresql.round_trips import SqlStatement, TripStep
from partita.database.storage.postgresql.trip_plans import (
    ABSENT,
    CommitPlan,
    FencingLease,
    LogEntry,
)
from partita.database.storage.recovery_log import PREFIX_BYTES, STAMP_KEY

_SAME_ROW: Final = "r.key = x.key AND r.bucket = x.bucket"
_CHECKED: Final = "unnest($1::bytea[], $2::smallint[], $3::bigint[]) AS x(key, bucket, version)"
_BEGIN: Final = SqlStatement("BEGIN")
_COMMIT: Final = SqlStatement("COMMIT")
_LIMIT_PAUSES: Final = SqlStatement("SET LOCAL idle_in_transaction_session_timeout = '3s'")
"""A server that is suspended between two round trips loses its locks."""
_LOCK_CATALOG: Final = SqlStatement("SELECT version FROM partita_catalog WHERE id = 1 FOR SHARE")
_EXPECT_CATALOG: Final = SqlStatement("""
    SELECT CASE WHEN version = $1::bigint THEN 0
        ELSE ('Partita decides again, the catalog has moved to ' || version)::integer END
    FROM partita_catalog WHERE id = 1 FOR SHARE""")
_EXPECT_CHANGED: Final = SqlStatement(f"""
    SELECT CASE WHEN count(*) = $4::bigint THEN 0
        ELSE ('Partita decides again, items left as they were: ' || count(*))::integer END
    FROM unnest($1::bytea[], $2::smallint[]) AS x(key, bucket)
    JOIN partita_rows r ON {_SAME_ROW} WHERE r.version = $3::bigint""")
"""Fails unless all changed rows have the version of this commit. SQL has no statement for failing,
so a text that is not a number is cast to one."""
_CHECK_LEASE: Final = SqlStatement(
    "SELECT 1 FROM partita_leases WHERE name = $1::text AND token = $2::bigint FOR SHARE"
)
_INSERT: Final = SqlStatement("""
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT key, bucket, value, $1::bigint
    FROM unnest($2::bytea[], $3::smallint[], $4::bytea[]) AS x(key, bucket, value)
    ON CONFLICT (key, bucket) DO NOTHING RETURNING key""")
_UPDATE: Final = SqlStatement(f"""
    UPDATE partita_rows AS r SET value = x.value, version = $1::bigint
    FROM unnest($2::bytea[], $3::smallint[], $4::bigint[], $5::bytea[])
        AS x(key, bucket, version, value)
    WHERE {_SAME_ROW} AND r.version = x.version RETURNING r.key""")
_TOUCH: Final = SqlStatement(f"""
    UPDATE partita_rows AS r SET version = r.version FROM {_CHECKED}
    WHERE {_SAME_ROW} AND r.version = x.version RETURNING r.key""")
_DELETE_CHECKED: Final = SqlStatement(f"""
    DELETE FROM partita_rows AS r USING {_CHECKED}
    WHERE {_SAME_ROW} AND r.version = x.version RETURNING r.key""")
_PUT: Final = SqlStatement("""
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT key, bucket, value, $1::bigint
    FROM unnest($2::bytea[], $3::smallint[], $4::bytea[]) AS x(key, bucket, value)
    ON CONFLICT (key, bucket) DO UPDATE SET value = EXCLUDED.value, version = EXCLUDED.version""")
_DELETE: Final = SqlStatement(f"""
    DELETE FROM partita_rows AS r
    USING unnest($1::bytea[], $2::smallint[]) AS x(key, bucket) WHERE {_SAME_ROW}""")
_COUNT: Final = SqlStatement("""
    INSERT INTO partita_counts (key, bucket, items, bytes)
    SELECT * FROM unnest($1::bytea[], $2::smallint[], $3::bigint[], $4::bigint[])""")
_TAKE_NUMBERS: Final = SqlStatement("""
    INSERT INTO partita_sequences AS s (key, last)
    SELECT key, count FROM unnest($1::bytea[], $2::bigint[]) AS x(key, count)
    ON CONFLICT (key) DO UPDATE SET last = s.last + EXCLUDED.last""")
_LOG: Final = SqlStatement("""
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT c.prefix || decode(lpad(to_hex(s.last - c.before), 16, '0'), 'hex'),
        c.bucket, c.value, $1::bigint
    FROM unnest($2::bytea[], $3::bytea[], $4::smallint[], $5::bigint[], $6::bytea[])
        AS c(log, prefix, bucket, before, value)
    JOIN partita_sequences s ON s.key = c.log""")
"""Appends entries with the sequence numbers that this transaction has taken. It holds the lock of
the sequence's row, so nobody else appends to the log before it ends."""
_SET_SEQUENCES: Final = SqlStatement("""
    INSERT INTO partita_sequences (key, last) SELECT * FROM unnest($1::bytea[], $2::bigint[])
    ON CONFLICT (key) DO UPDATE SET last = EXCLUDED.last""")
_REMOVE_SEQUENCES: Final = SqlStatement(
    "DELETE FROM partita_sequences WHERE key = ANY($1::bytea[])"
)
_REMOVE_COUNTS: Final = tuple(
    SqlStatement(f"DELETE FROM {table} WHERE key >= $1::bytea AND key < $2::bytea")
    for table in ("partita_counts", "partita_sums")
)
_TAKE_STAMPS: Final = SqlStatement("""
    INSERT INTO partita_sequences AS s (key, last)
    SELECT key, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    FROM unnest($1::bytea[]) AS x(key)
    ON CONFLICT (key) DO UPDATE SET last = greatest(s.last + 1, EXCLUDED.last)""")
_FOLLOW: Final = SqlStatement("""
    INSERT INTO partita_recovery (key, stamp, place, value)
    SELECT c.key, s.last, c.place, CASE WHEN c.is_put = 1 THEN c.value END
    FROM unnest($1::bytea[], $2::bytea[], $3::smallint[], $4::bytea[])
        AS c(key, place, is_put, value)
    JOIN partita_sequences s ON s.key = c.key""")
_TOKEN: Final = SqlStatement("INSERT INTO partita_commits (token) VALUES ($1::bigint)")
_MOVE_CATALOG: Final = SqlStatement("UPDATE partita_catalog SET version = version + 1 WHERE id = 1")
PROMISE_STAMPS: Final = """
    INSERT INTO partita_sequences AS s (key, last) SELECT key, %s FROM unnest(%b::bytea[]) AS x(key)
    ORDER BY key ON CONFLICT (key) DO UPDATE SET last = greatest(s.last, EXCLUDED.last)"""
"""Makes all later commits of some tables get stamps above a moment; waits for running commits."""
_TAKE_TOKEN: Final = "INSERT INTO partita_commits (token) VALUES (%s)"
_TOUCH_TOKEN: Final = "UPDATE partita_commits SET at = now() WHERE token = %s"

BEGIN_LOCKED: Final = (TripStep(_BEGIN), TripStep(_LIMIT_PAUSES), TripStep(_LOCK_CATALOG))
"""The beginning of a transaction with more than one round trip."""


class CatalogMoved(Exception):
    """Raised when the catalog has changed since the writes were decided."""


class LeaseLost(Exception):
    """Raised when another server has become the leader."""


class OutcomeUnknown(Exception):
    """Raised when it is unknown whether a transaction was committed, after a lost connection."""


async def commit(
    connection: AsyncConnection[Any], plan: CommitPlan, bucket: Bucket, *, begins: bool = True
) -> None:
    """Commits a plan, or raises one of the exceptions above and changes nothing.

    Without `begins`, the caller has begun the transaction, and has locked the catalog and all
    existing rows that were read.
    """
    if plan.lease is None and not any(_touched(plan)):
        try:
            await _commit_at_once(connection, plan, bucket, begins=begins)
            return
        except InvalidTextRepresentation:
            if not begins:
                # Existing rows are locked, so only rows that were absent can have changed.
                absent = {key for key, version in plan.checks.items() if version == ABSENT}
                raise ConflictDetected(absent) from None
            # The second attempt takes two round trips, and tells which keys have changed.
    try:
        await check_and_change(connection, plan, bucket, begins=begins)
    except (ConflictDetected, CatalogMoved, LeaseLost, psycopg.Error):
        await roll_back(connection)
        raise
    await finish(connection, plan, bucket)


async def _commit_at_once(
    connection: AsyncConnection[Any], plan: CommitPlan, bucket: Bucket, *, begins: bool
) -> None:
    """Commits in one round trip.

    Rows that will be deleted are updated first, so that one statement can count all checked rows.
    """
    inserted, updated, _, deleted = _checked_keys(plan)
    changed = sorted((*updated, *deleted))
    begin = (
        TripStep(_BEGIN),
        TripStep(_EXPECT_CATALOG, (round_trips.bigint(plan.catalog_version),)),
    )
    await _end(
        connection,
        [
            *(begin if begins else ()),
            *_insert(plan, inserted, bucket),
            *_update(plan, changed, bucket),
            *_expect_changed(plan, inserted + changed, bucket),
            *_the_rest(plan, bucket, frozenset(deleted)),
        ],
    )


async def check_and_change(
    connection: AsyncConnection[Any], plan: CommitPlan, bucket: Bucket, *, begins: bool
) -> None:
    """The first of two round trips: locks the catalog, checks what was read, changes these rows."""
    inserted, updated, touched, deleted = _checked_keys(plan)
    begin = BEGIN_LOCKED if begins else ()
    lease = [] if plan.lease is None else [TripStep(_CHECK_LEASE, _lease(plan.lease))]
    checks: list[tuple[list[bytes], list[TripStep]]] = [
        (inserted, _insert(plan, inserted, bucket)),
        (updated, _update(plan, updated, bucket)),
        (touched, _checked(_TOUCH, plan, touched, bucket)),
        (deleted, _checked(_DELETE_CHECKED, plan, deleted, bucket)),
    ]
    steps = [*begin, *lease, *(step for _, steps in checks for step in steps)]
    results = iter(await round_trips.run(connection, steps) if steps else ())
    begun = [next(results) for _ in begin]
    if begun and round_trips.bigint_in(begun[-1], 0, 0) != plan.catalog_version:
        raise CatalogMoved
    if lease and not next(results).ntuples:
        raise LeaseLost
    conflicts: set[bytes] = set()
    for keys, key_steps in checks:
        for _, result in zip(key_steps, results, strict=False):
            changed = {result.get_value(n, 0) for n in range(result.ntuples)}
            conflicts.update(key for key in keys if stored_key(key) not in changed)
    if conflicts:
        raise ConflictDetected(conflicts)


async def finish(connection: AsyncConnection[Any], plan: CommitPlan, bucket: Bucket) -> None:
    """The second round trip: writes everything that was not checked, and commits."""
    await _end(connection, list(_the_rest(plan, bucket)))


async def _end(connection: AsyncConnection[Any], steps: Sequence[TripStep]) -> None:
    """Runs the last statements of a transaction, and commits it."""
    try:
        async with on_all_copies(connection):
            await round_trips.run(connection, [*steps, TripStep(_COMMIT)])
    except psycopg.Error as error:
        if connection.broken or connection.closed:
            raise OutcomeUnknown from error
        await roll_back(connection)
        raise


async def is_committed(connection: AsyncConnection[Any], token: int) -> bool:
    """True if a transaction with an unknown outcome was committed; if not, it never will be.

    It inserts the transaction's token itself: if the token is there, the transaction was committed;
    if not, a commit that is still on its way fails with a unique violation.
    """
    async with on_all_copies(connection):
        try:
            await connection.execute(_TAKE_TOKEN, [token])
        except psycopg.errors.UniqueViolation:
            # The token may be on the primary only. A commit of our own, which waits for the
            # standby, shows that the standby has all commits before it.
            await connection.execute(_TOUCH_TOKEN, [token])
            return True
    return False


@asynccontextmanager
async def on_all_copies(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    """Raises OutcomeUnknown if PostgreSQL warns that a commit may be on the primary only."""
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


# Rows that were read, with the versions to check


def _checked_keys(plan: CommitPlan) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
    """The keys that were read, as those to insert, to update, to leave unchanged and to delete.

    They are sorted: all transactions lock rows in the same order, so they cannot deadlock.
    """
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


def _touched(plan: CommitPlan) -> Iterator[bool]:
    return (version != ABSENT and key not in plan.changes for key, version in plan.checks.items())


def _insert(plan: CommitPlan, keys: Sequence[bytes], bucket: Bucket) -> list[TripStep]:
    if not keys:
        return []
    return [TripStep(_INSERT, (round_trips.bigint(plan.token), *_rows(plan, keys, bucket)))]


def _update(plan: CommitPlan, keys: Sequence[bytes], bucket: Bucket) -> list[TripStep]:
    if not keys:
        return []
    places, buckets, values = _rows(plan, keys, bucket)
    versions = round_trips.bigints([plan.checks[key] for key in keys])
    return [TripStep(_UPDATE, (round_trips.bigint(plan.token), places, buckets, versions, values))]


def _checked(
    statement: SqlStatement, plan: CommitPlan, keys: Sequence[bytes], bucket: Bucket
) -> list[TripStep]:
    if not keys:
        return []
    versions = round_trips.bigints([plan.checks[key] for key in keys])
    return [TripStep(statement, (*_places(keys, bucket), versions))]


def _expect_changed(plan: CommitPlan, keys: Sequence[bytes], bucket: Bucket) -> list[TripStep]:
    if not keys:
        return []
    numbers = round_trips.bigint(plan.token), round_trips.bigint(len(keys))
    return [TripStep(_EXPECT_CHANGED, (*_places(keys, bucket), *numbers))]


def _places(keys: Sequence[bytes], bucket: Bucket) -> tuple[bytes, bytes]:
    stored = round_trips.byteas([stored_key(key) for key in keys])
    return stored, round_trips.smallints([bucket(key) for key in keys])


def _rows(plan: CommitPlan, keys: Sequence[bytes], bucket: Bucket) -> tuple[bytes, bytes, bytes]:
    """The parameters for writing rows.

    Rows without a new value get an empty one: they are deleted later in the same transaction.
    """
    values = [stored_value(key, plan.changes.get(key) or b"") for key in keys]
    return *_places(keys, bucket), round_trips.byteas(values)


def _lease(lease: FencingLease) -> tuple[bytes, bytes]:
    return lease.name.encode(), round_trips.bigint(lease.token)


# Everything that follows from the decisions, unchecked


def _the_rest(
    plan: CommitPlan, bucket: Bucket, deleted: Set[bytes] = frozenset()
) -> Iterator[TripStep]:
    """The statements after the checks; `deleted` rows were checked but not deleted yet."""
    checks = plan.checks
    puts = sorted(
        key for key, value in plan.changes.items() if value is not None and key not in checks
    )
    absent = {key for key, version in checks.items() if version == ABSENT}
    gone = sorted(
        key
        for key in {*plan.changes, *absent, *deleted}
        if plan.changes.get(key) is None and (key in deleted or checks.get(key, ABSENT) == ABSENT)
    )
    if puts:
        yield TripStep(_PUT, (round_trips.bigint(plan.token), *_rows(plan, puts, bucket)))
    if gone:
        yield TripStep(_DELETE, _places(gone, bucket))
    if plan.counts:
        keys = list(plan.counts)
        items, sizes = zip(*plan.counts.values(), strict=True)
        yield TripStep(
            _COUNT, (*_places(keys, bucket), round_trips.bigints(items), round_trips.bigints(sizes))
        )
    for bounds in plan.removed_counts:
        yield from (TripStep(statement, bounds) for statement in _REMOVE_COUNTS)
    yield TripStep(_TOKEN, (round_trips.bigint(plan.token),))
    if plan.moves_catalog:
        yield TripStep(_MOVE_CATALOG)
    yield from _write_sequences(plan.sequences)
    yield from _append_changes(plan, bucket)
    yield from _append_followed(plan.followed)


def _write_sequences(sequences: Mapping[bytes, int | None]) -> Iterator[TripStep]:
    kept = {key: last for key, last in sequences.items() if last is not None}
    if kept:
        yield TripStep(
            _SET_SEQUENCES,
            (round_trips.byteas(list(kept)), round_trips.bigints(list(kept.values()))),
        )
    removed = [key for key, last in sequences.items() if last is None]
    if removed:
        yield TripStep(_REMOVE_SEQUENCES, (round_trips.byteas(removed),))


def _append_changes(plan: CommitPlan, bucket: Bucket) -> Iterator[TripStep]:
    """Appends to logs. This comes last because it locks the logs' counters until the commit."""
    entries: Sequence[LogEntry] = plan.log_entries
    if not entries:
        return
    counts: dict[bytes, int] = {}
    for entry in entries:
        counts[entry.log] = max(counts.get(entry.log, 0), entry.number)
    logs = sorted(counts)
    yield TripStep(
        _TAKE_NUMBERS,
        (round_trips.byteas(logs), round_trips.bigints([counts[log] for log in logs])),
    )
    yield TripStep(
        _LOG,
        (
            round_trips.bigint(plan.token),
            round_trips.byteas([entry.log for entry in entries]),
            round_trips.byteas([entry.prefix for entry in entries]),
            round_trips.smallints([bucket(entry.prefix) for entry in entries]),
            round_trips.bigints([counts[entry.log] - entry.number for entry in entries]),
            round_trips.byteas([entry.value for entry in entries]),
        ),
    )


def _append_followed(changes: Mapping[bytes, bytes | None]) -> Iterator[TripStep]:
    """Keeps the changes of followed tables for recovery; per table, the commit gets one stamp that
    is higher than all before it."""
    if not changes:
        return
    rows = [stamp_row(key[:PREFIX_BYTES]) for key in changes]
    yield TripStep(_TAKE_STAMPS, (round_trips.byteas(sorted(set(rows))),))
    yield TripStep(
        _FOLLOW,
        (
            round_trips.byteas(rows),
            round_trips.byteas([key[PREFIX_BYTES:] for key in changes]),
            round_trips.smallints([value is not None for value in changes.values()]),
            round_trips.byteas([value or b"" for value in changes.values()]),
        ),
    )


def stamp_row(prefix: bytes) -> bytes:
    """The key of the sequence that gives a table its stamps."""
    return STAMP_KEY + prefix


async def roll_back(connection: AsyncConnection[Any]) -> None:
    if not (connection.broken or connection.closed):
        await connection.execute("ROLLBACK")
