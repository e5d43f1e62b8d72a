"""Reading: everything that several requests wait for, in one round trip."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from partita.limits import MB

PAGE_ROWS: Final = 128
"""Of the first page of a range; each later one has four times as many, up to a limit."""
PAGE_ROWS_MAX: Final = 8192
PAGE_BYTES_MAX: Final = MB + MB // 2
"""A page of a Query ends at 1 MB; index entries and sizes come with it."""

Bucket = Callable[[bytes], int]

_KEYS: Final = """
    SELECT r.key, r.value, r.version
    FROM unnest(%b::bytea[], %b::smallint[]) AS x(key, bucket)
    JOIN partita_rows r ON r.key = x.key AND r.bucket = x.bucket"""
_RANGE: Final = """
    SELECT key, value, version, rows FROM (
        SELECT key, value, version, count(*) OVER () AS rows,
            sum(octet_length(value)) OVER (ORDER BY key {0} ROWS UNBOUNDED PRECEDING) AS bytes,
            row_number() OVER (ORDER BY key {0}) AS number
        FROM (SELECT key, value, version FROM partita_rows
              WHERE key >= %b AND key < %b ORDER BY key {0} LIMIT %s) AS page
    ) AS measured
    WHERE bytes <= %s OR number = 1 ORDER BY key {0}"""
_FORWARD, _BACKWARD = _RANGE.format(""), _RANGE.format("DESC")
_COUNTS: Final = """
    SELECT key, sum(items)::bigint, sum(bytes)::bigint FROM (
        SELECT key, items, bytes FROM partita_sums WHERE key = ANY(%b::bytea[])
        UNION ALL SELECT key, items, bytes FROM partita_counts WHERE key = ANY(%b::bytea[])
    ) AS counted GROUP BY key"""
_SEQUENCES: Final = "SELECT key, last FROM partita_sequences WHERE key = ANY(%b::bytea[])"
_CATALOG: Final = """
    SELECT c.version, extract(epoch FROM clock_timestamp() - h.at)::float8
    FROM partita_catalog c, partita_heartbeat h WHERE c.id = 1 AND h.id = 1"""


class Row(NamedTuple):
    key: bytes
    value: bytes
    version: int


class RangePage(NamedTuple):
    """The next part of a range that is wanted."""

    start: bytes
    stop: bytes
    reverse: bool
    rows_max: int


class Wanted(NamedTuple):
    keys: Collection[bytes]
    ranges: Sequence[RangePage]
    counts: Collection[bytes]
    sequences: Collection[bytes]


class Fetched(NamedTuple):
    rows: list[Row]
    pages: list[tuple[list[Row], bool]]
    """For each range its next rows, and whether they are the last."""
    counts: dict[bytes, tuple[int, int]]
    sequences: dict[bytes, int]
    catalog_version: int
    beat_age_seconds: float
    """How long ago the heartbeat was moved."""


async def fetch(connection: AsyncConnection[Any], wanted: Wanted, bucket: Bucket) -> Fetched:
    """The catalog's version is read last: if it has not moved, it holds for all that was read."""
    keys = list(wanted.keys)
    async with connection.pipeline():
        cursors = [
            await connection.execute(_KEYS, [keys, [bucket(key) for key in keys]], binary=True)
            if keys
            else None,
            *[await _execute_page(connection, page) for page in wanted.ranges],
            await connection.execute(_COUNTS, [list(wanted.counts)] * 2, binary=True)
            if wanted.counts
            else None,
            await connection.execute(_SEQUENCES, [list(wanted.sequences)], binary=True)
            if wanted.sequences
            else None,
            await connection.execute(_CATALOG, binary=True),
        ]
    answers = [[] if cursor is None else await cursor.fetchall() for cursor in cursors]
    rows, *found, counts, sequences, catalog = answers
    return Fetched(
        [Row(*row) for row in rows],
        [_page(page, answer) for page, answer in zip(wanted.ranges, found, strict=True)],
        {key: (items, size) for key, items, size in counts},
        dict(sequences),
        *catalog[0],
    )


async def _execute_page(connection: AsyncConnection[Any], page: RangePage) -> Any:
    statement = _BACKWARD if page.reverse else _FORWARD
    parameters = [page.start, page.stop, page.rows_max, PAGE_BYTES_MAX]
    return await connection.execute(statement, parameters, binary=True)


def _page(page: RangePage, answer: list[Any]) -> tuple[list[Row], bool]:
    found = answer[0][3] if answer else 0
    return [Row(*row[:3]) for row in answer], found == len(answer) < page.rows_max
