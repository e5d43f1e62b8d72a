"""The heartbeat: detects a primary that was replaced without noticing.

Such a primary still answers reads, but its commits wait forever for a standby that has left it. The
heartbeat is a row with a time stamp that a synchronous commit updates every second. Every fetch
reads it; if it is old, the data may be stale.
"""

from __future__ import annotations

from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.errors import UndefinedTable

from partita.database.storage.postgresql.optimistic_commit import on_all_copies

BEAT_SECONDS: Final = 1.0
STALE_SECONDS: Final = 3.0
"""If the heartbeat is older, only a commit shows whether this is still the primary."""

_AGE: Final = """
    SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM partita_heartbeat WHERE id = 1"""
_BEAT: Final = """
    UPDATE partita_heartbeat SET at = now()
    WHERE id = 1 AND at < now() - make_interval(secs => %s)"""


async def beat(connection: AsyncConnection[Any]) -> None:
    """Updates the heartbeat, unless another server has just done so; raises OutcomeUnknown if the
    commit may be on the primary only."""
    async with on_all_copies(connection):
        await connection.execute(_BEAT, [BEAT_SECONDS / 2])


async def check_primary(connection: AsyncConnection[Any]) -> None:
    """Checks that commits succeed on a new connection; waits if they do not."""
    try:
        cursor = await connection.execute(_AGE)
        row = await cursor.fetchone()
    except UndefinedTable:
        # The tables do not exist before `partita storage init`.
        return
    if row is not None and row[0] > STALE_SECONDS:
        await beat(connection)
