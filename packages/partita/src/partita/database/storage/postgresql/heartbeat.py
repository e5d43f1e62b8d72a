"""The heartbeat: a row that only synchronous commits move, read with whatever is read.

A primary that was replaced without noticing still answers, but its commits wait for a standby that
has left it: there, the row grows old.
"""

from __future__ import annotations

from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.errors import UndefinedTable

from partita.database.storage.postgresql.commit import on_all_copies

BEAT_SECONDS: Final = 1.0
STALE_SECONDS: Final = 3.0
"""From this age on, only a commit of its own shows that a primary still is the primary."""

_AGE: Final = """
    SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM partita_heartbeat WHERE id = 1"""
_BEAT: Final = """
    UPDATE partita_heartbeat SET at = now()
    WHERE id = 1 AND at < now() - make_interval(secs => %s)"""


async def beat(connection: AsyncConnection[Any]) -> None:
    """Move the row, unless another server has just moved it; raises OutcomeUnknown where the
    commit may be on the primary only."""
    async with on_all_copies(connection):
        await connection.execute(_BEAT, [BEAT_SECONDS / 2])


async def check_primary(connection: AsyncConnection[Any]) -> None:
    """Whether a new connection leads to a primary whose commits go through; waits otherwise."""
    try:
        cursor = await connection.execute(_AGE)
        row = await cursor.fetchone()
    except UndefinedTable:
        # Before `partita storage init`.
        return
    if row is not None and row[0] > STALE_SECONDS:
        await beat(connection)
