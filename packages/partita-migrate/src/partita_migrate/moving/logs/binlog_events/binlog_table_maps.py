"""Decodes table map events, which describe a table's columns, as MariaDB and as MySQL write them.

With binlog_row_metadata=FULL they have names, signs, character sets and labels of the columns;
metadata that is unknown here is skipped. Formats: MySQL's source, `Table_map_event`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pymysql
from pymysql.charset import charset_by_name

from partita.errors import PartitaError
from partita_migrate.moving.logs.binlog_events.binlog_bytes import EventBytes

TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24 = 1, 2, 3, 4, 5, 8, 9
DATE, YEAR, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 10, 13, 15, 16, 17, 18, 19
VECTOR, JSON, NEWDECIMAL, ENUM, SET, BLOB, STRING, GEOMETRY = 242, 245, 246, 247, 248, 252, 254, 255
VAR_STRING, BLOB_COMPRESSED, VARCHAR_COMPRESSED = 253, 140, 141

NUMBERS = (TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR)
TEXTS = (STRING, VAR_STRING, VARCHAR, BLOB)
LABELLED = (ENUM, SET)
SIZED = (BLOB, BLOB_COMPRESSED, GEOMETRY, JSON, VECTOR)
ONE_BYTE = (FLOAT, DOUBLE, TIME2, DATETIME2, TIMESTAMP2, *SIZED)
TWO_BYTES = (VARCHAR, VARCHAR_COMPRESSED, VAR_STRING, STRING, ENUM, SET, BIT, NEWDECIMAL)
"""Types with two bytes of metadata each."""

SIGNS, DEFAULT_TEXTS, ALL_TEXTS, NAMES, SET_LABELS, ENUM_LABELS = 1, 2, 3, 4, 5, 6
DEFAULT_LABELS, ALL_LABELS = 10, 11
"""Kinds of the optional metadata of binlog_row_metadata=FULL."""
BINARY = 63
"""The collation of binary strings."""
COLLATIONS = "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS"
MORE_COLLATIONS = """
SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY
"""
"""Since 10.10, MariaDB shows here the numbers of collations that several character sets share."""

CharacterSets = Mapping[int, str]
"""The name of a character set by the number of a collation."""


def character_sets_of(cursor: Any) -> dict[int, str]:
    """Returns the server's own numbering; drivers only know collations of their time."""
    character_sets: dict[int, str] = {}
    for statement in (COLLATIONS, MORE_COLLATIONS):
        try:
            cursor.execute(statement)
        except pymysql.Error:
            # MySQL and older MariaDBs have no numbers in the second.
            continue
        character_sets |= {
            int(number): name for number, name in cursor.fetchall() if number is not None
        }
    return character_sets


def encoding_of(character_set: str) -> str:
    """Returns Python's name of a character set. Newer servers say utf8mb3 where the driver says
    utf8."""
    charset = charset_by_name(character_set.replace("utf8mb3", "utf8"))
    return str(charset.encoding) if charset is not None else character_set


class TableMapColumn(NamedTuple):
    """One column of a table map."""

    kind: int
    first: int = 0
    second: int = 0
    """Two numbers whose meaning depends on the type: a length, digits, a fraction."""
    name: str = ""
    is_unsigned: bool = False
    character_set: str = "binary"
    labels: Sequence[str] = ()

    @property
    def length(self) -> int:
        """The most bytes that a text or label may have."""
        return self.first | self.second << 8


class TableMap(NamedTuple):
    """The table that a table map describes."""

    schema: str
    table: str
    columns: list[TableMapColumn]


def shape_of(body: bytes, character_sets: CharacterSets, *, is_mariadb: bool) -> TableMap:
    """Decodes the body of a table map event."""
    data = EventBytes(body)
    # The table's number and flags.
    data.take(8)
    schema = data.take(data.little(1)).decode()
    data.take(1)
    table = data.take(data.little(1)).decode()
    data.take(1)
    kinds = data.take(data.packed())
    columns = list(_columns(kinds, EventBytes(data.take(data.packed()))))
    # A bit for each column that may be NULL.
    data.take((len(kinds) + 7) // 8)
    # The rest are optional parts: a type, a length, a value.
    added: dict[int, bytes] = {}
    while not data.is_empty:
        part = data.little(1)
        added[part] = data.take(data.packed())
    # MariaDB lists a collation for geometries too.
    texts = (*TEXTS, GEOMETRY) if is_mariadb else TEXTS
    signs = iter(_signs(added.get(SIGNS, b"")))
    collations = iter(_collations(columns, texts, added, DEFAULT_TEXTS, ALL_TEXTS))
    label_collations = iter(_collations(columns, LABELLED, added, DEFAULT_LABELS, ALL_LABELS))
    names = EventBytes(added.get(NAMES, b""))
    labels = {
        ENUM: EventBytes(added.get(ENUM_LABELS, b"")),
        SET: EventBytes(added.get(SET_LABELS, b"")),
    }
    mapped = []
    for column in columns:
        if not names.is_empty:
            column = column._replace(name=names.take(names.packed()).decode())
        if column.kind in NUMBERS:
            column = column._replace(is_unsigned=next(signs, False))
        if column.kind in texts:
            name = _character_set(character_sets, next(collations, BINARY))
            column = column._replace(character_set=name)
        if column.kind in LABELLED:
            name = _character_set(character_sets, next(label_collations, BINARY))
            column = column._replace(labels=_labels(labels[column.kind], encoding_of(name)))
        mapped.append(column)
    return TableMap(schema, table, mapped)


def _columns(kinds: bytes, details: EventBytes) -> Iterator[TableMapColumn]:
    for kind in kinds:
        if kind in ONE_BYTE:
            yield TableMapColumn(kind, *details.take(1))
        elif kind == STRING:
            # The type byte of a long CHAR also contains two bits of its length.
            real, size = details.take(2)
            yield TableMapColumn(real | 0x30, size, (real & 0x30 ^ 0x30) >> 4)
        elif kind in TWO_BYTES:
            yield TableMapColumn(kind, *details.take(2))
        else:
            yield TableMapColumn(kind)


def _signs(bits: bytes) -> Iterator[bool]:
    for byte in bits:
        for place in range(8):
            yield bool(byte & 0x80 >> place)


def _collations(
    columns: Sequence[TableMapColumn], kinds: Sequence[int], added: Mapping[int, bytes], *parts: int
) -> Iterator[int]:
    """Yields the collation of each column: all of them, or a default with exceptions."""
    default, every = parts
    if every in added:
        data = EventBytes(added[every])
        while not data.is_empty:
            yield data.packed()
        return
    data = EventBytes(added.get(default, b""))
    usual = BINARY if data.is_empty else data.packed()
    others = {}
    while not data.is_empty:
        place = data.packed()
        others[place] = data.packed()
    for place in range(sum(column.kind in kinds for column in columns)):
        yield others.get(place, usual)


def _labels(data: EventBytes, encoding: str) -> list[str]:
    if data.is_empty:
        return []
    return [data.take(data.packed()).decode(encoding) for _ in range(data.packed())]


def _character_set(character_sets: CharacterSets, collation: int) -> str:
    if collation not in character_sets:
        raise PartitaError(
            f"The binlog has texts in collation {collation}, which the server does not list;"
            " load once with --no-follow."
        )
    return character_sets[collation]
