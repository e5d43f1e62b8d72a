"""The fence in the source, one module for each kind of database."""

from __future__ import annotations

from partita_migrate.moving.fences.fence import Fence
from partita_migrate.moving.logs.origin import Origin


def fence_of(origin: Origin) -> Fence:
    """Returns the fence of a source; its driver is imported only here."""
    if origin.family == "postgresql":
        from partita_migrate.moving.fences import postgresql

        return postgresql.Fence(origin)
    if origin.family == "mysql":
        from partita_migrate.moving.fences import mariadb

        return mariadb.Fence(origin)
    from partita_migrate.moving.fences import sqlite

    return sqlite.Fence(origin)
