"""Decodes the messages of pgoutput into transactions (PostgreSQL's manual, chapter 55.9)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from partita.database.item.attribute_values import Item
from partita_migrate.moving.logs.move_source import MoveSource, changed, check_columns
from partita_migrate.moving.logs.source_changes import RowChange, SourceTransaction
from partita_migrate.understanding.schema.inventory import SourceTable

EPOCH_SECONDS = 946_684_800
"""2000-01-01, the epoch of PostgreSQL's timestamps."""
_UNSENT = object()


class PgoutputDecoder:
    """Collects messages of one replication stream into transactions."""

    def __init__(self, origin: MoveSource, connection: psycopg.Connection[Any]) -> None:
        self.origin = origin
        self.connection = connection
        self.default_schema = connection.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]
        self.bases = {
            int(oid): int(base)
            for oid, base in connection.execute(
                "SELECT oid, typbasetype FROM pg_type WHERE typtype = 'd'"
            )
        }
        self._adapt = Transformer(connection)
        self._relations: dict[int, tuple[SourceTable, list[str], list[Callable[[bytes], Any]]]] = {}
        self._changes: list[RowChange] = []
        self._position = 0
        self._committed_at = 0.0

    def message(self, content: bytes) -> SourceTransaction | None:
        """Decodes one message; returns the transaction that it completes, if any."""
        # B begin, C commit, R relation, I insert, U update, D delete, T truncate.
        kind = content[:1]
        if kind == b"B":
            self._position, at = struct.unpack_from(">Qq", content, 1)
            self._committed_at = at / 1e6 + EPOCH_SECONDS
            self._changes = []
        elif kind == b"C":
            return SourceTransaction(self._position, "", self._committed_at, self._changes)
        elif kind == b"R":
            self._relation(content)
        elif kind in (b"I", b"U", b"D"):
            self._row(kind, content)
        elif kind == b"T":
            count, _ = struct.unpack_from(">IB", content, 1)
            for number in struct.unpack_from(f">{count}I", content, 6):
                if number in self._relations:
                    self._changes.append(RowChange(self._relations[number][0].name, None, None))
        return None

    def _relation(self, content: bytes) -> None:
        (number,) = struct.unpack_from(">I", content, 1)
        schema, _, rest = content[5:].partition(b"\0")
        name, _, rest = rest.partition(b"\0")
        table = self._table(schema.decode(), name.decode())
        if table is None:
            return
        # A byte with the replica identity, the number of columns, and for each column: flags, name,
        # type and type modifier.
        (count,) = struct.unpack_from(">H", rest, 1)
        rest = rest[3:]
        names, loads = [], []
        for _ in range(count):
            column, _, after = rest[1:].partition(b"\0")
            (oid,) = struct.unpack_from(">I", after, 0)
            rest = after[8:]
            names.append(column.decode())
            loads.append(self._loader(table, names[-1], oid))
        # Generated columns are not published.
        derived = {column.name for column in table.columns if column.is_generated}
        check_columns(table, {*names, *derived})
        self._relations[number] = (table, names, loads)

    def _table(self, schema: str, name: str) -> SourceTable | None:
        for table in self.origin.tables:
            short = table.name.removeprefix(f"{table.schema}.") if table.schema else table.name
            if short == name and (table.schema or self.default_schema) == schema:
                return table
        return None

    def _loader(self, table: SourceTable, name: str, oid: int) -> Callable[[bytes], Any]:
        """Returns what turns a column's text into the value that a SELECT would have returned."""
        reading = next(
            (
                reading_of_column
                for reading_of_column in self.origin.readings[table.name]
                if reading_of_column.column.name == name
            ),
            None,
        )
        if reading is None:
            return lambda content: None
        # pgoutput names the domain of a column; values are read as its base type.
        while oid in self.bases:
            oid = self.bases[oid]
        # How a SELECT shows these values depends on the server, so the server converts them.
        if reading.column.kind == "array" or reading.column.type.lower() == "money":
            form = self.origin.form_of(table, reading.column)
            query = f"SELECT {form} FROM (SELECT CAST(%s AS {reading.column.type}) AS v) AS one"
            return lambda content: self.connection.execute(query, (content.decode(),)).fetchone()[0]  # type: ignore[index]
        if "CAST(" in reading.sql:
            return lambda content: content.decode()
        load = self._adapt.get_loader(oid, pq.Format.TEXT).load
        return lambda content: load(content)

    def _row(self, kind: bytes, content: bytes) -> None:
        (number,) = struct.unpack_from(">I", content, 1)
        if number not in self._relations:
            return
        table, names, loads = self._relations[number]
        place, old, new = 5, None, None
        unsent: frozenset[str] = frozenset()
        # N is the new row; K (its old key) or O (the whole old row) may come before it.
        while place < len(content):
            mark = content[place : place + 1]
            values, place = _tuple(content, place + 1)
            if mark == b"N":
                unsent = frozenset(
                    name for name, value in zip(names, values, strict=True) if value is _UNSENT
                )
                new = self._item(table, names, loads, values)
            else:
                old = self._item(table, names, loads, values)
        if kind == b"D" and old is None:
            raise changed(
                table.name, "it has no replica identity, so deletes do not name their row"
            )
        self._changes.append(RowChange(table.name, old, new, unsent))

    def _item(
        self,
        table: SourceTable,
        names: list[str],
        loads: list[Callable[[bytes], Any]],
        values: list[Any],
    ) -> Item:
        row_values = {
            name: load(value)
            for name, load, value in zip(names, loads, values, strict=True)
            if value is not None and value is not _UNSENT
        }
        return self.origin.row(table.name, row_values)


def _tuple(content: bytes, place: int) -> tuple[list[Any], int]:
    (count,) = struct.unpack_from(">H", content, place)
    place += 2
    values: list[Any] = []
    for _ in range(count):
        kind = content[place : place + 1]
        place += 1
        # t is a text, u an unchanged TOAST value that is not sent, n is NULL.
        if kind == b"t":
            (size,) = struct.unpack_from(">I", content, place)
            values.append(content[place + 4 : place + 4 + size])
            place += 4 + size
        else:
            values.append(_UNSENT if kind == b"u" else None)
    return values, place
