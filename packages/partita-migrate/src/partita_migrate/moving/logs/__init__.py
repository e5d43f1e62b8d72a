"""Change logs of the sources: MariaDB's binlog, PostgreSQL's logical replication, triggers in
SQLite."""

from __future__ import annotations

from partita_migrate.moving.logs.changes import ChangeLog
from partita_migrate.moving.logs.origin import Origin
from partita_migrate.moving.logs.unlogged import Unlogged


def log_of(origin: Origin, *, is_followed: bool) -> ChangeLog:
    """Returns the log of a source; its driver is imported only here."""
    if not is_followed:
        return Unlogged(origin)
    if origin.family == "mysql":
        from partita_migrate.moving.logs.mariadb import MariaDBLog

        return MariaDBLog(origin)
    if origin.family == "postgresql":
        from partita_migrate.moving.logs.postgresql import PostgreSQLLog

        return PostgreSQLLog(origin)
    from partita_migrate.moving.logs.sqlite import SQLiteLog

    return SQLiteLog(origin)
