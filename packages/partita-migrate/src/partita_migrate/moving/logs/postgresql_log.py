"""PostgreSQL's logical replication: a publication, a slot, and messages of pgoutput.

A slot keeps every change from the moment it is created, and exports a snapshot of exactly that
moment. Positions are the log sequence numbers of commits.
"""

from __future__ import annotations

import hashlib
import select
import struct
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import pq

from partita.errors import PartitaError
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.logs.pgoutput import PgoutputDecoder
from partita_migrate.moving.logs.source_changes import (
    LogLost,
    LogSession,
    OpenSession,
    SourceLog,
    SourceTransaction,
)
from partita_migrate.proving.sandbox.source_snapshot import consistent_read
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

IDLE_SECONDS = 0.02
STATUS_SECONDS = 5.0
RETRY_SECONDS = 0.5
AWAY_SECONDS_MAX = 300
SESSION = "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=postgres -c bytea_output=hex"
SLOT_LOOK_SECONDS = 1.0
SLOT_SECONDS_MAX = 300
DROP_SECONDS_MAX = 10.0
DROP_PAUSE_SECONDS = 0.05
WRITERS = (
    "SELECT pid, usename, application_name, to_char(xact_start, 'HH24:MI:SS') FROM pg_stat_activity"
    " WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start"
)
PREPARED = (
    "SELECT 'the prepared transaction ' || quote_literal(gid) || ' of ' || owner || ' since '"
    " || to_char(prepared, 'HH24:MI:SS') FROM pg_prepared_xacts WHERE database = current_database()"
    " ORDER BY prepared"
)
"""Prepared transactions, which belong to no session."""
PARTS = """
WITH RECURSIVE part (number) AS (
    SELECT to_regclass({})::oid
    UNION SELECT i.inhrelid FROM pg_inherits i JOIN part p ON i.inhparent = p.number
)"""
"""A table with all its partitions."""
IDENTITIES = f"""
{PARTS.format("%s")} SELECT c.oid::regclass::text FROM part p JOIN pg_class c ON c.oid = p.number
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisreplident
WHERE c.relkind = 'r' AND (c.relreplident = 'n' OR (c.relreplident = 'i' AND NOT i.indisprimary))
"""
"""Partitions of a table whose log entries do not name rows by the primary key."""
STORAGE = f"""
{PARTS.format(":relation")} SELECT c.oid::bigint, c.relfilenode::bigint FROM part p
JOIN pg_class c ON c.oid = p.number ORDER BY 1
"""
UNPUBLISHED = (
    "SELECT 1 WHERE to_regclass(%s)::oid NOT IN (SELECT prrelid FROM pg_publication_rel r"
    " JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = %s)"
)


class PostgreSQLLog(SourceLog):
    """The replication slot and the publication of one move."""

    def __init__(self, origin: MoveSource) -> None:
        self.origin = origin
        where = f"{origin.folder.path.resolve()} {origin.address}"
        self.name = f"partita_{hashlib.sha256(where.encode()).hexdigest()[:12]}"
        """The name of the slot and of the publication."""
        self._confirmed = 0
        self._stream: Any = None

    def prepare(self) -> None:
        without = [table.name for table in self.origin.tables if not table.primary_key]
        if without:
            raise PartitaError(
                f"{without[0]} has no primary key, and PostgreSQL refuses updates of a table that"
                " is published without one; add one, exclude the table, or load once with"
                " --no-follow."
            )
        with self._connection() as connection:
            (level,) = connection.execute("SHOW wal_level").fetchone()  # type: ignore[misc]
            if level != "logical":
                raise PartitaError(
                    f"{self.origin.address} cannot be followed: wal_level is {level}; set"
                    " wal_level = logical and restart the server, or load once with --no-follow."
                )
            self._check_identities(connection)
            publication = connection.execute(
                "SELECT 1 FROM pg_publication WHERE pubname = %s", (self.name,)
            ).fetchone()
            if publication is None:
                self._publish(connection)

    def _publish(self, connection: psycopg.Connection[Any]) -> None:
        try:
            connection.execute(
                f"CREATE PUBLICATION {self.name} FOR TABLE {', '.join(self._relations())}"
                " WITH (publish_via_partition_root = true)"
            )
        except psycopg.Error as error:
            message = self.origin.address.scrub("; ".join(str(error).splitlines()))
            raise PartitaError(
                f"{self.origin.address} cannot publish its tables: {message} Exclude what cannot be"
                " followed, or load once with --no-follow."
            ) from error

    def _relations(self) -> list[str]:
        with self.origin.connect() as source:
            return [source.relation(table) for table in self.origin.tables]

    def _check_identities(self, connection: psycopg.Connection[Any]) -> None:
        """Raises for a table without a usable replica identity: once published, it would refuse
        updates."""
        for relation in self._relations():
            for (name,) in connection.execute(IDENTITIES, (relation,)):
                raise PartitaError(
                    f"{name} has a replica identity other than its primary key, which following"
                    f" needs; run ALTER TABLE {name} REPLICA IDENTITY DEFAULT, or load once"
                    " with --no-follow."
                )

    def _has_slot(self, connection: psycopg.Connection[Any]) -> bool:
        query = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
        return connection.execute(query, (self.name,)).fetchone() is not None

    @contextmanager
    def sessions(self, shared: str = "") -> Iterator[OpenSession]:
        """Creates the move's slot the first time; later, a temporary slot gives each snapshot its
        position."""
        if shared:
            yield self._sessions_on(shared)
            return
        with self._connection() as connection:
            kind = f"{self.name}_{time.time_ns()} TEMPORARY"
            if not self._has_slot(connection):
                kind = self.name
        with self._connection(replication="database") as connection:
            made = self._make_slot(connection, kind)
            self.shared = f"{made[1].decode()} {made[2].decode()}"
            try:
                yield self._sessions_on(self.shared)
            finally:
                self.shared = ""

    def _make_slot(self, connection: psycopg.Connection[Any], kind: str) -> list[bytes]:
        """Creates a slot; the server first waits for all transactions that have written so far."""
        stream, began = connection.pgconn, time.monotonic()
        stream.send_query(
            f"CREATE_REPLICATION_SLOT {kind} LOGICAL pgoutput (SNAPSHOT 'export')".encode()
        )
        while True:
            select.select([stream.socket], [], [], SLOT_LOOK_SECONDS)
            stream.consume_input()
            if not stream.is_busy():
                return _answer(stream.get_result())
            holders = self._writers()
            self.tell(f"Waiting for {holders[0] if holders else 'the slot'}")
            if time.monotonic() - began > SLOT_SECONDS_MAX:
                connection.cancel()
                raise PartitaError(
                    f"{self.origin.address} has open transactions with writes that do not end:"
                    f" {'; '.join(holders) or 'none that this user may see'}. Until they end, no"
                    " snapshot has a position in the log. End them, and run this again."
                )

    def _writers(self) -> list[str]:
        with self._connection() as connection:
            writers = connection.execute(WRITERS).fetchall()
            prepared = connection.execute(PREPARED).fetchall()
        return [
            f"session {pid} of {user}{f' ({name})' if name else ''}, in a transaction since {since}"
            for pid, user, name, since in writers
        ] + [str(transaction) for (transaction,) in prepared]

    def _sessions_on(self, shared: str) -> OpenSession:
        start, _, snapshot = shared.partition(" ")
        # Commits at or after the slot's starting point come from the slot.
        position = _number(start) - 1

        @contextmanager
        def session() -> Iterator[LogSession]:
            with self.origin.connect() as source, source.errors(), consistent_read(source):
                source.connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                yield LogSession(source, position, start)

        return session

    def end(self, source: SourceDatabase) -> int:
        ((place,),) = source.rows("SELECT CAST(pg_current_wal_lsn() AS text)")
        return _number(str(place)) - 1

    def bytes_behind(self, position: int, end: int) -> int | None:
        return max(end - position, 0)

    def confirm(self, position: int) -> None:
        self._confirmed = max(self._confirmed, position)
        if self._stream is not None:
            _send_status(self._stream.pgconn, self._confirmed, is_asking=False)

    def remove(self) -> None:
        with self._connection() as connection:
            end = time.monotonic() + DROP_SECONDS_MAX
            while self._has_slot(connection):
                connection.execute(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                    " WHERE slot_name = %s AND NOT active",
                    (self.name,),
                )
                # Whoever still reads the slot was killed: this process has the folder's lock.
                connection.execute(
                    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
                    " WHERE slot_name = %s AND active",
                    (self.name,),
                )
                if time.monotonic() > end:
                    raise PartitaError(
                        f"{self.origin.address}: another session reads the slot {self.name}, so it"
                        " cannot be dropped; end that session and try again."
                    )
                time.sleep(DROP_PAUSE_SECONDS)
            connection.execute(f"DROP PUBLICATION IF EXISTS {self.name}")

    def transactions(self, after: int, resume: str) -> Generator[SourceTransaction | None]:
        away_since: float | None = None
        while True:
            try:
                with self._connection() as connection:
                    if not self._has_slot(connection):
                        raise LogLost(
                            f"{self.origin.address} no longer has the replication slot"
                            f" {self.name}, so changes since then are lost; start over with a"
                            " new load."
                        )
                    self._check_published(connection)
                for transaction in self._stream_from(after):
                    away_since = None
                    if transaction is not None:
                        after = max(after, transaction.position)
                    yield transaction
            except (psycopg.OperationalError, SourceError) as error:
                self._stream = None
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > AWAY_SECONDS_MAX:
                    message = self.origin.address.scrub(str(error))
                    raise PartitaError(
                        f"{self.origin.address} cannot be followed: {message}."
                    ) from error
                yield None
                time.sleep(RETRY_SECONDS)

    def _check_published(self, connection: psycopg.Connection[Any]) -> None:
        for relation in self._relations():
            if connection.execute(UNPUBLISHED, (relation, self.name)).fetchone() is not None:
                raise LogLost(
                    f"{self.origin.address} no longer publishes {relation}: it was dropped and"
                    " created again, or taken out of the publication, so changes since then are"
                    " lost; start over with a new load."
                )

    def storage(self, source: SourceDatabase) -> str:
        """Changes when partitions come, go or are emptied, and when a table is rewritten."""
        relations = map(source.relation, self.origin.tables)
        storages = [source.rows(STORAGE, relation=relation) for relation in relations]
        return hashlib.sha256(
            repr([list(map(tuple, rows)) for rows in storages]).encode()
        ).hexdigest()

    def _stream_from(self, after: int) -> Iterator[SourceTransaction | None]:
        # psycopg does not implement COPY BOTH, so libpq's functions are called directly.
        with self._connection() as plain, self._connection(replication="database") as connection:
            decode = PgoutputDecoder(self.origin, plain)
            # 0/0: the server continues at the position that the slot has confirmed. Transactions
            # that are sent again after a crash are skipped by their positions.
            connection.pgconn.send_query(
                f"START_REPLICATION SLOT {self.name} LOGICAL 0/0 (proto_version '1',"
                f" publication_names '{self.name}')".encode()
            )
            _wait_for_copy(connection.pgconn)
            self._stream = connection
            try:
                yield from self._read(connection.pgconn, decode, after)
            finally:
                self._stream = None

    def _read(
        self, stream: pq.abc.PGconn, decode: PgoutputDecoder, after: int
    ) -> Iterator[SourceTransaction | None]:
        """Yields transactions behind `after`, and None while there is nothing to read."""
        reported_at = 0.0
        is_within = False
        while True:
            if time.monotonic() - reported_at > STATUS_SECONDS:
                _send_status(stream, self._confirmed, is_asking=False)
                reported_at = time.monotonic()
            size, content = stream.get_copy_data(1)
            if size < 0:
                raise psycopg.OperationalError("the server ended the replication")
            if size == 0:
                yield None
                if not is_within:
                    # The server's reply says how far it has read the log.
                    _send_status(stream, self._confirmed, is_asking=True)
                select.select([stream.socket], [], [], IDLE_SECONDS)
                stream.consume_input()
                continue
            message = bytes(content)
            if message[:1] == b"k":
                (sent,) = struct.unpack_from(">Q", message, 1)
                if not is_within and sent - 1 > after:
                    # Everything that was committed before this position has been sent.
                    after = sent - 1
                    yield SourceTransaction(after, "", time.time())
                continue
            # Behind the 25 bytes of an XLogData header, "C" is the commit of a transaction.
            is_within = message[25:26] != b"C"
            transaction = decode.message(message[25:])
            if transaction is not None and transaction.position > after:
                after = transaction.position
                yield transaction

    @contextmanager
    def _connection(self, **more: Any) -> Iterator[psycopg.Connection[Any]]:
        with self.origin.connect() as source:
            arguments = self.origin.arguments(source)
        arguments = {"application_name": "partita migrate", "options": SESSION, **arguments, **more}
        with closing(psycopg.connect(**arguments, autocommit=True)) as connection:
            yield connection


def _answer(result: pq.abc.PGresult | None) -> list[bytes]:
    """Returns the single row of a command's result."""
    if result is None or result.status != pq.ExecStatus.TUPLES_OK:
        message = result.error_message.decode().strip() if result is not None else "no answer"
        raise PartitaError(f"PostgreSQL refused: {message}.")
    return [result.get_value(0, place) or b"" for place in range(result.nfields)]


def _wait_for_copy(stream: pq.abc.PGconn) -> None:
    while stream.is_busy():
        select.select([stream.socket], [], [], IDLE_SECONDS)
        stream.consume_input()
    result = stream.get_result()
    if result is None or result.status != pq.ExecStatus.COPY_BOTH:
        message = result.error_message.decode().strip() if result is not None else "no answer"
        raise psycopg.OperationalError(message)


def _send_status(stream: pq.abc.PGconn, position: int, *, is_asking: bool) -> None:
    # Confirms everything up to and including this commit; the next one lies behind it.
    place = position + 1 if position else 0
    stream.put_copy_data(b"r" + struct.pack(">QQQqB", place, place, place, 0, is_asking))
    stream.flush()


def _number(text: str) -> int:
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)
