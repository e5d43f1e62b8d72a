"""Reads the statement statistics of servers, with the time over which they were collected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from partita.errors import PartitaError
from partita_migrate.understanding.patterns.mining.pattern_miner import RanStatement
from partita_migrate.understanding.patterns.mining.statement_logs import (
    LoggedStatement,
    general_entry,
)
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

_TIME_UNITS = re.compile(r"\bSQL_TSI_(?=[A-Z])")


class StatementStatistics(NamedTuple):
    """One source of statements on a server."""

    origin: str
    window_seconds: float
    statements: Iterator[RanStatement]


def kept_statements(source: SourceDatabase) -> StatementStatistics:
    """Returns the best statistics of this server. Raises PartitaError with advice if there are
    none."""
    if source.dialect == "postgresql":
        return _pg_stat_statements(source)
    if source.dialect in ("mysql", "mariadb"):
        # Digests come first: they count all statements, while the logs are off by default.
        for look in (_digests, _general_log, _slow_log):
            kept = look(source)
            if kept is not None:
                return kept
        raise PartitaError(
            f"{source.address} keeps no statements that its user may read; start it with"
            " performance_schema = ON and GRANT SELECT ON performance_schema.* to the user, or name"
            " a general or slow log under logs in [analyze]."
        )
    raise PartitaError("SQLite keeps no statements; write the access patterns in patterns.toml.")


def _digests(source: SourceDatabase) -> StatementStatistics | None:
    """Reads performance_schema's summary, which has one row per normalized statement."""
    try:
        rows = source.rows(
            "SELECT DIGEST_TEXT, COUNT_STAR, SUM_ROWS_SENT, SUM_ROWS_AFFECTED, SUM_ROWS_EXAMINED"
            " FROM performance_schema.events_statements_summary_by_digest"
            " WHERE SCHEMA_NAME = :database AND DIGEST_TEXT IS NOT NULL",
            database=source.database,
        )
        since = source.rows(
            "SELECT TIMESTAMPDIFF(SECOND, MIN(FIRST_SEEN), NOW())"
            " FROM performance_schema.events_statements_summary_by_digest"
        )
    except SourceError:
        if source.is_lost:
            raise
        return None
    if not rows:
        return None
    return StatementStatistics(
        "performance_schema's statement digests; rates are means since the first was counted",
        _seconds(since),
        (
            RanStatement(
                _as_written(text), float(calls), float(max(sent, affected)), float(examined)
            )
            for text, calls, sent, affected, examined in rows
        ),
    )


def _as_written(digest: str) -> str:
    """Restores parts of dates: MariaDB's digests write DAY(x) as SQL_TSI_DAY ( x )."""
    return _TIME_UNITS.sub("", str(digest))


def _general_log(source: SourceDatabase) -> StatementStatistics | None:
    window = _log_window(source, "general_log", "event_time")
    if window is None:
        return None

    def statements() -> Iterator[RanStatement]:
        databases: dict[str, str] = {}
        rows = source.stream("SELECT thread_id, command_type, argument FROM mysql.general_log")
        for chunk in rows:
            for thread, command, argument in chunk:
                entry = general_entry(str(thread), command, _text(argument), databases)
                if entry is not None and is_of(entry, source.database):
                    yield RanStatement(entry.statement)

    return StatementStatistics(
        "the table mysql.general_log; rates are means over it", window, statements()
    )


def _slow_log(source: SourceDatabase) -> StatementStatistics | None:
    window = _log_window(source, "slow_log", "start_time")
    if window is None:
        return None

    def statements() -> Iterator[RanStatement]:
        rows = source.stream(
            "SELECT sql_text, rows_sent, rows_examined FROM mysql.slow_log WHERE db = :database",
            database=source.database,
        )
        for chunk in rows:
            for statement, sent, examined in chunk:
                yield RanStatement(_text(statement), 1, float(sent), float(examined))

    return StatementStatistics(
        "the table mysql.slow_log; statements faster than long_query_time are not in it",
        window,
        statements(),
    )


def _log_window(source: SourceDatabase, table: str, column: str) -> float | None:
    """Returns the seconds between the first and the last entry, or None without entries or
    rights."""
    try:
        rows = source.rows(
            f"SELECT TIMESTAMPDIFF(SECOND, MIN({column}), MAX({column})) FROM mysql.{table}"
        )
    except SourceError:
        if source.is_lost:
            raise
        return None
    return _seconds(rows) if rows and rows[0][0] is not None else None


def _pg_stat_statements(source: SourceDatabase) -> StatementStatistics:
    try:
        rows = source.rows(
            "SELECT query, calls, rows FROM pg_stat_statements"
            " WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        since = source.rows(
            "SELECT extract(epoch FROM now() - greatest(pg_postmaster_start_time(), stats_reset))"
            " FROM pg_stat_statements_info"
        )
    except SourceError as error:
        if source.is_lost:
            raise
        raise PartitaError(
            f"{source.address} has no pg_stat_statements that can be read; add it to"
            " shared_preload_libraries and CREATE EXTENSION pg_stat_statements, or name a log under"
            " logs in [analyze]."
        ) from error
    return StatementStatistics(
        "pg_stat_statements; rates are means since it was reset or the server started",
        _seconds(since),
        (RanStatement(str(text), float(calls), float(count)) for text, calls, count in rows),
    )


def _seconds(rows: Sequence[tuple[Any, ...]]) -> float:
    """Returns the number of an answer, but at least 1, because rates are divided by it."""
    return max(1.0, float(rows[0][0] or 0)) if rows else 1.0


def _text(column: str | bytes) -> str:
    """Decodes a column, which is a text in MariaDB and bytes in MySQL."""
    return column.decode(errors="replace") if isinstance(column, bytes) else column


def is_of(entry: LoggedStatement, database: str) -> bool:
    """True when a logged statement belongs to this database, as far as the log says."""
    return entry.database is None or entry.database.lower() == database.lower()
