"""MariaDB's binlog: row events, in full images, with the names of their columns.

A session begins with a consistent snapshot, whose place in the log the server tells exactly.
Positions are the number of a file and a place in it. MySQL has the same log and no such snapshot:
there the place is read before the session begins, and some changes are applied twice.
"""

from __future__ import annotations

import queue
import random
import re
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    GtidEvent,
    HeartbeatLogEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    XidEvent,
)
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from partita.errors import PartitaError
from partita.migrate.moving.logs.binlog_values import Read, reader_of, rows_of
from partita.migrate.moving.logs.changes import (
    Change,
    ChangeLog,
    LogLost,
    OpenSession,
    Session,
    Transaction,
)
from partita.migrate.moving.logs.origin import BEGIN, Origin, check_columns
from partita.migrate.understanding.sources import Source, SourceError

SETTINGS = {
    "log_bin": ("ON", "log_bin"),
    "binlog_format": ("ROW", "binlog_format=ROW"),
    "binlog_row_image": ("FULL", "binlog_row_image=FULL"),
    "binlog_row_metadata": ("FULL", "binlog_row_metadata=FULL"),
    "log_bin_compress": ("OFF", "log_bin_compress=OFF"),
    "binlog_transaction_compression": ("OFF", "binlog_transaction_compression=OFF"),
}
"""What following needs, and how it is written in the server's settings."""
MANDATORY = "log_bin"
EVENTS = [
    DeleteRowsEvent,
    GtidEvent,
    HeartbeatLogEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
    XidEvent,
]
HEARTBEAT_SECONDS = 0.5
IDLE_SECONDS = 0.02
WAITING_MAX = 5000
RETRY_SECONDS = 0.5
AWAY_SECONDS_MAX = 300
"""A server that restarts is waited for."""
PURGED = 1236
AWAY = 2013
LOST = (1927, 1317, 2002, 2003, 2006, 2013, 2014, 1053, 1045)
NO_FOREIGN_KEY_CHECKS = 2
"""Of the flags of a row event: the session had them switched off."""
_TRUNCATE = re.compile(r"\s*TRUNCATE\s+(?:TABLE\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_DML = re.compile(r"\s*(?:/\*.*?\*/\s*)*(INSERT|UPDATE|DELETE|REPLACE|LOAD)\b", re.I | re.DOTALL)
_IGNORED = re.compile(r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|START TRANSACTION|#)", re.I)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class MariaDBLog(ChangeLog):
    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.tables = {table.name: table for table in origin.tables}

    def prepare(self) -> None:
        with self.origin.connect() as source:
            known = {str(name): str(value) for name, value in source.rows("SHOW GLOBAL VARIABLES")}
        for name, (wanted, written) in SETTINGS.items():
            found = known.get(name)
            if (found is None and name == MANDATORY) or (found and found.upper() != wanted):
                raise PartitaError(
                    f"{self.origin.address} cannot be followed: {name} is {found}; set {written}"
                    " and restart the server, or load once with --no-follow."
                )

    @contextmanager
    def sessions(self, shared: str = "") -> Iterator[OpenSession]:
        yield self._session

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with self.origin.connect() as source, source.errors():
            before = _status(source)
            source.connection.exec_driver_sql(BEGIN["mysql"])
            told = dict(source.rows("SHOW STATUS LIKE 'binlog_snapshot_%'"))
            if told.get("Binlog_snapshot_file"):
                file, place = told["Binlog_snapshot_file"], int(told["Binlog_snapshot_position"])
            else:
                file, place = before
            try:
                yield Session(source, _position(file, place), f"{file}:{place}")
            finally:
                if not source.is_lost:
                    source.connection.exec_driver_sql("ROLLBACK")

    def end(self, source: Source) -> int:
        return _position(*_status(source))

    def bytes_behind(self, position: int, end: int) -> int | None:
        if position >> 32 == end >> 32:
            return max(end - position, 0)
        with self.origin.connect() as source:
            sizes = {_number(str(row[0])): int(row[1]) for row in source.rows("SHOW BINARY LOGS")}
        first, last = position >> 32, end >> 32
        between = sum(size for number, size in sizes.items() if first <= number < last)
        return max(between - (position & 0xFFFFFFFF) + (end & 0xFFFFFFFF), 0)

    def remove(self) -> None:
        """Reading a binlog leaves nothing behind."""

    def transactions(self, after: int, resume: str) -> Generator[Transaction | None]:
        away_since: float | None = None
        while True:
            reader = _Reader(self, after, resume)
            try:
                for one in reader.transactions():
                    away_since = None
                    if one is not None:
                        after, resume = one.position, one.resume
                    yield one
            except (pymysql.Error, SourceError) as error:
                code = AWAY if isinstance(error, SourceError) else error.args[0]
                if code == PURGED:
                    raise LogLost(
                        f"{self.origin.address} no longer has its binlog from {resume} on;"
                        " load anew, with binlogs that are kept for longer than a load takes."
                    ) from error
                away_since = away_since or time.monotonic()
                if code not in LOST or time.monotonic() - away_since > AWAY_SECONDS_MAX:
                    raise PartitaError(
                        f"{self.origin.address} cannot be followed: "
                        f"{self.origin.address.scrub(str(error.args[-1]))}."
                    ) from error
                yield None
                time.sleep(RETRY_SECONDS)
            finally:
                reader.close()


class _Reader:
    """One connection: events in a thread of their own, put together to transactions."""

    def __init__(self, log: MariaDBLog, after: int, resume: str) -> None:
        self.origin = log.origin
        self.tables = log.tables
        self.database = str(log.origin.address.url.database)
        self.after = after
        self.file, _, place = resume.rpartition(":")
        self.place = int(place)
        self._readers: dict[int, tuple[Any, list[Read], list[str]]] = {}
        self._waiting: queue.Queue[Transaction | BaseException] = queue.Queue(WAITING_MAX)
        self._is_closed = False
        self._stream: BinLogStreamReader | None = None
        self._thread = threading.Thread(target=self._run, name="binlog", daemon=True)

    def transactions(self) -> Iterator[Transaction | None]:
        self._thread.start()
        while True:
            try:
                one = self._waiting.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                yield None
                continue
            if isinstance(one, BaseException):
                raise one
            yield one

    def close(self) -> None:
        self._is_closed = True
        stream = self._stream
        if stream is not None:
            # The thread waits for the next event: ending the connection wakes it.
            with suppress(Exception):
                stream._stream_connection._force_close()
        with suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()
        if self._thread.ident is not None:
            self._thread.join(5)

    def _put(self, one: Transaction | BaseException) -> None:
        while not self._is_closed:
            with suppress(queue.Full):
                self._waiting.put(one, timeout=0.5)
                return

    # In the thread.

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as error:
            self._put(error)

    def _connect_once(self, **arguments: Any) -> Any:
        """`mysql-replication` would go on in the middle of a transaction."""
        self._connections += 1
        if self._connections > 2:
            raise pymysql.OperationalError(2013, "the connection was lost")
        return pymysql.connect(**arguments)

    def _read(self) -> None:
        self._connections = 0
        with self.origin.connect() as source:
            arguments = self.origin.arguments(source)
            is_mariadb = source.dialect == "mariadb"
        self._stream = BinLogStreamReader(
            connection_settings={**arguments, "read_timeout": 60, "connect_timeout": 10},
            server_id=random.randint(1 << 20, (1 << 32) - 1),
            resume_stream=True,
            blocking=True,
            log_file=self.file,
            log_pos=self.place,
            only_events=EVENTS,
            only_schemas=[self.database],
            only_tables=list(self.tables),
            is_mariadb=is_mariadb,
            slave_heartbeat=HEARTBEAT_SECONDS,
            pymysql_wrapper=self._connect_once,
            enable_logging=False,
        )
        changes: list[Change] = []
        while not self._is_closed:
            event = self._stream.fetchone()
            if event is None:
                raise pymysql.OperationalError(2013, "the log ended")
            if isinstance(event, RotateEvent):
                self._readers.clear()
            elif isinstance(event, MariadbGtidEvent | GtidEvent):
                changes = []
            elif isinstance(event, RowsEvent):
                changes += self._changes(event)
            elif isinstance(event, XidEvent):
                self._commit(event, changes)
                changes = []
            elif isinstance(event, QueryEvent):
                if self._is_end(event, changes):
                    self._commit(event, changes)
                    changes = []

    def _commit(self, event: Any, changes: list[Change]) -> None:
        assert self._stream is not None
        file, place = self._stream.log_file, event.packet.log_pos
        position = _position(file, place)
        if position > self.after:
            self._put(Transaction(position, f"{file}:{place}", event.timestamp, changes))

    def _is_end(self, event: Any, changes: list[Change]) -> bool:
        """Whether a statement in the log ends a transaction, as one of its own or as COMMIT."""
        statement = event.query if isinstance(event.query, str) else event.query.decode()
        schema = event.schema.decode() if isinstance(event.schema, bytes) else event.schema
        if _IGNORED.match(statement):
            return statement.strip().upper() == "COMMIT"
        if statement.lstrip().upper().startswith("XA "):
            raise PartitaError(
                f"{self.origin.address} runs XA transactions, whose rows are in the binlog before"
                " they are committed; they cannot be followed."
            )
        if truncated := _TRUNCATE.match(_COMMENT.sub(" ", statement)):
            table = self._named(truncated[1], schema)
            if table is not None:
                changes.append(Change(table, None, None))
        elif _DML.match(statement) and schema == self.database:
            raise PartitaError(
                f"{self.origin.address} has a statement in its binlog in place of rows"
                f" ({statement.strip()[:60]!r}): a session had binlog_format=STATEMENT. Load anew."
            )
        elif any(re.search(rf"\b{re.escape(name)}\b", statement) for name in self.tables):
            with self.origin.connect() as source:
                self.origin.check_schema(source)
        return True

    def _named(self, text: str, schema: str) -> str | None:
        parts = [part.strip().strip("`;").strip() for part in text.strip().split(".")]
        database = parts[0] if len(parts) > 1 else schema
        return parts[-1] if database == self.database and parts[-1] in self.tables else None

    def _changes(self, event: Any) -> Iterator[Change]:
        columns, readers, names = self._shape(event)
        images = [event.columns_present_bitmap, getattr(event, "columns_present_bitmap2", b"")]
        present = sum(bin(byte).count("1") for image in images for byte in image)
        if present != len(columns) * (2 if images[1] else 1):
            raise PartitaError(
                f"The binlog holds parts of rows of {event.table} only: a session had another"
                " binlog_row_image than FULL. Load anew."
            )
        content = event.packet.read(event.event_size - event.packet.read_bytes)
        rows = (
            self.origin.row(event.table, dict(zip(names, row, strict=True)))
            for row in rows_of(content, readers)
        )
        cascades = not event.flags & NO_FOREIGN_KEY_CHECKS
        if isinstance(event, WriteRowsEvent):
            yield from (Change(event.table, None, row) for row in rows)
        elif isinstance(event, DeleteRowsEvent):
            yield from (Change(event.table, row, None, has_cascades=cascades) for row in rows)
        else:
            for old, new in zip(rows, rows, strict=True):
                yield Change(event.table, old, new, has_cascades=cascades)

    def _shape(self, event: Any) -> tuple[Any, list[Read], list[str]]:
        known = self._readers.get(event.table_id)
        if known is None or known[0] is not event.columns:
            table = self.tables[event.table]
            names = [column.name for column in event.columns]
            if None in names:
                raise PartitaError(
                    f"{self.origin.address} writes no names of columns into its binlog; set"
                    " binlog_row_metadata=FULL and load anew."
                )
            check_columns(table, set(names))
            declared = {column.name: column for column in table.columns}
            readers = [reader_of(column, declared[column.name]) for column in event.columns]
            known = self._readers[event.table_id] = (event.columns, readers, names)
        return known


def _status(source: Source) -> tuple[str, int]:
    for statement in ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"):
        with suppress(PartitaError):
            for row in source.rows(statement):
                return str(row[0]), int(row[1])
    raise PartitaError(
        f"{source.address} has no binlog, or does not show it to this user; grant it"
        " REPLICATION SLAVE and REPLICATION CLIENT (BINLOG MONITOR), or load with --no-follow."
    )


def _number(file: str) -> int:
    return int(file.rpartition(".")[2])


def _position(file: str, place: int) -> int:
    return _number(file) << 32 | place
