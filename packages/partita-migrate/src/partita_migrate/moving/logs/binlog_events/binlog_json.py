"""Turns a binary JSON document of MySQL's binlog into the text that a SELECT of it returns.

MySQL stores a tree: a type, and for objects and arrays the offsets of their members. Dates,
decimals and binaries that were cast to JSON keep their own types. Formats: MySQL's source,
`sql-common/json_binary.h`.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable

from partita_migrate.moving.logs.binlog_events.binlog_bytes import EventBytes, decimal_reader

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL = range(5)
INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING = range(5, 13)
OPAQUE = 15
OBJECTS, LARGE = (SMALL_OBJECT, LARGE_OBJECT), (LARGE_OBJECT, LARGE_ARRAY)
LITERALS = ("null", "true", "false")
INTEGERS = {INT16: "<h", UINT16: "<H", INT32: "<i", UINT32: "<I", INT64: "<q", UINT64: "<Q"}
INLINE = {False: (LITERAL, INT16, UINT16), True: (LITERAL, INT16, UINT16, INT32, UINT32)}
"""Types whose value stands in place of an offset, by whether the object or array is large."""
TIMESTAMP, DATE, TIME, DATETIME, NEWDECIMAL = 7, 10, 11, 12, 246
FIXED_DIGITS_MAX = 15
"""MySQL writes numbers with more digits than this with an exponent."""
BASE64_LINE = 76
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f"}
_ESCAPES |= {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def json_text(content: bytes) -> str:
    return _value(content[0], content[1:]) if content else LITERALS[0]


def _value(kind: int, content: bytes) -> str:
    if kind <= LARGE_ARRAY:
        return _container(kind, content)
    if kind == LITERAL:
        return LITERALS[content[0]]
    if kind in INTEGERS:
        return str(struct.unpack_from(INTEGERS[kind], content)[0])
    if kind == DOUBLE:
        return _double(struct.unpack_from("<d", content)[0])
    if kind == STRING:
        return _quoted(_sized(content).decode())
    assert kind == OPAQUE, kind
    return _opaque(content[0], _sized(content[1:]))


def _container(kind: int, content: bytes) -> str:
    is_object, is_large = kind in OBJECTS, kind in LARGE
    width = 4 if is_large else 2
    data = EventBytes(content)
    count = data.little(width)
    data.take(width)
    keys = []
    for _ in range(count if is_object else 0):
        place, size = data.little(width), data.little(2)
        keys.append(content[place : place + size].decode())
    values = []
    for _ in range(count):
        inner, value_or_offset = data.little(1), data.take(width)
        is_inline = inner in INLINE[is_large]
        values.append(
            _value(
                inner,
                value_or_offset
                if is_inline
                else content[int.from_bytes(value_or_offset, "little") :],
            )
        )
    if not is_object:
        return f"[{', '.join(values)}]"
    members = (f"{_quoted(key)}: {value}" for key, value in zip(keys, values, strict=True))
    return f"{{{', '.join(members)}}}"


def _sized(content: bytes) -> bytes:
    """Returns the bytes after a variable-length size: seven bits a byte, the eighth says that more
    follow."""
    size = place = 0
    while True:
        size |= (content[place] & 0x7F) << 7 * place
        place += 1
        if not content[place - 1] & 0x80:
            return content[place : place + size]


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"


def _double(number: float) -> str:
    """Returns the shortest digits that stand for the number, as MySQL prints it."""
    mantissa, _, exponent = f"{number!r}e0".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    power = int(exponent.partition("e")[0])
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + power - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0.0"
    if not -FIXED_DIGITS_MAX < point <= max(FIXED_DIGITS_MAX, len(digits) - 1):
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def _opaque(kind: int, content: bytes) -> str:
    read = _READERS.get(kind)
    if read is not None:
        return read(content)
    encoded = base64.b64encode(content).decode()
    lines = [encoded[at : at + BASE64_LINE] for at in range(0, len(encoded), BASE64_LINE)]
    return _quoted(f"base64:type{kind}:" + "\n".join(lines))


def _decimal(content: bytes) -> str:
    return f"{decimal_reader(content[0], content[1])(EventBytes(content[2:])):f}"


def _date(content: bytes) -> str:
    return f'"{_day(_packed(content))}"'


def _datetime(content: bytes) -> str:
    packed = _packed(content)
    return f'"{_day(packed)} {_clock(packed & 0x1FFFFFFFFFF)}"'


def _time(content: bytes) -> str:
    packed = _packed(content)
    return f'"{"-" if packed < 0 else ""}{_clock(abs(packed))}"'


def _packed(content: bytes) -> int:
    return int.from_bytes(content, "little", signed=True)


def _day(packed: int) -> str:
    months, day = packed >> 46, packed >> 41 & 31
    return f"{months // 13:04}-{months % 13:02}-{day:02}"


def _clock(packed: int) -> str:
    hours, minutes, seconds = packed >> 36, packed >> 30 & 63, packed >> 24 & 63
    return f"{hours:02}:{minutes:02}:{seconds:02}.{packed & 0xFFFFFF:06}"


_READERS: dict[int, Callable[[bytes], str]] = {
    NEWDECIMAL: _decimal,
    DATE: _date,
    TIME: _time,
    DATETIME: _datetime,
    TIMESTAMP: _datetime,
}
