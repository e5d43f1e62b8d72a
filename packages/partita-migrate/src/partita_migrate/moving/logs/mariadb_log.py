"""The binlog of MariaDB and MySQL: row events with full images and column names.

A session begins with a consistent snapshot. MariaDB reports the snapshot's place in the log; for
MySQL it is determined (`_snapshot`). A position is the number of a binlog file and an offset in it.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress

import pymysql

from partita.errors import PartitaError
from partita_migrate.moving.logs.binlog_events.binlog_bytes import EventBytes
from partita_migrate.moving.logs.binlog_events.binlog_stream import (
    BETWEEN,
    COMPRESSED,
    GTIDS,
    PARTIAL_UPDATE,
    ROWS,
    STATEMENTS,
    UPDATE_ROWS,
    WRITE_ROWS,
    XA_PREPARE,
    XID,
    BinlogEvent,
    BinlogStream,
    statement_of,
)
from partita_migrate.moving.logs.binlog_events.binlog_table_maps import TableMap
from partita_migrate.moving.logs.binlog_events.binlog_values import RowReader, reader_of, row_reader
from partita_migrate.moving.logs.move_source import MoveSource, check_columns
from partita_migrate.moving.logs.source_changes import (
    LogLost,
    LogSession,
    OpenSession,
    RowChange,
    SourceLog,
    SourceTransaction,
)
from partita_migrate.proving.sandbox.source_snapshot import BEGIN
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

SETTINGS = {
    "log_bin": ("ON", "log_bin"),
    "binlog_format": ("ROW", "binlog_format=ROW"),
    "binlog_row_image": ("FULL", "binlog_row_image=FULL"),
    "binlog_row_metadata": ("FULL", "binlog_row_metadata=FULL"),
    "log_bin_compress": ("OFF", "log_bin_compress=OFF"),
    "binlog_transaction_compression": ("OFF", "binlog_transaction_compression=OFF"),
    "binlog_row_value_options": ("", "binlog_row_value_options=''"),
    "gtid_mode": ("ON", "gtid_mode=ON and enforce_gtid_consistency=ON"),
}
"""What following requires, and how to write it in the server's settings."""
MANDATORY = "log_bin"
REFUSED = {
    XA_PREPARE: "runs XA transactions, whose rows are in the binlog before they are committed; they"
    " cannot be followed.",
    PARTIAL_UPDATE: "writes parts of documents into its binlog; set binlog_row_value_options='' and"
    " start over with a new load.",
    **dict.fromkeys(
        COMPRESSED,
        "compresses its binlog; set log_bin_compress=OFF (MariaDB) or"
        " binlog_transaction_compression=OFF (MySQL), for sessions as well, and start over"
        " with a new load.",
    ),
}
"""By type of event, why following stops there."""
HEARTBEAT_SECONDS = 0.5
IDLE_SECONDS = 0.02
WAITING_CHANGES_MAX = 10_000
RETRY_SECONDS = 0.5
AWAY_SECONDS_MAX = 300
"""How long a server that restarts is waited for."""
EXACT_SECONDS_MAX = 2.0
"""How long a moment without commits is waited for."""
COMMIT_SECONDS_MAX = 60
PURGED = 1236
AWAY = 2013
LOST = (1927, 1317, 2002, 2003, 2006, 2013, 2014, 1053, 1045)
NO_CASCADES = 0x02 | 0x10
"""Flags of a row event. Either foreign key checks were off in the session, or the server (MySQL 9.6
and later) logs the rows that cascades change."""
_TRUNCATE = re.compile(r"\s*TRUNCATE\s+(?:TABLE\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_DML = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|LOAD)\b", re.IGNORECASE)
_UNLOGGED = re.compile(
    r"\s*(DROP\s+TABLE|RENAME\s+TABLE|CREATE\s+OR\s+REPLACE\s+TABLE|ALTER\b.*\bTABLE\b.*"
    r"(\b(DROP|TRUNCATE|EXCHANGE|CONVERT)\s+PARTITION\b|\bCONVERT\s+TABLE\b"
    r"|\bRENAME\s+(?!COLUMN\b|INDEX\b|KEY\b)|\bIMPORT\s+TABLESPACE\b))",
    re.IGNORECASE | re.DOTALL,
)
"""Statements after which a table has other rows, although the binlog does not list them."""
_IGNORED = re.compile(r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|START TRANSACTION|#)", re.I)
_TEXT = re.compile(r"'(?:[^'\\]|\\.|'')*'|/\*.*?\*/|(?:--\s|#)[^\n]*", re.DOTALL)
"""Values and comments, which are not names in a statement."""
_NAME = r"`((?:[^`]|``)+)`|\"((?:[^\"]|\"\")+)\"|([\w$]+)"
_NAMES = re.compile(rf"(?:(?:{_NAME})\s*\.\s*)?(?:{_NAME})")


class MariaDBLog(SourceLog):
    """The binlog of one server."""

    def __init__(self, origin: MoveSource) -> None:
        self.origin = origin
        self.tables = {table.name: table for table in origin.tables}

    def prepare(self) -> None:
        with self.origin.connect() as source:
            variables = {
                str(name): str(value) for name, value in source.rows("SHOW GLOBAL VARIABLES")
            }
        for name, (required, written) in SETTINGS.items():
            value = variables.get(name)
            # A variable that this server does not have does not matter: MariaDB has no gtid_mode.
            if (value is None and name == MANDATORY) or (value and value.upper() != required):
                raise PartitaError(
                    f"{self.origin.address} cannot be followed: {name} is {value}; set {written}"
                    " and restart the server, or load once with --no-follow."
                )

    @contextmanager
    def sessions(self, shared: str = "") -> Iterator[OpenSession]:
        yield self._session

    @contextmanager
    def _session(self) -> Iterator[LogSession]:
        with self.origin.connect() as source, source.errors():
            begin = _snapshot if source.dialect == "mysql" else _reported_snapshot
            file, place, is_exact = begin(source)
            try:
                yield LogSession(source, _position(file, place), f"{file}:{place}", is_exact)
            finally:
                if not source.is_lost:
                    source.connection.exec_driver_sql("ROLLBACK")

    def end(self, source: SourceDatabase) -> int:
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
        """Does nothing: reading a binlog leaves nothing behind."""

    def transactions(self, after: int, resume: str) -> Generator[SourceTransaction | None]:
        away_since: float | None = None
        while True:
            reader = _BinlogReader(self, after, resume)
            try:
                for transaction in reader.transactions():
                    away_since = None
                    if transaction is not None:
                        after, resume = transaction.position, transaction.resume
                    yield transaction
            except (pymysql.Error, SourceError) as error:
                code = AWAY if isinstance(error, SourceError) else error.args[0]
                if code == PURGED:
                    raise LogLost(
                        f"{self.origin.address} has purged its binlog from {resume} on; start over"
                        " with a new load, and keep binlogs for longer than a load takes."
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


class TransactionQueue(queue.Queue[SourceTransaction | BaseException]):
    """A queue of transactions that is limited by their number of changes."""

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._changes = 0

    def _qsize(self) -> int:
        return self._changes

    def _put(self, item: SourceTransaction | BaseException) -> None:
        super()._put(item)
        self._changes += _weight(item)

    def _get(self) -> SourceTransaction | BaseException:
        item = super()._get()
        self._changes -= _weight(item)
        return item


def _weight(item: SourceTransaction | BaseException) -> int:
    return max(len(item.changes), 1) if isinstance(item, SourceTransaction) else 1


class _BinlogReader:
    """One replication connection; a thread of its own groups events into transactions."""

    def __init__(self, log: MariaDBLog, after: int, resume: str) -> None:
        self.origin = log.origin
        self.tables = log.tables
        self.database = str(log.origin.address.url.database)
        self.after = after
        self.file, _, place = resume.rpartition(":")
        self.place = int(place)
        self._readers: dict[int, tuple[TableMap, RowReader, RowReader]] = {}
        self._waiting = TransactionQueue(WAITING_CHANGES_MAX)
        self._is_closed = False
        self._stream: BinlogStream | None = None
        self._thread = threading.Thread(target=self._run, name="binlog", daemon=True)
        self._parents = {
            key.referenced_table for table in self.tables.values() for key in table.foreign_keys
        }

    def transactions(self) -> Iterator[SourceTransaction | None]:
        self._thread.start()
        while True:
            try:
                transaction = self._waiting.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                yield None
                continue
            if isinstance(transaction, BaseException):
                raise transaction
            yield transaction

    def close(self) -> None:
        self._is_closed = True
        if self._stream is not None:
            self._stream.close()
        # The thread may be waiting for room in the queue.
        with suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()
        if self._thread.ident is not None:
            self._thread.join(5)

    def _put(self, transaction: SourceTransaction | BaseException) -> None:
        while not self._is_closed:
            with suppress(queue.Full):
                self._waiting.put(transaction, timeout=0.5)
                return

    # In the thread.

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as error:
            self._put(error)

    def _read(self) -> None:
        """Groups events into transactions; runs in a thread of its own."""
        with self.origin.connect() as source:
            arguments = self.origin.arguments(source)
        arguments |= {"read_timeout": 60, "connect_timeout": 10}
        self._stream = BinlogStream(arguments, self.file, self.place, HEARTBEAT_SECONDS)
        changes: list[RowChange] = []
        is_within = False
        for event in self._stream.events():
            if self._is_closed:
                return
            if event.kind in ROWS:
                changes += self._changes(event)
            elif event.kind in GTIDS:
                changes, is_within = [], True
            elif event.kind == XID or (event.kind in STATEMENTS and self._is_end(event, changes)):
                self._commit(event, changes)
                changes, is_within = [], False
            elif event.kind in BETWEEN and not is_within:
                # This may be the end of the log: a file without a transaction so far.
                self._commit(event, [])
            elif event.kind in REFUSED:
                raise PartitaError(f"{self.origin.address} {REFUSED[event.kind]}")

    def _commit(self, event: BinlogEvent, changes: list[RowChange]) -> None:
        position = _position(event.file, event.place)
        if position > self.after:
            self.after = position
            resume = f"{event.file}:{event.place}"
            # Events that the server makes up, such as heartbeats, have no timestamp.
            self._put(SourceTransaction(position, resume, event.timestamp or time.time(), changes))

    def _is_end(self, event: BinlogEvent, changes: list[RowChange]) -> bool:
        """True when a statement ends a transaction: COMMIT, or a statement that is one by
        itself."""
        schema, statement = statement_of(event)
        if _IGNORED.match(statement):
            return statement.strip().upper() == "COMMIT"
        statement = _TEXT.sub(" ", statement).strip()
        if statement.upper().startswith("XA "):
            raise PartitaError(f"{self.origin.address} {REFUSED[XA_PREPARE]}")
        named = list(self._named(statement, schema))
        if truncated := _TRUNCATE.match(statement):
            changes += [RowChange(table, None, None) for table in self._named(truncated[1], schema)]
        elif _DML.match(statement) and (named or schema == self.database):
            raise PartitaError(
                f"{self.origin.address} has a statement instead of rows in its binlog"
                f" ({statement[:60]!r}): a session had binlog_format=STATEMENT. Start over with a"
                " new load."
            )
        elif named and _UNLOGGED.match(statement):
            raise PartitaError(
                f"{self.origin.address} has replaced rows of {named[0]} without listing them in its"
                f" binlog ({statement[:60]!r}). Start over with a new load."
            )
        elif any(re.search(rf"\b{re.escape(name)}\b", statement) for name in self.tables):
            with self.origin.connect() as source:
                self.origin.check_schema(source)
        # In MySQL, rows follow on a CREATE TABLE ... SELECT within the same transaction.
        return not statement.rstrip().upper().endswith("START TRANSACTION")

    def _named(self, text: str, schema: str) -> Iterator[str]:
        """Yields the moved tables that a statement names."""
        for match in _NAMES.finditer(text):
            *before, quoted, ansi, plain = match.groups()
            name = quoted or ansi or plain
            if name in self.tables and next(filter(None, before), schema) == self.database:
                yield name

    def _changes(self, event: BinlogEvent) -> Iterator[RowChange]:
        """Yields the row changes of an event of a moved table."""
        assert self._stream is not None
        rows = self._stream.rows(event)
        table = rows.shape.table
        if rows.shape.schema != self.database or table not in self.tables:
            return
        if not rows.is_whole:
            raise PartitaError(
                f"The binlog has only parts of rows of {table}: a session had a binlog_row_image"
                " other than FULL. Start over with a new load."
            )
        whole, key = self._row_readers(rows.shape)
        data = EventBytes(rows.images)
        cascades = not rows.flags & NO_CASCADES and table in self._parents
        if event.kind in WRITE_ROWS:
            while not data.is_empty:
                yield RowChange(table, None, whole(data))
            return
        # Cascades are repeated from the columns that others refer to, not only from the key.
        before = whole if cascades else key
        is_update = event.kind in UPDATE_ROWS
        while not data.is_empty:
            old = before(data)
            yield RowChange(table, old, whole(data) if is_update else None, has_cascades=cascades)

    def _row_readers(self, shape: TableMap) -> tuple[RowReader, RowReader]:
        """Returns the readers of a whole row and of its primary key."""
        readers = self._readers.get(id(shape))
        if readers is None:
            table = self.tables[shape.table]
            names = [column.name for column in shape.columns]
            if not all(names):
                raise PartitaError(
                    f"{self.origin.address} does not write column names into its binlog; set"
                    " binlog_row_metadata=FULL and start over with a new load."
                )
            check_columns(table, set(names))
            declared = {column.name: column for column in table.columns}
            converters = self.origin.converters(table.name)
            whole = [
                (name, reader_of(column, declared[name]), converters.get(name))
                for name, column in zip(names, shape.columns, strict=True)
            ]
            key = [
                (name, read, convert if name in table.primary_key else None)
                for name, read, convert in whole
            ]
            readers = (shape, row_reader(whole), row_reader(key if table.primary_key else whole))
            self._readers[id(shape)] = readers
        return readers[1], readers[2]


def _reported_snapshot(source: SourceDatabase) -> tuple[str, int, bool]:
    """Begins a snapshot; MariaDB reports its place in the log."""
    before = _status(source)
    source.connection.exec_driver_sql(BEGIN["mysql"])
    status = dict(source.rows("SHOW STATUS LIKE 'binlog_snapshot_%'"))
    if status.get("Binlog_snapshot_file"):
        return status["Binlog_snapshot_file"], int(status["Binlog_snapshot_position"]), True
    return *before, False


def _snapshot(source: SourceDatabase) -> tuple[str, int, bool]:
    """Begins a snapshot of MySQL and finds its place in the log.

    The snapshot contains everything before that place. When nothing was committed meanwhile, it
    contains nothing after it either, and is exact.
    """
    end = time.monotonic() + EXACT_SECONDS_MAX
    while True:
        place = _status(source)
        _wait_for_commits(source)
        source.connection.exec_driver_sql(BEGIN["mysql"])
        is_exact = _status(source) == place and not _committing(source)
        if is_exact or time.monotonic() > end:
            return *place, is_exact
        source.connection.exec_driver_sql("ROLLBACK")


def _wait_for_commits(source: SourceDatabase) -> None:
    """Waits for transactions that are in the log and not yet visible.

    MySQL writes a transaction to the log before its rows can be read, much earlier when a
    semi-synchronous replica is slow to confirm. Until the rows are visible, the transaction owns
    its GTID.
    """
    end = time.monotonic() + COMMIT_SECONDS_MAX
    begun = _committing(source)
    while begun := begun & _committing(source):
        if time.monotonic() > end:
            raise PartitaError(
                f"{source.address} has transactions in its binlog that do not end"
                f" ({', '.join(sorted(begun))}, the number of a GTID and of a session); end them."
            )
        time.sleep(0.001)


def _committing(source: SourceDatabase) -> set[str]:
    ((owned,),) = source.rows("SELECT @@global.gtid_owned")
    return set(re.findall(r"\d+#\d+", str(owned)))


def _status(source: SourceDatabase) -> tuple[str, int]:
    for statement in ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"):
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
