"""The fence of `partita migrate` (`partita_migrate.moving.switching.fences`) around the catalogue
in MariaDB.

After the cutover the database itself refuses writes, also those of servers that missed the change
of the mode.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from metric_catalogue.stores.mariadb.mariadb_connections import (
    PASSWORD,
    ConnectionPool,
    DatabaseSession,
)
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.switching.fences import fence_of
from partita_migrate.moving.switching.fences.source_fence import (
    CLOSED,
    FENCE,
    LOCKED,
    PASSING,
    SourceFence,
)
from partita_migrate.understanding.sources.schema_reflection import reflect
from partita_migrate.understanding.sources.source_connection import connect
from partita_migrate.workspace.migration_folder import Folder

TABLES = [
    "dimensions",
    "dimensions_metric_groups",
    "metric_groups",
    "metric_relationships",
    "metric_versions",
    "metrics",
]
T = TypeVar("T")
SET_SIDE = f"UPDATE {FENCE} SET side = %s WHERE id = {LOCKED}"


def catalogue_fence(mysql: str) -> SourceFence:
    """Returns the fence around the catalogue's tables in the database with this URL."""
    source = {"url": mysql, "tables": TABLES}
    if PASSWORD in os.environ:
        source["password_env"] = PASSWORD
    folder = Folder(Path(), {"source": source})
    with connect(folder) as opened:
        inventory = reflect(opened)
    return fence_of(MoveSource(folder, inventory))


class PassingPool(ConnectionPool):
    """Connections that may write while the fence is closed, for the rollback.

    Each transaction opens the fence and closes it again before it commits, so no other transaction
    ever sees it open.
    """

    async def transaction(self, work: Callable[[DatabaseSession], Awaitable[T]]) -> T:
        async def pass_through(session: DatabaseSession) -> T:
            # The row of the fence stays locked until the commit, so rollbacks pass one at a time.
            await session.run(SET_SIDE, PASSING)
            result = await work(session)
            await session.run(SET_SIDE, CLOSED)
            return result

        return await super().transaction(pass_through)
