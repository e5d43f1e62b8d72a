"""Change logs of the sources: MariaDB's binlog, PostgreSQL's logical replication, triggers in
SQLite."""

from __future__ import annotations

from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.logs.no_log import NoLog
from partita_migrate.moving.logs.source_changes import SourceLog


def log_of(origin: MoveSource, *, is_followed: bool) -> SourceLog:
    """Returns the log of a source; its driver is imported only here."""
    if not is_followed:
        return NoLog(origin)
    if origin.family == "mysql":
        from partita_migrate.moving.logs.mariadb_log import MariaDBLog

        return MariaDBLog(origin)
    if origin.family == "postgresql":
        from partita_migrate.moving.logs.postgresql_log import PostgreSQLLog

        return PostgreSQLLog(origin)
    from partita_migrate.moving.logs.sqlite_log import SQLiteLog

    return SQLiteLog(origin)
