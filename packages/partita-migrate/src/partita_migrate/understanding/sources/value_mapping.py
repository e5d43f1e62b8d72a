"""The mapping of the source's values to attribute values. It is written down here, and loses
nothing.

`MAPPING` is the table for people, which `docs/reference/partita-migrate.md` prints.
`attribute_value` follows it, by the kind of the column and by the type that the driver returned.
SQLite stores any type in any column; a value that does not fit its column's kind is kept as what it
is.
"""

from __future__ import annotations

import json
import math
import re
import struct
from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from partita.database.item import numbers
from partita.database.item.attribute_values import AttributeValue
from partita.foundation.service_limits import (
    NESTING_LEVELS_MAX,
    NUMBER_DIGITS_MAX,
    NUMBER_EXPONENT_MAX,
    NUMBER_EXPONENT_MIN,
)
from partita_migrate.understanding.schema.inventory import ColumnKind

UTC_OFFSET = "+00:00"
"""Used in place of Z, because a plus sorts before the point of a fraction: so texts sort as their
instants."""
_DATE_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?(\+00)?", re.ASCII)
_INTEGER_END = 10**NUMBER_DIGITS_MAX
_PLAIN_DECIMAL = re.compile(r"-?\d{1,18}\.\d{1,18}", re.ASCII)


class MappedKind(NamedTuple):
    kind: ColumnKind
    becomes: str
    detail: str


MAPPING = (
    MappedKind("string", "S", "the text, in UTF-8"),
    MappedKind("integer", "N", "all digits, also of a BIT(n); S beyond 38 significant ones"),
    MappedKind("decimal", "N", "exact, without trailing zeros; S beyond 38 digits, and for NaN"),
    MappedKind(
        "float",
        "N",
        "the shortest digits that read back as the same float; S for NaN, ±Infinity"
        " and beyond 1E-130 to 9.9E+125",
    ),
    MappedKind("boolean", "BOOL", "N for a number that is neither 0 nor 1"),
    MappedKind(
        "date", "S", "ISO 8601, 2021-11-22; what ISO cannot say (0000-00-00, infinity, BC) as is"
    ),
    MappedKind("time", "S", "10:15:30.5, with the sign and the hours beyond 24 of MySQL's TIME"),
    MappedKind("datetime", "S", "ISO 8601, 2021-11-22T10:15:30.5; an instant in UTC, with +00:00"),
    MappedKind("binary", "B", "the bytes"),
    MappedKind(
        "json",
        "M, L, S, N, BOOL",
        "by its parts; S, the text as it is, when a member's name is"
        " empty or given twice, beyond 32 levels, or beyond 38 digits",
    ),
    MappedKind("enum", "S", "the label"),
    MappedKind("set", "SS", "the labels; an empty set is an empty L, for an SS cannot be empty"),
    MappedKind("uuid", "S", "36 characters, in lower case"),
    MappedKind("array", "L", "its members in order, NULL as NULL, arrays in arrays as L"),
    MappedKind("geometry", "B", "the bytes as the source gives them; S where it gives text"),
    MappedKind("other", "S", "the text that the source writes (intervals, ranges, addresses)"),
)
"""NULL has no attribute. An empty text or binary stays empty, except in a key, where AWS does not
allow that."""


def attribute_value(kind: ColumnKind, value: Any) -> AttributeValue | None:
    """Returns the attribute value, or None for NULL, which is left out of the item."""
    if value is None:
        return None
    convert = _BY_KIND.get(kind)
    if convert is not None:
        converted = convert(value)
        if converted is not None:
            return converted
    return _by_type(value)


def converter(kind: ColumnKind) -> Callable[[Any], AttributeValue | None]:
    """Returns `attribute_value` specialized for one kind of column, which is faster."""
    by_kind = _BY_KIND.get(kind)
    if by_kind is None:
        by_type = _BY_TYPE.get

        def convert(value: Any) -> AttributeValue | None:
            convert_type = by_type(type(value))
            return convert_type(value) if convert_type is not None else attribute_value(kind, value)

        return convert

    def convert_by_kind(value: Any) -> AttributeValue | None:
        converted = by_kind(value) if value is not None else None
        return converted if converted is not None else attribute_value(kind, value)

    return convert_by_kind


def _by_type(value: Any) -> AttributeValue:
    convert = _BY_TYPE.get(type(value))
    if convert is None:
        kinds = (kind for kind in _BY_TYPE if isinstance(value, kind))
        convert = _BY_TYPE.get(next(kinds, type(None)))
    return convert(value) if convert else {"S": str(value)}


def _text(value: str) -> AttributeValue:
    return {"S": value}


def _binary(value: bytes | bytearray | memoryview) -> AttributeValue:
    return {"B": b64encode(value).decode()}


def _number(value: int | Decimal) -> AttributeValue:
    """Returns N if DynamoDB's number holds the value exactly, else S."""
    text = str(value)
    # Most prices are handled here, without arithmetic.
    if _PLAIN_DECIMAL.fullmatch(text):
        short = text.rstrip("0").rstrip(".")
        return {"N": "0" if short == "-0" else short}
    number = Decimal(value)
    if not number.is_finite():
        return {"S": _name_of(number)}
    if not number:
        return {"N": "0"}
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    in_range = NUMBER_EXPONENT_MIN <= number.adjusted() <= NUMBER_EXPONENT_MAX
    if len(digits) > NUMBER_DIGITS_MAX or not in_range:
        return {"S": str(value)}
    return {"N": numbers.canonical(number)}


def _integer(value: int) -> AttributeValue:
    if -_INTEGER_END < value < _INTEGER_END:
        return {"N": str(value)}
    return _number(value)


def _float(value: float) -> AttributeValue:
    # repr gives the fewest digits that read back as the same double.
    return _number(Decimal(repr(value)))


def _name_of(number: Decimal) -> str:
    if number.is_nan():
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def single_float(value: float) -> float:
    """Returns the double with the fewest digits that is the same single-precision float."""
    if not math.isfinite(value) or struct.unpack("f", struct.pack("f", value))[0] != value:
        return value
    packed = struct.pack("f", value)
    # Nine digits always identify a single-precision float; most need fewer.
    for digits in range(6, 9):
        shorter = float(f"{value:.{digits}g}")
        if struct.pack("f", shorter) == packed:
            return shorter
    return float(f"{value:.9g}")


def _boolean(value: Any) -> AttributeValue | None:
    # MySQL's BIT(1) arrives as one byte.
    if isinstance(value, bytes) and value in (b"\0", b"\1"):
        return {"BOOL": value == b"\1"}
    if isinstance(value, int) and value in (0, 1):
        return {"BOOL": bool(value)}
    return None


def _integer_column(value: Any) -> AttributeValue | None:
    if isinstance(value, bytes):
        return _integer(int.from_bytes(value, "big"))
    return _integer(int(value)) if isinstance(value, int) else None


def _date(value: Any) -> AttributeValue | None:
    if isinstance(value, datetime):
        return _datetime(value)
    return {"S": value.isoformat()} if isinstance(value, date) else None


def _time(value: Any) -> AttributeValue | None:
    if isinstance(value, timedelta):
        return {"S": _clock(value)}
    return {"S": _short_fraction(value.isoformat())} if isinstance(value, time) else None


def _clock(value: timedelta) -> str:
    """Writes MySQL's TIME, whose hours can exceed 24 and be negative."""
    sign = "-" if value < timedelta() else ""
    value = abs(value)
    minutes, seconds = divmod(value.days * 86_400 + value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06}" if value.microseconds else ""
    return _short_fraction(f"{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}")


def _datetime(value: Any) -> AttributeValue | None:
    return _moment(value) if isinstance(value, datetime) else None


def _moment(value: datetime) -> AttributeValue:
    """Writes a time in UTC with its offset, or without one if it has no time zone."""
    offset = value.utcoffset()
    local = value.replace(tzinfo=None)
    if offset is None:
        return {"S": _short_fraction(local.isoformat())}
    return {"S": _short_fraction((local - offset).isoformat()) + UTC_OFFSET}


def _short_fraction(text: str) -> str:
    """Removes trailing zeros of the fraction of a second."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def iso_8601(text: str) -> str:
    """Writes PostgreSQL's text of a time in UTC as ISO 8601. A text that ISO cannot express
    stays."""
    if not _DATE_AND_TIME.fullmatch(text):
        return text
    return text.replace(" ", "T").replace("+00", UTC_OFFSET)


class _NotAnItem(Exception):
    """Raised for a document that DynamoDB's maps and lists cannot hold unchanged."""


def _document(value: Any) -> AttributeValue:
    """Maps JSON to maps and lists, or to S if these cannot hold it."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    try:
        document = json.loads(
            value,
            parse_float=Decimal,
            parse_constant=_refuse,
            object_pairs_hook=_members,
        )
        return _part(document, 1) or {"NULL": True}
    except (_NotAnItem, ValueError, RecursionError):
        return {"S": value}


def _refuse(constant: str) -> Any:
    raise _NotAnItem(constant)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json.loads would silently keep the last of several members with the same name.
    members = dict(pairs)
    for name in members:
        name.encode()
    if len(members) < len(pairs) or "" in members:
        raise _NotAnItem
    return members


def _part(part: Any, level: int) -> AttributeValue | None:
    if isinstance(part, dict | list):
        if level == NESTING_LEVELS_MAX:
            raise _NotAnItem
        if isinstance(part, dict):
            return {"M": {name: _inner(inner, level) for name, inner in part.items()}}
        return {"L": [_inner(inner, level) for inner in part]}
    if part is None:
        return None
    if isinstance(part, str):
        # JSON allows half of a surrogate pair, which cannot be encoded as UTF-8.
        part.encode()
    converted = _by_type(part)
    if isinstance(part, int | Decimal) and "S" in converted:
        raise _NotAnItem
    return converted


def _inner(part: Any, level: int) -> AttributeValue:
    return _part(part, level + 1) or {"NULL": True}


def _labels(value: Any) -> AttributeValue | None:
    """Maps a SET. MySQL writes its labels with commas in between, and a label cannot contain
    one."""
    if not isinstance(value, str):
        return None
    labels = sorted(set(value.split(",")), key=str.encode) if value else []
    return {"SS": labels} if labels and all(labels) else {"L": [{"S": label} for label in labels]}


def _members_of_array(value: Any) -> AttributeValue | None:
    if isinstance(value, str):
        document = _document(value)
        return document if "L" in document else None
    return None


def _array(members: list[Any] | tuple[Any, ...]) -> AttributeValue:
    return {"L": [{"NULL": True} if member is None else _by_type(member) for member in members]}


def _uuid(value: Any) -> AttributeValue | None:
    if isinstance(value, UUID):
        return {"S": str(value)}
    return {"S": value.lower()} if isinstance(value, str) else None


_BY_KIND: dict[ColumnKind, Callable[[Any], AttributeValue | None]] = {
    "integer": _integer_column,
    "boolean": _boolean,
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "json": _document,
    "set": _labels,
    "uuid": _uuid,
    "array": _members_of_array,
}
# The order matters for types that derive from another: a datetime is also a date.
_BY_TYPE: dict[type, Callable[[Any], AttributeValue]] = {
    str: _text,
    bool: lambda flag: {"BOOL": flag},
    int: _integer,
    float: _float,
    Decimal: _number,
    bytes: _binary,
    bytearray: _binary,
    memoryview: _binary,
    datetime: _moment,
    date: lambda day: {"S": day.isoformat()},
    time: lambda moment: {"S": _short_fraction(moment.isoformat())},
    timedelta: lambda span: {"S": _clock(span)},
    UUID: lambda identifier: {"S": str(identifier)},
    dict: _document,
    list: _array,
    tuple: _array,
}
