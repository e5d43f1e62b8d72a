"""Column types without a direct counterpart in DynamoDB, and how to keep their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from partita.foundation.service_limits import NUMBER_DIGITS_MAX
from partita_migrate.understanding.schema.inventory import MYSQL_FAMILY, ColumnKind, SourceColumn

Applies = Callable[[SourceColumn, str], bool]
"""True when a column of this dialect is concerned."""


class TypeCare(NamedTuple):
    severity: Literal["obstacle", "care", "note"]
    applies: Applies
    what: str
    strategy: str


def _kinds(*kinds: ColumnKind) -> Applies:
    return lambda column, dialect: column.kind in kinds


def _types(pattern: str, *dialects: str) -> Applies:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda column, dialect: (
        (not dialects or dialect in dialects) and bool(compiled.search(column.type))
    )


def _has_too_many_digits(column: SourceColumn, dialect: str) -> bool:
    precision = re.search(r"\((\d+)", column.type)
    return column.kind == "decimal" and (
        precision is not None and int(precision.group(1)) > NUMBER_DIGITS_MAX
    )


def _has_any_digits(column: SourceColumn, dialect: str) -> bool:
    return dialect == "postgresql" and bool(re.search(r"\bnumeric\b(?!\()", column.type))


def _may_be_zero_date(column: SourceColumn, dialect: str) -> bool:
    return dialect in MYSQL_FAMILY and column.kind in ("date", "datetime")


def _is_date(column: SourceColumn, dialect: str) -> bool:
    return dialect not in MYSQL_FAMILY and column.kind in ("date", "datetime")


def _is_undeclared(column: SourceColumn, dialect: str) -> bool:
    return dialect == "sqlite" and column.type == ""


def _is_other(column: SourceColumn, dialect: str) -> bool:
    return column.kind == "other" and not _COVERED_BY_NAME.search(column.type) and bool(column.type)


_COVERED_BY_NAME = re.compile(r"^(interval|tsvector|tsquery)\b")

TYPE_CARE: tuple[TypeCare, ...] = (
    TypeCare(
        "obstacle",
        _has_too_many_digits,
        "more digits than the 38 of DynamoDB's numbers.",
        "Keep the value as a string, padded with zeros where it has to sort.",
    ),
    TypeCare(
        "care",
        _has_any_digits,
        "numeric without a precision may have more digits than the 38 of DynamoDB's numbers, or be"
        " NaN.",
        "Check the longest value; keep it as a string if necessary.",
    ),
    TypeCare(
        "note",
        _kinds("float"),
        "binary fractions; DynamoDB's numbers are decimal, without NaN and infinity, and with"
        " exponents up to 125.",
        "Write the shortest decimal that reads back as the same fraction; refuse NaN and infinity.",
    ),
    TypeCare(
        "note",
        _types(r"^bigint.*unsigned", *MYSQL_FAMILY),
        "an unsigned 64-bit number, which fits DynamoDB's numbers but not a signed integer.",
        "Read it as a decimal or an unsigned integer in the application.",
    ),
    TypeCare(
        "care",
        _types(r"^money\b", "postgresql"),
        "money is written in the currency of the server's locale.",
        "Cast it to numeric when reading, and store a number of cents or a decimal.",
    ),
    TypeCare(
        "note",
        _types(r"^tinyint\(1\)", *MYSQL_FAMILY),
        "read as a boolean, although it may hold other numbers from -128 to 127.",
        "Keep it as a number when values other than 0 and 1 occur.",
    ),
    TypeCare(
        "note",
        _types(r"^bit\b"),
        "there is no bit type.",
        "Keep them as a number, a binary or a string of 0 and 1.",
    ),
    TypeCare(
        "note",
        _may_be_zero_date,
        "there is no date type, and MySQL may hold 0000-00-00, which is not a date.",
        "Store ISO 8601 text, which sorts by time, or seconds as a number (TTL needs those); leave"
        " zero dates out.",
    ),
    TypeCare(
        "note",
        _is_date,
        "there is no date type.",
        "Store ISO 8601 text, which sorts by time, or seconds as a number (TTL needs those).",
    ),
    TypeCare(
        "note",
        _types(r"^timestamp.*without time zone|^datetime", "postgresql", *MYSQL_FAMILY),
        "a time without a time zone.",
        "Decide on one zone, UTC, and write it with the value.",
    ),
    TypeCare(
        "note",
        _types(r"^time\b(?!stamp)", *MYSQL_FAMILY),
        "TIME is a span from -838 to 838 hours, not only a time of day.",
        "Store seconds as a number, or text that is padded with zeros.",
    ),
    TypeCare(
        "care",
        _types(r"^interval\b", "postgresql"),
        "an interval counts months, days and seconds separately.",
        "Store ISO 8601 text such as P1M2DT3S, or seconds where months do not occur.",
    ),
    TypeCare(
        "note",
        _kinds("enum"),
        "the database rejects other values, DynamoDB does not, and it sorts by the text.",
        "Store the text, and check it in the application.",
    ),
    TypeCare(
        "care",
        _kinds("set"),
        "a SET becomes a string set, which has no order and cannot be empty.",
        "Leave the attribute out when no member is set.",
    ),
    TypeCare(
        "note",
        _kinds("json"),
        "JSON becomes maps and lists, at most 32 levels deep, with numbers of 38 digits.",
        "Store it as a map to read parts of it, or as a string to keep it verbatim.",
    ),
    TypeCare(
        "note",
        _kinds("uuid"),
        "a UUID takes 36 bytes as text and 16 as a binary.",
        "Choose one of them for all tables, so that keys match.",
    ),
    TypeCare(
        "care",
        _kinds("array"),
        "an array becomes a list, whose members cannot be indexed.",
        "Use a set where order and repeats do not matter, or an item for each member.",
    ),
    TypeCare(
        "care",
        _kinds("geometry"),
        "there is no geometry type, and no search by distance.",
        "Store GeoJSON or WKB, and a geohash as a sort key when places are searched.",
    ),
    TypeCare(
        "care",
        _types(r"^(tsvector|tsquery)\b", "postgresql"),
        "made for full-text search, which DynamoDB does not have.",
        "Leave it out, and feed a search service from the table's stream.",
    ),
    TypeCare(
        "care",
        _is_undeclared,
        "a column without a type may hold any kind of value.",
        "Look at its values; each item may have its own type.",
    ),
    TypeCare(
        "care",
        _is_other,
        "a type without a counterpart.",
        "Store its text, or the parts that are read as attributes of their own.",
    ),
)
