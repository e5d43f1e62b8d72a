"""Decodes the values of row images in the binlog to what a SELECT of the same row returns.

That includes dates with zeros in them, empty sets, the padding of BINARY, and fractions of a
negative TIME. Formats: MySQL's internals manual, "Rows event".
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.moving.logs.binlog_events import binlog_table_maps as kinds
from partita_migrate.moving.logs.binlog_events.binlog_bytes import EventBytes, decimal_reader
from partita_migrate.moving.logs.binlog_events.binlog_json import json_text
from partita_migrate.moving.logs.binlog_events.binlog_table_maps import TableMapColumn, encoding_of
from partita_migrate.understanding.schema.inventory import SourceColumn
from partita_migrate.understanding.sources.column_reading import Convert

_EPOCH = datetime(1970, 1, 1)


Read = Callable[[EventBytes], Any]


RowReader = Callable[[EventBytes], Item]
"""Reads the next row image as attribute values, without NULLs."""


def row_reader(columns: Sequence[tuple[str, Read, Convert | None]]) -> RowReader:
    """Returns a reader of images that have every column; columns without a converter are
    skipped."""
    nulls_size = (len(columns) + 7) // 8
    numbered = [(1 << place, *column) for place, column in enumerate(columns)]

    def read_row(data: EventBytes) -> Item:
        nulls = data.little(nulls_size)
        row: Item = {}
        for mark, name, read, convert in numbered:
            if nulls & mark:
                continue
            value = read(data)
            if convert is not None and (converted := convert(value)) is not None:
                row[name] = converted
        return row

    return read_row


def reader_of(shape: TableMapColumn, column: SourceColumn | None) -> Read:
    """Returns the reader of a column, from the table map's description and the schema's
    declaration."""
    kind = shape.kind
    declared = column.type.lower() if column is not None else ""
    plain = _INTEGERS.get(kind)
    if plain is not None:
        size, is_signed = plain, not shape.is_unsigned
        return lambda data: int.from_bytes(data.take(size), "little", signed=is_signed)
    if declared in _BY_DECLARATION:
        width, convert = _BY_DECLARATION[declared]
        return lambda data: convert(data.take(data.little(1)).ljust(width, b"\0"))
    make = _MAKERS.get(kind)
    if make is None:
        name = column.name if column is not None else "?"
        raise PartitaError(
            f"The binlog has column {name} in a format that is not supported (type {kind});"
            " exclude its table, or load once with --no-follow."
        )
    return make(shape)


_INTEGERS = {
    kinds.TINY: 1,
    kinds.SHORT: 2,
    kinds.INT24: 3,
    kinds.LONG: 4,
    kinds.LONGLONG: 8,
}
# Types of MariaDB only; the binlog has their bytes without the zeros at the end.
_BY_DECLARATION: dict[str, tuple[int, Callable[[bytes], str]]] = {
    "uuid": (16, lambda content: str(UUID(bytes=content))),
    "inet6": (16, lambda content: socket.inet_ntop(socket.AF_INET6, content)),
    "inet4": (4, socket.inet_ntoa),
}


def _float(shape: TableMapColumn) -> Read:
    return lambda data: struct.unpack("<f", data.take(4))[0]


def _double(shape: TableMapColumn) -> Read:
    return lambda data: struct.unpack("<d", data.take(8))[0]


def _string(shape: TableMapColumn) -> Read:
    size = 2 if shape.length > 255 else 1
    if shape.kind == kinds.STRING and _is_binary(shape):
        width = shape.length
        return lambda data: data.take(data.little(size)).ljust(width, b"\0")
    return _sized(shape, size)


def _blob(shape: TableMapColumn) -> Read:
    return _sized(shape, shape.first)


def _sized(shape: TableMapColumn, size: int) -> Read:
    if _is_binary(shape):
        return lambda data: data.take(data.little(size))
    encoding = encoding_of(shape.character_set)
    return lambda data: data.take(data.little(size)).decode(encoding)


def _is_binary(shape: TableMapColumn) -> bool:
    return shape.character_set == "binary"


def _bytes(shape: TableMapColumn) -> Read:
    return lambda data: data.take(data.little(shape.first))


def _json(shape: TableMapColumn) -> Read:
    return lambda data: json_text(data.take(data.little(shape.first)))


def _decimal(shape: TableMapColumn) -> Read:
    return decimal_reader(shape.first, shape.second)


def _bit(shape: TableMapColumn) -> Read:
    size = shape.second + (shape.first > 0)
    return lambda data: data.take(size)


def _year(shape: TableMapColumn) -> Read:
    return lambda data: year + 1900 if (year := data.little(1)) else 0


def _enum(shape: TableMapColumn) -> Read:
    # Without strict mode, the server stores an unknown label as number 0, which reads as "".
    labels, size = ["", *shape.labels], shape.first
    return lambda data: labels[data.little(size)]


def _set(shape: TableMapColumn) -> Read:
    def read(data: EventBytes) -> str:
        bits = data.little(shape.first)
        return ",".join(label for place, label in enumerate(shape.labels) if bits >> place & 1)

    return read


def _date(shape: TableMapColumn) -> Read:
    def read(data: EventBytes) -> date | str:
        # 24 bits: year (15), month (4), day (5).
        packed = data.little(3)
        year, month, day = packed >> 9, packed >> 5 & 15, packed & 31
        try:
            return date(year, month, day)
        except ValueError:
            return f"{year:04}-{month:02}-{day:02}"

    return read


def _fraction(digits: int) -> Callable[[EventBytes], int]:
    size = (digits + 1) // 2
    factor = 10 ** (6 - 2 * size)
    return lambda data: data.big(size) * factor if size else 0


def _time(shape: TableMapColumn) -> Read:
    """Sign, hours, minutes, seconds and fraction form one number; negatives are its complement."""
    size = (shape.first + 1) // 2
    factor = 10 ** (6 - 2 * size)

    def read(data: EventBytes) -> timedelta:
        packed = data.big(3 + size) - (0x800000 << 8 * size)
        sign, packed = (-1, -packed) if packed < 0 else (1, packed)
        clock, fraction = packed >> 8 * size, packed & ((1 << 8 * size) - 1)
        return sign * timedelta(
            hours=clock >> 12 & 0x3FF,
            minutes=clock >> 6 & 0x3F,
            seconds=clock & 0x3F,
            microseconds=fraction * factor,
        )

    return read


def _datetime(shape: TableMapColumn) -> Read:
    fraction, digits = _fraction(shape.first), shape.first

    def read(data: EventBytes) -> datetime | str:
        # 40 bits: sign, year * 13 + month (17), day (5), hour (5), minute (6), second (6).
        packed = data.big(5) - 0x8000000000
        micros = fraction(data)
        months, day, clock = packed >> 22, packed >> 17 & 31, packed & 0x1FFFF
        year, month = divmod(months, 13)
        hour, minute, second = clock >> 12, clock >> 6 & 63, clock & 63
        try:
            return datetime(year, month, day, hour, minute, second, micros)
        except ValueError:
            text = f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
            return f"{text}.{micros:06}"[: 20 + digits] if digits else text

    return read


def _timestamp(shape: TableMapColumn) -> Read:
    fraction, digits = _fraction(shape.first), shape.first

    def read(data: EventBytes) -> datetime | str:
        seconds, micros = data.big(4), fraction(data)
        if not seconds and not micros:
            return "0000-00-00 00:00:00" + (f".{'0' * digits}" if digits else "")
        return _EPOCH + timedelta(seconds=seconds, microseconds=micros)

    return read


_MAKERS: dict[int, Callable[[Any], Read]] = {
    kinds.FLOAT: _float,
    kinds.DOUBLE: _double,
    kinds.VARCHAR: _string,
    kinds.STRING: _string,
    kinds.NEWDECIMAL: _decimal,
    kinds.BLOB: _blob,
    kinds.GEOMETRY: _bytes,
    kinds.VECTOR: _bytes,
    kinds.JSON: _json,
    kinds.DATE: _date,
    kinds.TIME2: _time,
    kinds.DATETIME2: _datetime,
    kinds.TIMESTAMP2: _timestamp,
    kinds.YEAR: _year,
    kinds.ENUM: _enum,
    kinds.SET: _set,
    kinds.BIT: _bit,
}
