"""Maps attribute values to column values, the reverse of `understanding/sources/value_mapping.py`.

Each written value is read again in the same transaction, so a value that a column cannot hold
exactly is never taken for carried over.
"""

from __future__ import annotations

import json
from base64 import b64decode
from decimal import Decimal
from typing import Any

from partita.database.item import numbers
from partita.database.item.attribute_values import AttributeValue
from partita.errors import ValidationException
from partita_migrate.understanding.schema.inventory import SourceColumn
from partita_migrate.understanding.sources.value_mapping import attribute_value

NUMBERS = ("integer", "decimal", "float")
SPELLED = ("date", "time", "datetime", "json", "uuid", "enum", "geometry", "other")
"""Kinds whose values the source may write differently, such as `2024-1-2` for `2024-01-02`."""
UTC_ENDINGS = ("+00:00", "Z")


class UnsupportedColumnValue(ValueError):
    """Raised for a value that a column of its type cannot hold."""


def normalized(column: SourceColumn, value: AttributeValue) -> AttributeValue:
    """Returns the value as a row has it: a number that a key keeps as text becomes a number
    again."""
    if column.kind in NUMBERS and "S" in value:
        try:
            return {"N": numbers.normalize(value["S"])}
        except ValidationException:
            return value
    return value


def column_value(family: str, column: SourceColumn, value: AttributeValue) -> Any:
    """Returns what the driver is given."""
    ((kind, content),) = value.items()
    if column.kind == "json":
        return _document(kind, content, value)
    if column.kind == "array" and kind == "L":
        return _array(content)
    if column.kind == "set":
        return ",".join(
            content if kind == "SS" else [str(member.get("S", "")) for member in content]
        )
    if kind == "B":
        return b64decode(content)
    if kind == "BOOL":
        return bool(content) if family == "postgresql" else int(content)
    if kind == "N":
        return _number(family, column, content)
    if kind == "S":
        return _text(family, column, content)
    raise UnsupportedColumnValue(
        f"{column.name} of type {column.type} cannot hold a value of type {kind}"
    )


def _number(family: str, column: SourceColumn, digits: str) -> Any:
    number = Decimal(digits)
    if column.kind == "integer" or (column.kind == "boolean" and family != "postgresql"):
        if number != number.to_integral_value():
            raise UnsupportedColumnValue(
                f"{column.name} of type {column.type} cannot hold {digits}"
            )
        return int(number)
    if family == "sqlite":
        is_whole = number == number.to_integral_value() and abs(number) < 2**63
        return int(number) if is_whole else float(number)
    if column.kind == "float" and family == "mysql":
        return float(number)
    return digits


def _text(family: str, column: SourceColumn, text: str) -> str:
    # Sessions run in UTC, and a DATETIME takes no zone.
    if family == "mysql" and column.kind == "datetime":
        for ending in UTC_ENDINGS:
            text = text.removesuffix(ending)
    return text


def _document(kind: str, content: Any, value: AttributeValue) -> str:
    """Returns a JSON text. A document that DynamoDB cannot hold as a map was kept as its text,
    which is returned as it is; any other text becomes a JSON string."""
    if kind == "S" and _is_json(content) and attribute_value("json", content) == value:
        return str(content)
    return _json(value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json(value: AttributeValue) -> str:
    """Encodes by hand, because `json.dumps` would round numbers."""
    ((kind, content),) = value.items()
    if kind == "M":
        members = (f"{json.dumps(n, ensure_ascii=False)}: {_json(v)}" for n, v in content.items())
        return "{" + ", ".join(members) + "}"
    if kind == "L":
        return "[" + ", ".join(map(_json, content)) + "]"
    if kind == "N":
        return str(content)
    if kind == "NULL":
        return "null"
    if kind in ("SS", "NS", "BS"):
        return json.dumps(list(content), ensure_ascii=False)
    return json.dumps(content, ensure_ascii=False)


def _array(members: list[AttributeValue]) -> str:
    """Returns an array literal of PostgreSQL."""
    return "{" + ",".join(map(_member, members)) + "}"


def _member(value: AttributeValue) -> str:
    ((kind, content),) = value.items()
    if kind == "NULL":
        return "NULL"
    if kind == "L":
        return _array(content)
    if kind == "BOOL":
        return "true" if content else "false"
    if kind == "M":
        content = _json(value)
    return '"' + str(content).replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_same(
    column: SourceColumn, written: AttributeValue | None, stored: AttributeValue | None
) -> bool:
    """True when the source holds what it was given."""
    if written == stored:
        return True
    if written is None or stored is None:
        return False
    if "N" in written and "N" in stored:
        if column.kind == "float":
            return (
                abs(Decimal(written["N"]) - Decimal(stored["N"]))
                <= abs(Decimal(written["N"])) / 10**6
            )
        return Decimal(written["N"]) == Decimal(stored["N"])
    if column.kind == "string" and "S" in written and "S" in stored:
        # CHAR(n): MariaDB strips blanks at the end, PostgreSQL fills up with them.
        return bool(written["S"].rstrip(" ") == stored["S"].rstrip(" "))
    return column.kind in SPELLED
