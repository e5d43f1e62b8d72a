"""Batch fetch: reads everything that several requests are waiting for in one round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.pq.abc import PGresult

from partita.database.storage.postgresql import long_keys, round_trips
from partita.database.storage.postgresql.postgresql_schema import OtherSchema, version_problem
from partita.database.storage.postgresql.round_trips import SqlStatement, TripStep
from partita.database.storage.postgresql.trip_plans import (
    FetchPlan,
    FetchResult,
    RangePage,
    StoredRow,
)

Bucket = Callable[[bytes], int]

_KEYS: Final = SqlStatement("""
    SELECT r.key, r.value, r.version
    FROM unnest($1::bytea[], $2::smallint[]) AS x(key, bucket)
    JOIN partita_rows r ON r.key = x.key AND r.bucket = x.bucket""")
_LOCKED: Final = SqlStatement("""
    SELECT key, value, version FROM partita_rows
    WHERE key = $1::bytea AND bucket = $2::smallint FOR UPDATE""")
_RANGE: Final = """
    SELECT key, value, version, rows FROM (
        SELECT key, value, version, count(*) OVER () AS rows,
            sum(octet_length(value)) OVER (ORDER BY key {0} ROWS UNBOUNDED PRECEDING) AS bytes,
            row_number() OVER (ORDER BY key {0}) AS number
        FROM (SELECT key, value, version FROM partita_rows
              WHERE key >= $1::bytea AND key < $2::bytea ORDER BY key {0} LIMIT $3::bigint) AS page
    ) AS measured
    WHERE bytes <= $4::bigint OR number = 1 ORDER BY key {0}"""
_FORWARD, _BACKWARD = SqlStatement(_RANGE.format("")), SqlStatement(_RANGE.format("DESC"))
_COUNTS: Final = SqlStatement("""
    SELECT key, sum(items)::bigint, sum(bytes)::bigint FROM (
        SELECT key, items, bytes FROM partita_sums WHERE key = ANY($1::bytea[])
        UNION ALL SELECT key, items, bytes FROM partita_counts WHERE key = ANY($1::bytea[])
    ) AS counted GROUP BY key""")
_SEQUENCES: Final = SqlStatement(
    "SELECT key, last FROM partita_sequences WHERE key = ANY($1::bytea[])"
)
_CATALOG: Final = SqlStatement("""
    SELECT c.version, extract(epoch FROM clock_timestamp() - h.at)::float8,
        extract(epoch FROM h.at)::float8, f.version::bigint
    FROM partita_catalog c, partita_heartbeat h, partita_format f WHERE c.id = 1 AND h.id = 1""")


async def fetch(
    connection: AsyncConnection[Any],
    plan: FetchPlan,
    bucket: Bucket,
    begin: Sequence[TripStep] = (),
    locked: Sequence[bytes] = (),
) -> FetchResult:
    """Fetches keys, ranges, counts and sequences.

    The versions of catalog and schema are read last: if they have not changed, they hold for
    everything that was read before. `begin` are statements that come first; `locked` are keys whose
    rows stay locked until the transaction ends that `begin` has begun.
    """
    keys = list(set(plan.keys).difference(locked)) if locked else list(plan.keys)
    locks = [
        TripStep(_LOCKED, (long_keys.stored_key(key), bucket(key).to_bytes(2, "big")))
        for key in locked
    ]
    points = [TripStep(_KEYS, _places(keys, bucket))] if keys else []
    ranges = [_page_step(page) for page in plan.ranges]
    counts = [TripStep(_COUNTS, (round_trips.byteas(list(plan.counts)),))] if plan.counts else []
    sequences = (
        [TripStep(_SEQUENCES, (round_trips.byteas(list(plan.sequences)),))]
        if plan.sequences
        else []
    )
    steps = (*begin, *locks, *points, *ranges, *counts, *sequences, TripStep(_CATALOG))
    results = iter(all_results := await round_trips.run(connection, steps))
    schema_version = round_trips.bigint_in(all_results[-1], 0, 3)
    problem = version_problem(schema_version)
    if problem:
        raise OtherSchema(problem)
    for _ in begin:
        next(results)
    return FetchResult(
        [row for _ in (*locks, *points) for row in _rows(next(results))],
        [_page(page, next(results)) for page in plan.ranges],
        {
            round_trips.bytea_in(result, n, 0): (
                round_trips.bigint_in(result, n, 1),
                round_trips.bigint_in(result, n, 2),
            )
            for result in _taken(results, len(counts))
            for n in range(result.ntuples)
        },
        {
            round_trips.bytea_in(result, n, 0): round_trips.bigint_in(result, n, 1)
            for result in _taken(results, len(sequences))
            for n in range(result.ntuples)
        },
        round_trips.bigint_in(last := next(results), 0, 0),
        round_trips.double_in(last, 0, 1),
        round_trips.double_in(last, 0, 2),
        schema_version,
    )


def _places(keys: Sequence[bytes], bucket: Bucket) -> tuple[bytes, bytes]:
    stored = round_trips.byteas([long_keys.stored_key(key) for key in keys])
    return stored, round_trips.smallints([bucket(key) for key in keys])


def _page_step(page: RangePage) -> TripStep:
    start, stop = long_keys.stored_range(page.start, page.stop)
    limits = round_trips.bigint(page.rows_max), round_trips.bigint(page.bytes_max)
    return TripStep(_BACKWARD if page.reverse else _FORWARD, (start, stop, *limits))


def _taken(results: Iterator[PGresult], number: int) -> Iterator[PGresult]:
    for _ in range(number):
        yield next(results)


def _stored_rows(result: PGresult) -> list[StoredRow]:
    value_at = result.get_value
    return [
        StoredRow(
            value_at(n, 0) or b"",
            value_at(n, 1) or b"",
            int.from_bytes(value_at(n, 2) or b"", "big", signed=True),
        )
        for n in range(result.ntuples)
    ]


def _rows(result: PGresult) -> list[StoredRow]:
    return [_whole(row) for row in _stored_rows(result)]


def _whole(row: StoredRow) -> StoredRow:
    if not long_keys.is_long(row.key):
        return row
    return StoredRow(*long_keys.whole_pair(row.key, row.value), row.version)


def _page(page: RangePage, result: PGresult) -> tuple[list[StoredRow], bool]:
    rows = _stored_rows(result)
    selected_rows = round_trips.bigint_in(result, 0, 3) if rows else 0
    is_last = selected_rows == len(rows) < page.rows_max
    has_long_bounds = max(len(page.start), len(page.stop)) > long_keys.HEAD_BYTES
    if has_long_bounds or any(long_keys.is_long(row.key) for row in rows):
        rows = _in_order(rows, page, is_last=is_last)
    return rows, is_last


def _in_order(rows: list[StoredRow], page: RangePage, *, is_last: bool) -> list[StoredRow]:
    """Sorts the rows of a page with long keys by their whole keys.

    The last group of long keys is left to the next page, if it may continue there.
    """
    if not is_last and rows:
        open_group = long_keys.head(rows[-1].key)
        if long_keys.is_long(rows[-1].key):
            rows = [row for row in rows if long_keys.head(row.key) != open_group]
    ordered = sorted(map(_whole, rows), key=lambda row: row.key, reverse=page.reverse)
    return [row for row in ordered if page.start <= row.key < page.stop]
