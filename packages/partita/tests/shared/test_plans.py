"""A query plan made for a small table is not kept when the table has grown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from partita.database.shared.rounds.fetched_view import bucket_of
from partita.database.storage.postgresql import postgresql_schema
from partita.database.storage.postgresql.batch_fetch import fetch
from partita.database.storage.postgresql.postgresql_pool import connected
from partita.database.storage.postgresql.trip_plans import FetchPlan
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

RUNS_WHILE_SMALL, RUNS_MAX = 20, 80
_GROW = """
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT int8send(n), 0, repeat('x', 300)::bytea, 1 FROM generate_series(1, 20000) AS n"""
_SCANS = "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'partita_rows'"


def test_keys_are_looked_up_by_the_index_although_the_table_was_small_at_first(
    postgresql: PostgreSQL,
) -> None:
    scans = asyncio.run(_scans(storage_url(postgresql, "plans")))
    assert scans[RUNS_WHILE_SMALL - 1] > 0, "a small table is scanned: otherwise this shows nothing"
    assert scans[-1] == 0, scans


async def _scans(url: str) -> Sequence[int]:
    """The number of sequential scans of each fetch."""
    wanted = FetchPlan([number.to_bytes(8, "big") for number in range(64)], [], [], [])
    counts = []
    async with connected(url) as connection:
        await postgresql_schema.init(connection, {})
        for run in range(RUNS_MAX):
            if run == RUNS_WHILE_SMALL:
                await connection.execute(_GROW)
            async with connection.transaction(force_rollback=True):
                before = await _scans_so_far(connection)
                await fetch(connection, wanted, bucket_of)
                counts.append(await _scans_so_far(connection) - before)
    return counts


async def _scans_so_far(connection: AsyncConnection[Any]) -> int:
    cursor = await connection.execute(_SCANS)
    row = await cursor.fetchone()
    return 0 if row is None else row[0]
