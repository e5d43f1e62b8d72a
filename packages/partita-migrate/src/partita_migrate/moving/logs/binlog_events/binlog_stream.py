"""Reads the binlog of MariaDB or MySQL, beginning at a place in a file.

The server repeats a table map before every statement that changes the table; each is decoded once
and recognized by its bytes afterwards. Formats: MySQL's internals manual, "Binary log".
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pymysql
from pymysql.constants.COMMAND import COM_BINLOG_DUMP

from partita_migrate.moving.logs.binlog_events.binlog_bytes import packed_number
from partita_migrate.moving.logs.binlog_events.binlog_table_maps import (
    TableMap,
    character_sets_of,
    shape_of,
)

QUERY, ROTATE, XID, LOAD_QUERY, TABLE_MAP, XA_PREPARE, PARTIAL_UPDATE = 2, 4, 16, 18, 19, 38, 39
STATEMENTS = (QUERY, LOAD_QUERY)
WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS = (23, 30), (24, 31), (25, 32)
ROWS = (*WRITE_ROWS, *UPDATE_ROWS, *DELETE_ROWS)
WITH_EXTRA_DATA = (30, 31, 32)
COMPRESSED = (40, 165, 166, 167, 168, 169, 170, 171)
GTIDS = (33, 34, 42, 162)
"""MySQL's anonymous and named GTID events, MySQL's with a tag, and MariaDB's."""
BETWEEN = (3, 15, 27, 35, 161, 163)
"""Events that never come inside a transaction: stop, format description, heartbeat, checkpoint, and
lists of GTIDs (MySQL's and MariaDB's)."""
CHECKSUM_BYTES = 4
MARIADB_CAPABILITY = 4
"""Says that this client understands GTID events."""
LOST = 2013
EOF_MARK = 0xFE
LOAD_FILE_BYTES = 13
"""Bytes of a LOAD DATA event before its statement: the file and the place of its name."""
_HEADER = struct.Struct("<xIBIIIH")
_QUERY = struct.Struct("<IIBHH")


class BinlogEvent(NamedTuple):
    """One event of the log, without header and checksum."""

    kind: int
    timestamp: int
    file: str
    place: int
    """Where the next event begins."""
    body: bytes


class RowsEvent(NamedTuple):
    """The row images of one event."""

    shape: TableMap
    flags: int
    is_whole: bool
    """True when every column is in every image (binlog_row_image=FULL)."""
    images: bytes


class BinlogStream:
    """A connection that reads the binlog as a replica does."""

    def __init__(
        self, arguments: dict[str, Any], file: str, place: int, heartbeat_seconds: float
    ) -> None:
        self._file = file
        self._known: dict[bytes, TableMap] = {}
        self._tables: dict[bytes, TableMap] = {}
        self._connection = pymysql.connect(**arguments)
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT VERSION(), @@global.binlog_checksum")
            version, checksum = cursor.fetchone()
            self._is_mariadb = "MariaDB" in version
            self._has_checksum = str(checksum).upper() != "NONE"
            self._character_sets = character_sets_of(cursor)
            if self._has_checksum:
                # Without this, the server refuses to send events with checksums.
                cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
            cursor.execute(f"SET @master_heartbeat_period = {int(heartbeat_seconds * 1e9)}")
            cursor.execute(f"SET @mariadb_slave_capability = {MARIADB_CAPABILITY}")
        name = file.encode()
        # Replicas are told apart by their server id; one with an id in use would cut the other off.
        number = random.randint(1 << 20, (1 << 32) - 1)
        request = struct.pack("<BIHI", COM_BINLOG_DUMP, place, 0, number) + name
        self._connection._write_bytes(struct.pack("<I", len(request)) + request)
        # The driver numbers packets itself and has not seen the one sent here.
        self._connection._next_seq_id = 1

    def close(self) -> None:
        """Closes the connection, which wakes a thread that waits for the next event."""
        with suppress(Exception):
            self._connection._force_close()

    def events(self) -> Iterator[BinlogEvent]:
        """Yields all events except for table maps."""
        while True:
            packet = self._connection._read_packet()
            content = packet.get_all_data()
            if content[0] == EOF_MARK and len(content) < 9:
                raise pymysql.OperationalError(LOST, "the log ended")
            timestamp, kind, _, _, place, _ = _HEADER.unpack_from(content)
            end = -CHECKSUM_BYTES if self._has_checksum else None
            body = content[_HEADER.size : end]
            if kind == TABLE_MAP:
                shape = self._known.get(body)
                if shape is None:
                    shape = self._known[body] = shape_of(
                        body, self._character_sets, is_mariadb=self._is_mariadb
                    )
                self._tables[body[:6]] = shape
                continue
            if kind == ROTATE:
                # A restarted server begins a new file and gives table numbers anew.
                self._tables.clear()
                self._known.clear()
                self._file = body[8:].decode()
            yield BinlogEvent(kind, timestamp, self._file, place, body)

    def rows(self, event: BinlogEvent) -> RowsEvent:
        """Returns the table and the row images of an event."""
        body = event.body
        shape = self._tables[body[:6]]
        (flags,) = struct.unpack_from("<H", body, 6)
        place = 8
        # Newer events have extra data, whose length includes its own two bytes.
        if event.kind in WITH_EXTRA_DATA:
            (extra,) = struct.unpack_from("<H", body, place)
            place += extra
        count, place = packed_number(body, place)
        size = (count + 7) // 8
        every = (1 << count) - 1
        is_whole = True
        # A bit for each column that is in the images; an update has one such mask for the row
        # before and one for the row after.
        for _ in range(2 if event.kind in UPDATE_ROWS else 1):
            # MySQL also sets the unused bits behind the last column.
            is_whole &= int.from_bytes(body[place : place + size], "little") & every == every
            place += size
        return RowsEvent(shape, flags, is_whole, body[place:])


def statement_of(event: BinlogEvent) -> tuple[str, str]:
    """Returns the schema and the text of a statement event."""
    _, _, schema_size, _, status_size = _QUERY.unpack_from(event.body)
    place = _QUERY.size + status_size + (LOAD_FILE_BYTES if event.kind == LOAD_QUERY else 0)
    schema = event.body[place : place + schema_size].decode(errors="replace")
    return schema, event.body[place + schema_size + 1 :].decode(errors="replace")
