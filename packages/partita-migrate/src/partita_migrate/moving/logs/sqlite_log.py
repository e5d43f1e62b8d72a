"""SQLite has no log; triggers write one, with the keys of rows that may have changed.

One transaction reads that log and the rows as they are, so both show the same moment. A REPLACE
removes rows without calling their triggers, so the rows that a new one collides with are logged
before it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import Any

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.logs.source_changes import (
    LogLost,
    LogSession,
    OpenSession,
    RowChange,
    SourceLog,
    SourceTransaction,
)
from partita_migrate.proving.sandbox.source_snapshot import consistent_read
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

LOG = "partita_log"
TRIGGER = "partita_log_{table}_{event}"
IDLE_SECONDS = 0.05
BUSY = "database is locked"
BUSY_SECONDS = 30
AWAY_SECONDS_MAX = 300


class SQLiteLog(SourceLog):
    """The log that triggers write."""

    is_repeatable = False

    def __init__(self, origin: MoveSource) -> None:
        self.origin = origin
        self.path = str(origin.address.url.database)
        self._open: LogSession | None = None
        """The session that is open at present."""
        self.tables = {table.name: table for table in origin.tables}

    def prepare(self) -> None:
        without = [table.name for table in self.origin.tables if not table.primary_key]
        if without:
            raise PartitaError(
                f"{without[0]} has no primary key, so its changes cannot be followed; add one,"
                " exclude the table, or load once without --follow."
            )
        with self._writing() as connection:
            # AUTOINCREMENT: numbers are never given twice, even after lines were deleted.
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {LOG} (seq INTEGER PRIMARY KEY AUTOINCREMENT,"
                " name TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL)"
            )
            for table in self.origin.tables:
                for statement in _triggers(table):
                    connection.execute(statement)

    @contextmanager
    def _writing(self, timeout: float = BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
        """Runs the statements of the block in one transaction."""
        try:
            with closing(
                sqlite3.connect(self.path, timeout=timeout, isolation_level=None)
            ) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise PartitaError(f"{self.origin.address} cannot be changed: {error}.") from error

    @contextmanager
    def sessions(self, shared: str = "") -> Iterator[OpenSession]:
        yield self._session

    @contextmanager
    def _session(self) -> Iterator[LogSession]:
        with self.origin.connect() as source, source.errors(), consistent_read(source):
            session = LogSession(source, _end(source), "")
            self._open = session
            try:
                yield session
            finally:
                self._open = None

    def end(self, source: SourceDatabase) -> int:
        return _end(source)

    def bytes_behind(self, position: int, end: int) -> int | None:
        return None

    def confirm(self, position: int) -> None:
        """Deletes what was followed; the last line stays, because it tells the next number."""
        # A verification that reads the file may block this; then it is done the next time.
        with suppress(PartitaError), self._writing(timeout=0) as connection:
            connection.execute(f"DELETE FROM {LOG} WHERE seq < ?", (position,))

    def remove(self) -> None:
        with self._writing() as connection:
            for table in self.origin.tables:
                for event in _EVENTS:
                    name = TRIGGER.format(table=table.name, event=event)
                    connection.execute(f"DROP TRIGGER IF EXISTS {_quoted(name)}")
            connection.execute(f"DROP TABLE IF EXISTS {LOG}")

    def storage(self, source: SourceDatabase) -> str:
        """Raises when a table has lost its triggers, which are dropped together with the table."""
        query = "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        triggers = {str(name) for (name,) in source.rows(query)}
        for table in self.origin.tables:
            if TRIGGER.format(table=table.name, event="insert") not in triggers:
                raise LogLost(
                    f"{self.origin.address} no longer logs changes of {table.name}: it was dropped"
                    " and created again; start over with a new load."
                )
        return ""

    def transactions(self, after: int, resume: str) -> Generator[SourceTransaction | None]:
        with suppress(SourceError), self.origin.connect() as source:
            self.storage(source)
        busy_since: float | None = None
        while True:
            try:
                transaction = self._read(after)
                busy_since = None
            except SourceError as error:
                if BUSY in str(error):
                    busy_since = busy_since or time.monotonic()
                    if time.monotonic() - busy_since < AWAY_SECONDS_MAX:
                        yield None
                        continue
                if "no such table" in str(error):
                    raise LogLost(
                        f"{self.origin.address} has no log of its changes; `migrate load --follow`"
                        " creates the triggers that write it."
                    ) from error
                raise
            if transaction is not None:
                after = transaction.position
                yield transaction
                continue
            yield None
            time.sleep(IDLE_SECONDS)

    def _read(self, after: int) -> SourceTransaction | None:
        """Reads everything since a position as one transaction.

        In some journal modes nobody can commit while the file is read, so it is read at once. An
        open session is used again: a second one would wait for writers that wait for the first.
        """
        with nullcontext(self._open) if self._open is not None else self._session() as session:
            if session.position <= after:
                return None
            changes = list(self._changes(session.source, after, session.position))
            at = self._newest(session.source)
        return SourceTransaction(session.position, "", at, changes)

    def _newest(self, source: SourceDatabase) -> float:
        ((at,),) = source.rows(f"SELECT max(at) FROM {LOG}")
        return float(at or 0)

    def _changes(self, source: SourceDatabase, after: int, until: int) -> Iterator[RowChange]:
        """Yields every row whose key is in the log, as it is in this transaction."""
        logged = source.rows(
            f"SELECT DISTINCT name, key FROM {LOG} WHERE seq > :after AND seq <= :until",
            after=after,
            until=until,
        )
        for name, key in logged:
            table = self.tables.get(name)
            if table is None:
                continue
            old, new = self._row(source, table, json.loads(key))
            yield RowChange(name, old, new)

    def _row(
        self, source: SourceDatabase, table: SourceTable, key: Sequence[str]
    ) -> tuple[Item, Item | None]:
        """Returns the key as attribute values, and the row that has it now; None without one."""
        column_readings = self.origin.readings[table.name]
        names = ", ".join(reading.sql for reading in column_readings)
        # The log has keys as SQL literals, which preserve every type and every byte.
        pairs = zip(table.primary_key, key, strict=True)
        where = " AND ".join(f"{source.quote(name)} = {value}" for name, value in pairs)
        with source.errors():
            row = source.connection.exec_driver_sql(
                f"SELECT {names} FROM {source.relation(table)} WHERE {where}"
            ).first()
            literals = source.connection.exec_driver_sql(f"SELECT {', '.join(key)}").first()
        assert literals is not None
        old = self.origin.row(table.name, dict(zip(table.primary_key, literals, strict=True)))
        if row is None:
            return old, None
        values = {
            reading.column.name: value for reading, value in zip(column_readings, row, strict=True)
        }
        return old, self.origin.row(table.name, values)


_EVENTS = ("insert", "update", "delete", "before_insert", "before_update")


def _triggers(table: SourceTable) -> Iterator[str]:
    new, old = _log(table, "NEW"), _log(table, "OLD")
    bodies = {
        "insert": ("AFTER INSERT", new),
        "update": ("AFTER UPDATE", f"{old} {new}"),
        "delete": ("AFTER DELETE", old),
    }
    if collisions := _collisions(table):
        bodies["before_insert"] = ("BEFORE INSERT", collisions)
        bodies["before_update"] = ("BEFORE UPDATE", collisions)
    for event, (moment, body) in bodies.items():
        name = _quoted(TRIGGER.format(table=table.name, event=event))
        yield (
            f"CREATE TRIGGER IF NOT EXISTS {name} {moment} ON {_quoted(table.name)}"
            f" BEGIN {body} END"
        )


def _log(table: SourceTable, row: str) -> str:
    return f"INSERT INTO {LOG} (name, key, at) VALUES ({_logged(table, row)});"


def _logged(table: SourceTable, row: str) -> str:
    keys = ", ".join(f"quote({row}.{_quoted(name)})" for name in table.primary_key)
    # Seconds since 1970 with a fraction; SQLite's CURRENT_TIMESTAMP has whole seconds only.
    at = "(julianday('now') - 2440587.5) * 86400.0"
    return f"{_literal(table.name)}, json_array({keys}), {at}"


def _collisions(table: SourceTable) -> str:
    """Returns statements that log the rows which a new row may replace."""
    statements = ""
    for index in table.indexes:
        if not index.is_unique or not index.columns or index.expressions:
            continue
        same = " AND ".join(f"o.{_quoted(name)} = NEW.{_quoted(name)}" for name in index.columns)
        statements += (
            f"INSERT INTO {LOG} (name, key, at) SELECT {_logged(table, 'o')}"
            f" FROM {_quoted(table.name)} o WHERE {same}; "
        )
    return statements


def _end(source: SourceDatabase) -> int:
    """Returns the last number that was given, even when its line is gone; waits for writers."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            sequence = source.rows("SELECT seq FROM sqlite_sequence WHERE name = :name", name=LOG)
            break
        except SourceError as error:
            if BUSY not in str(error) or time.monotonic() > until:
                raise
    if sequence:
        return int(sequence[0][0])
    source.rows(f"SELECT 1 FROM {LOG} LIMIT 1")
    return 0


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"
