"""The fence in the source, one module for each kind of database."""

from __future__ import annotations

from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.switching.fences.source_fence import SourceFence


def fence_of(origin: MoveSource) -> SourceFence:
    """Returns the fence of a source; its driver is imported only here."""
    if origin.family == "postgresql":
        from partita_migrate.moving.switching.fences import postgresql_fence

        return postgresql_fence.PostgreSQLFence(origin)
    if origin.family == "mysql":
        from partita_migrate.moving.switching.fences import mariadb_fence

        return mariadb_fence.MariaDBFence(origin)
    from partita_migrate.moving.switching.fences import sqlite_fence

    return sqlite_fence.SQLiteFence(origin)
