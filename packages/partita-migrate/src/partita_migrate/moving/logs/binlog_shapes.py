"""The shape of a table as the binlog describes it, in MariaDB's words and in MySQL's.

It is repeated before every statement that changes the table. What a server adds to it by
binlog_row_metadata=FULL has the names of columns, signs, character sets and labels; what is not
known here is skipped. Formats: MySQL's source, `Table_map_event`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pymysql
from pymysql.charset import charset_by_name

from partita.errors import PartitaError
from partita_migrate.moving.logs.binlog_bytes import Bytes

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
"""What each kind has besides its number."""

SIGNS, DEFAULT_TEXTS, ALL_TEXTS, NAMES, SET_LABELS, ENUM_LABELS = 1, 2, 3, 4, 5, 6
DEFAULT_LABELS, ALL_LABELS = 10, 11
"""Parts of what FULL adds."""
BINARY = 63
"""The collation of bytes."""
COLLATIONS = "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS"
MORE_COLLATIONS = """
SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY
"""
"""Where MariaDB numbers those that several character sets have, since 10.10."""

CharacterSets = Mapping[int, str]
"""By the number of a collation."""


def character_sets_of(cursor: Any) -> dict[int, str]:
    """As the server numbers them: drivers know those of their time."""
    found: dict[int, str] = {}
    for statement in (COLLATIONS, MORE_COLLATIONS):
        try:
            cursor.execute(statement)
        except pymysql.Error:
            # MySQL and older MariaDBs have no numbers in the second.
            continue
        found |= {int(number): name for number, name in cursor.fetchall() if number is not None}
    return found


def encoding_of(character_set: str) -> str:
    """As Python calls it. What the driver calls utf8, newer servers call utf8mb3."""
    known = charset_by_name(character_set.replace("utf8mb3", "utf8"))
    return str(known.encoding) if known is not None else character_set


class ColumnShape(NamedTuple):
    kind: int
    first: int = 0
    second: int = 0
    """Two numbers, whose meaning depends on the kind: a length, digits, a fraction."""
    name: str = ""
    is_unsigned: bool = False
    character_set: str = "binary"
    labels: Sequence[str] = ()

    @property
    def length(self) -> int:
        """Bytes that a text or a label has at most."""
        return self.first | self.second << 8


class Shape(NamedTuple):
    schema: str
    table: str
    columns: list[ColumnShape]


def shape_of(body: bytes, character_sets: CharacterSets, *, is_mariadb: bool) -> Shape:
    """Of the body of a table map event."""
    data = Bytes(body)
    data.take(8)
    schema = data.take(data.little(1)).decode()
    data.take(1)
    table = data.take(data.little(1)).decode()
    data.take(1)
    kinds = data.take(data.packed())
    columns = list(_columns(kinds, Bytes(data.take(data.packed()))))
    data.take((len(kinds) + 7) // 8)
    added: dict[int, bytes] = {}
    while not data.is_empty:
        part = data.little(1)
        added[part] = data.take(data.packed())
    # MariaDB's geometries are texts in a collation of their own.
    texts = (*TEXTS, GEOMETRY) if is_mariadb else TEXTS
    signs = iter(_signs(added.get(SIGNS, b"")))
    collations = iter(_collations(columns, texts, added, DEFAULT_TEXTS, ALL_TEXTS))
    of_labels = iter(_collations(columns, LABELLED, added, DEFAULT_LABELS, ALL_LABELS))
    names = Bytes(added.get(NAMES, b""))
    labels = {ENUM: Bytes(added.get(ENUM_LABELS, b"")), SET: Bytes(added.get(SET_LABELS, b""))}
    found = []
    for column in columns:
        if not names.is_empty:
            column = column._replace(name=names.take(names.packed()).decode())
        if column.kind in NUMBERS:
            column = column._replace(is_unsigned=next(signs, False))
        if column.kind in texts:
            name = _character_set(character_sets, next(collations, BINARY))
            column = column._replace(character_set=name)
        if column.kind in LABELLED:
            name = _character_set(character_sets, next(of_labels, BINARY))
            column = column._replace(labels=_labels(labels[column.kind], encoding_of(name)))
        found.append(column)
    return Shape(schema, table, found)


def _columns(kinds: bytes, details: Bytes) -> Iterator[ColumnShape]:
    for kind in kinds:
        if kind in ONE_BYTE:
            yield ColumnShape(kind, *details.take(1))
        elif kind == STRING:
            # A long CHAR has two bits of its length in the byte that says what it is.
            real, size = details.take(2)
            yield ColumnShape(real | 0x30, size, (real & 0x30 ^ 0x30) >> 4)
        elif kind in TWO_BYTES:
            yield ColumnShape(kind, *details.take(2))
        else:
            yield ColumnShape(kind)


def _signs(bits: bytes) -> Iterator[bool]:
    for byte in bits:
        for place in range(8):
            yield bool(byte & 0x80 >> place)


def _collations(
    columns: Sequence[ColumnShape], kinds: Sequence[int], added: Mapping[int, bytes], *parts: int
) -> Iterator[int]:
    """Each column's, or what is usual and which columns have another."""
    default, every = parts
    if every in added:
        data = Bytes(added[every])
        while not data.is_empty:
            yield data.packed()
        return
    data = Bytes(added.get(default, b""))
    usual = BINARY if data.is_empty else data.packed()
    others = {}
    while not data.is_empty:
        place = data.packed()
        others[place] = data.packed()
    for place in range(sum(column.kind in kinds for column in columns)):
        yield others.get(place, usual)


def _labels(data: Bytes, encoding: str) -> list[str]:
    if data.is_empty:
        return []
    return [data.take(data.packed()).decode(encoding) for _ in range(data.packed())]


def _character_set(known: CharacterSets, collation: int) -> str:
    if collation not in known:
        raise PartitaError(
            f"The binlog holds texts in a collation that the server does not name ({collation});"
            " load once with --no-follow."
        )
    return known[collation]
