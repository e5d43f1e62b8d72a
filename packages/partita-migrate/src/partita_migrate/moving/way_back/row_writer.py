"""Writes rows into the source, each in its own savepoint, and again later while a constraint
refuses it.

Applications change items in any order, and their transactions are not known here. A row waits while
its parent is still missing, while others refer to it, or while another row has its unique value. A
row that can never be written keeps waiting, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.switching.fences.source_session import VALUE, SourceSession
from partita_migrate.moving.way_back.items_to_rows import DesiredRow, RowMapper
from partita_migrate.moving.way_back.values_to_columns import (
    UnsupportedColumnValue,
    column_value,
    is_same,
)
from partita_migrate.understanding.schema.inventory import ForeignKey, SourceTable

CARRIED_ON = ("CASCADE", "SET NULL", "SET DEFAULT")
SEQUENCES = f"""
SELECT s.oid::regclass::text, a.attname FROM pg_attribute a
JOIN pg_depend e ON e.refclassid = 'pg_class'::regclass
LEFT JOIN pg_attrdef d ON e.classid = 'pg_attrdef'::regclass AND d.oid = e.objid
JOIN pg_class s ON s.relkind = 'S' AND (
    (s.oid = e.refobjid AND (d.adrelid, d.adnum) = (a.attrelid, a.attnum))
    OR (s.oid = e.objid AND e.classid = 'pg_class'::regclass AND e.deptype IN ('a', 'i')
        AND (e.refobjid, e.refobjsubid) = (a.attrelid, a.attnum::int))
) WHERE a.attrelid = to_regclass({VALUE})
AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype)
GROUP BY 1, 2
"""
"""The sequences of a table's columns: its own, and others that a default names."""


class RowDeferred(PartitaError):
    """Raised for a row that cannot be written at present."""


class RowWriter:
    """Writes rows into the source as the target's items want them."""

    def __init__(self, origin: MoveSource, rows: RowMapper) -> None:
        self.origin = origin
        self.family = origin.family
        self.rows = rows
        self._children: dict[str, list[tuple[SourceTable, ForeignKey]]] = {}
        for table in origin.inventory.tables:
            for key in table.foreign_keys:
                self._children.setdefault(key.referenced_table, []).append((table, key))

    def write(
        self, session: SourceSession, desired_rows: Sequence[DesiredRow]
    ) -> tuple[list[DesiredRow], list[tuple[DesiredRow, str]]]:
        """Returns the rows that were written, as the source has them now, and those that wait, with
        the reason."""
        done: list[DesiredRow] = []
        waiting: list[tuple[DesiredRow, str]] = [(desired, "") for desired in desired_rows]
        while waiting:
            still_waiting: list[tuple[DesiredRow, str]] = []
            for desired, _ in waiting:
                try:
                    # PostgreSQL aborts a whole transaction at its first error.
                    with session.savepoint():
                        done.append(self._write(session, desired))
                except (RowDeferred, UnsupportedColumnValue) as error:
                    still_waiting.append((desired, str(error)))
                except session.driver.Error as error:
                    if session.is_away(error) or session.is_busy(error):
                        raise
                    still_waiting.append((desired, session.message_of(error)))
            # A row may have been in the way of others, so they are tried until a round changes
            # nothing.
            if len(still_waiting) == len(waiting):
                return done, still_waiting
            waiting = still_waiting
        return done, []

    def _write(self, session: SourceSession, desired: DesiredRow) -> DesiredRow:
        """Writes one row and checks that the source holds exactly that."""
        table = self.rows.tables[desired.table]
        where, key = self._where(session, table, desired.key)
        relation = session.relation(table)
        exists = session.run(f"SELECT 1 FROM {relation} WHERE {where}", *key)
        if desired.row is None:
            if exists:
                self._check_children(session, table, where, key)
                session.change(f"DELETE FROM {relation} WHERE {where}", *key)
            return desired
        if exists:
            self._update(session, table, desired, where, key)
        else:
            self._insert(session, table, desired.row)
        stored = self._stored_row(session, table, where, key)
        self._check_same(table, desired, stored)
        return desired._replace(row=stored)

    def advance_sequences(self, session: SourceSession) -> None:
        """Sets PostgreSQL's sequences behind the numbers that came from the target."""
        if self.family != "postgresql":
            return
        for table in self.origin.tables:
            relation = session.relation(table)
            for sequence, name in session.run(SEQUENCES, relation):
                if name not in self.rows.columns[table.name]:
                    continue
                session.run(
                    f"SELECT setval(s, m) FROM (SELECT {VALUE}::regclass AS s, (SELECT"
                    f" max({session.quote(name)}) FROM {relation})::bigint AS m) AS one"
                    " JOIN pg_sequence ON seqrelid = s"
                    " WHERE m > coalesce(pg_sequence_last_value(s), 0) AND m <= seqmax",
                    sequence,
                )

    def _where(
        self, session: SourceSession, table: SourceTable, key: Item
    ) -> tuple[str, list[object]]:
        columns = self.rows.columns[table.name]
        names = table.primary_key
        values = [column_value(self.family, columns[name], key[name]) for name in names]
        return " AND ".join(f"{session.quote(name)} = {VALUE}" for name in names), values

    def _update(
        self,
        session: SourceSession,
        table: SourceTable,
        desired: DesiredRow,
        where: str,
        key: Iterable[object],
    ) -> None:
        assert desired.row is not None
        columns = self.rows.columns[table.name]
        stored = self._stored_row(session, table, where, list(key))
        names = [
            name
            for name, column in columns.items()
            if name not in table.primary_key
            # ON UPDATE CURRENT_TIMESTAMP would change a datetime that is not set explicitly.
            and (stored.get(name) != desired.row.get(name) or column.kind == "datetime")
        ]
        if not names or all(stored.get(name) == desired.row.get(name) for name in names):
            return
        sets = ", ".join(f"{session.quote(name)} = {VALUE}" for name in names)
        values = [self._value(table, name, desired.row) for name in names]
        session.change(f"UPDATE {session.relation(table)} SET {sets} WHERE {where}", *values, *key)

    def _insert(self, session: SourceSession, table: SourceTable, row: Item) -> None:
        names = [name for name in self.rows.columns[table.name] if name in row]
        listed = ", ".join(map(session.quote, names))
        marks = ", ".join([VALUE] * len(names))
        # GENERATED ALWAYS AS IDENTITY refuses explicit values otherwise.
        over = " OVERRIDING SYSTEM VALUE" if self.family == "postgresql" else ""
        values = [self._value(table, name, row) for name in names]
        session.change(
            f"INSERT INTO {session.relation(table)} ({listed}){over} VALUES ({marks})", *values
        )
        # A column that the INSERT leaves out gets its default, but the row has NULL there.
        empty = [
            name
            for name, column in self.rows.columns[table.name].items()
            if name not in row and column.default is not None and column.is_nullable
        ]
        if empty:
            where, key = self._where(session, table, row)
            sets = ", ".join(f"{session.quote(name)} = NULL" for name in empty)
            session.change(f"UPDATE {session.relation(table)} SET {sets} WHERE {where}", *key)

    def _value(self, table: SourceTable, name: str, row: Item) -> object:
        if name not in row:
            return None
        return column_value(self.family, self.rows.columns[table.name][name], row[name])

    def _stored_row(
        self, session: SourceSession, table: SourceTable, where: str, key: Sequence[object]
    ) -> Item:
        """Reads a row as the load would read it."""
        column_readings = self.origin.readings[table.name]
        names = ", ".join(reading.sql.replace("\\:", ":") for reading in column_readings)
        rows = session.run(f"SELECT {names} FROM {session.relation(table)} WHERE {where}", *key)
        if not rows:
            raise RowDeferred(
                f"a row of {table.name} is missing after it was written; a trigger may drop it"
            )
        values = {
            reading.column.name: value
            for reading, value in zip(column_readings, rows[0], strict=True)
        }
        return self.origin.row(table.name, values)

    def _check_same(self, table: SourceTable, desired: DesiredRow, stored: Item) -> None:
        assert desired.row is not None
        for name, column in self.rows.columns[table.name].items():
            if not is_same(column, desired.row.get(name), stored.get(name)):
                raise RowDeferred(
                    f"{name} of type {column.type} holds {_shown(stored.get(name))} instead of"
                    f" {_shown(desired.row.get(name))}"
                )

    def _check_children(
        self, session: SourceSession, table: SourceTable, where: str, key: Sequence[object]
    ) -> None:
        """Raises when a foreign key would also delete rows that were not deleted at the target."""
        for child, reference in self._children.get(table.name, ()):
            if (reference.on_delete or "").upper() not in CARRIED_ON:
                continue
            pairs = zip(reference.columns, reference.referenced_columns, strict=True)
            joined = " AND ".join(
                f"c.{session.quote(own)} = p.{session.quote(theirs)}" for own, theirs in pairs
            )
            children = session.run(
                f"SELECT 1 FROM {session.relation(child)} c JOIN (SELECT * FROM"
                f" {session.relation(table)} WHERE {where}) p ON {joined} LIMIT 1",
                *key,
            )
            if children:
                raise RowDeferred(
                    f"rows of {child.name} that refer to it were not deleted at the target"
                )


def _shown(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
