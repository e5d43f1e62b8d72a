"""The values of a row in MariaDB's binlog, as a SELECT of the same row gives them.

`mysql-replication` reads the stream and the shape of each table. The values are read here, for it
loses some: dates with zeros in them, empty sets, the padding of BINARY, fractions of a negative
TIME. Formats: MySQL's internals manual, "Rows event".
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from pymysql.charset import charset_by_name
from pymysqlreplication.constants import FIELD_TYPE

from partita.database.item.values import Item
from partita.errors import PartitaError
from partita.migrate.understanding.schema.inventory import Column
from partita.migrate.understanding.sources.reading import Convert

_DIGITS = 9
_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""That so many digits of a DECIMAL take."""
_EPOCH = datetime(1970, 1, 1)


class Bytes:
    """What is left of an event."""

    __slots__ = ("content", "place")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def take(self, size: int) -> bytes:
        self.place += size
        return self.content[self.place - size : self.place]

    def little(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def big(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    @property
    def is_empty(self) -> bool:
        return self.place >= len(self.content)


Read = Callable[[Bytes], Any]


RowReader = Callable[[Bytes], Item]
"""The next row image, as attribute values without NULLs."""


def row_reader(columns: Sequence[tuple[str, Read, Convert | None]]) -> RowReader:
    """Of images in which every column is present; columns without a `Convert` are left out."""
    nulls_size = (len(columns) + 7) // 8
    numbered = [(1 << place, *column) for place, column in enumerate(columns)]

    def read_row(data: Bytes) -> Item:
        nulls = data.little(nulls_size)
        found: Item = {}
        for mark, name, read, convert in numbered:
            if nulls & mark:
                continue
            value = read(data)
            if convert is not None and (converted := convert(value)) is not None:
                found[name] = converted
        return found

    return read_row


def reader_of(shape: Any, column: Column | None) -> Read:
    """How a column is read; `shape` is what the event says of it, `column` what the schema does."""
    kind = shape.type
    declared = column.type.lower() if column is not None else ""
    plain = _INTEGERS.get(kind)
    if plain is not None:
        size, is_signed = plain, not shape.unsigned
        return lambda data: int.from_bytes(data.take(size), "little", signed=is_signed)
    if declared in _BY_DECLARATION:
        width, convert = _BY_DECLARATION[declared]
        return lambda data: convert(data.take(data.little(1)).ljust(width, b"\0"))
    make = _MAKERS.get(kind)
    if make is None:
        name = column.name if column is not None else "?"
        raise PartitaError(
            f"The binlog holds column {name} in a form that is not known here (type {kind});"
            " exclude its table, or load once with --no-follow."
        )
    return make(shape)


_INTEGERS = {
    FIELD_TYPE.TINY: 1,
    FIELD_TYPE.SHORT: 2,
    FIELD_TYPE.INT24: 3,
    FIELD_TYPE.LONG: 4,
    FIELD_TYPE.LONGLONG: 8,
}
# Kinds of MariaDB's own, which the binlog keeps as bytes without the zeros at their end.
_BY_DECLARATION: dict[str, tuple[int, Callable[[bytes], str]]] = {
    "uuid": (16, lambda content: str(UUID(bytes=content))),
    "inet6": (16, lambda content: socket.inet_ntop(socket.AF_INET6, content)),
    "inet4": (4, socket.inet_ntoa),
}


def _float(shape: Any) -> Read:
    return lambda data: struct.unpack("<f", data.take(4))[0]


def _double(shape: Any) -> Read:
    return lambda data: struct.unpack("<d", data.take(8))[0]


def _string(shape: Any) -> Read:
    size = 2 if shape.max_length > 255 else 1
    if shape.type == FIELD_TYPE.STRING and _is_binary(shape):
        width = shape.max_length
        return lambda data: data.take(data.little(size)).ljust(width, b"\0")
    return _sized(shape, size)


def _blob(shape: Any) -> Read:
    return _sized(shape, shape.length_size)


def _sized(shape: Any, size: int) -> Read:
    if _is_binary(shape):
        return lambda data: data.take(data.little(size))
    encoding = _encoding(shape.character_set_name)
    return lambda data: data.take(data.little(size)).decode(encoding)


def _encoding(character_set: str) -> str:
    """As Python calls it. What the driver calls utf8, newer servers call utf8mb3."""
    known = charset_by_name(character_set.replace("utf8mb3", "utf8"))
    return str(known.encoding) if known is not None else character_set


def _is_binary(shape: Any) -> bool:
    return shape.character_set_name in (None, "binary")


def _decimal(shape: Any) -> Read:
    """Nine digits in four bytes, the rest in as few as hold them; negatives are inverted."""
    whole, whole_rest = divmod(shape.precision - shape.decimals, _DIGITS)
    fraction, fraction_rest = divmod(shape.decimals, _DIGITS)
    widths = [_BYTES[whole_rest], *[4] * (whole + fraction), _BYTES[fraction_rest]]
    digits = [whole_rest, *[_DIGITS] * (whole + fraction), fraction_rest]
    size, scale = sum(widths), shape.decimals

    def read(data: Bytes) -> Decimal:
        content = bytearray(data.take(size))
        is_negative = not content[0] & 0x80
        content[0] ^= 0x80
        if is_negative:
            content = bytearray(byte ^ 0xFF for byte in content)
        place, text = 0, ""
        for width, count in zip(widths, digits, strict=True):
            if width:
                text += f"{int.from_bytes(content[place : place + width], 'big'):0{count}}"
            place += width
        # By its text: arithmetic would round to 28 digits.
        number = Decimal(f"{text}E-{scale}")
        return number.copy_negate() if is_negative and number else number

    return read


def _bit(shape: Any) -> Read:
    return lambda data: data.take(shape.bytes)


def _year(shape: Any) -> Read:
    return lambda data: year + 1900 if (year := data.little(1)) else 0


def _enum(shape: Any) -> Read:
    return lambda data: shape.enum_values[data.little(shape.size)]


def _set(shape: Any) -> Read:
    def read(data: Bytes) -> str:
        bits = data.little(shape.size)
        return ",".join(label for place, label in enumerate(shape.set_values) if bits >> place & 1)

    return read


def _date(shape: Any) -> Read:
    def read(data: Bytes) -> date | str:
        packed = data.little(3)
        year, month, day = packed >> 9, packed >> 5 & 15, packed & 31
        try:
            return date(year, month, day)
        except ValueError:
            return f"{year:04}-{month:02}-{day:02}"

    return read


def _fraction(digits: int) -> Callable[[Bytes], int]:
    size = (digits + 1) // 2
    factor = 10 ** (6 - 2 * size)
    return lambda data: data.big(size) * factor if size else 0


def _time(shape: Any) -> Read:
    """Sign, hours, minutes, seconds and fraction are one number; negatives are its complement."""
    size = (shape.fsp + 1) // 2
    factor = 10 ** (6 - 2 * size)

    def read(data: Bytes) -> timedelta:
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


def _datetime(shape: Any) -> Read:
    fraction, digits = _fraction(shape.fsp), shape.fsp

    def read(data: Bytes) -> datetime | str:
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


def _timestamp(shape: Any) -> Read:
    fraction, digits = _fraction(shape.fsp), shape.fsp

    def read(data: Bytes) -> datetime | str:
        seconds, micros = data.big(4), fraction(data)
        if not seconds and not micros:
            return "0000-00-00 00:00:00" + (f".{'0' * digits}" if digits else "")
        return _EPOCH + timedelta(seconds=seconds, microseconds=micros)

    return read


_MAKERS: dict[int, Callable[[Any], Read]] = {
    FIELD_TYPE.FLOAT: _float,
    FIELD_TYPE.DOUBLE: _double,
    FIELD_TYPE.VARCHAR: _string,
    FIELD_TYPE.STRING: _string,
    FIELD_TYPE.NEWDECIMAL: _decimal,
    FIELD_TYPE.BLOB: _blob,
    FIELD_TYPE.GEOMETRY: lambda shape: lambda data: data.take(data.little(shape.length_size)),
    FIELD_TYPE.DATE: _date,
    FIELD_TYPE.TIME2: _time,
    FIELD_TYPE.DATETIME2: _datetime,
    FIELD_TYPE.TIMESTAMP2: _timestamp,
    FIELD_TYPE.YEAR: _year,
    FIELD_TYPE.ENUM: _enum,
    FIELD_TYPE.SET: _set,
    FIELD_TYPE.BIT: _bit,
}
