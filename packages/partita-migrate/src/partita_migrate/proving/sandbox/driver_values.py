"""Maps attribute values to what a driver takes for a column of a private copy."""

from __future__ import annotations

import json
from base64 import b64decode
from decimal import Decimal
from typing import Any

from partita.database.item.attribute_values import AttributeValue
from partita_migrate.understanding.schema.inventory import SourceColumn
from partita_migrate.understanding.sources.value_mapping import UTC_OFFSET


def column_value(column: SourceColumn, value: AttributeValue, family: str) -> Any:
    """Returns the value as a driver passes it to a column of this kind."""
    if column.kind == "json":
        return json.dumps(plain(value), ensure_ascii=False, default=_number)
    if column.kind == "set":
        return ",".join(plain(value))
    if column.kind == "array":
        members = plain(value)
        return members if family == "postgresql" else json.dumps(members, default=_number)
    return driver_value(value, family)


def driver_value(value: AttributeValue, family: str) -> Any:
    """Returns an attribute value as it is compared with a column."""
    ((kind, content),) = value.items()
    if kind == "N":
        number = Decimal(content)
        if number == number.to_integral_value() and abs(number) < 2**63:
            return int(number)
        return float(number) if family == "sqlite" else number
    if kind == "B":
        return b64decode(content)
    if kind == "S" and family == "mysql" and content.endswith(UTC_OFFSET):
        return content.removesuffix(UTC_OFFSET)
    return content


def plain(value: AttributeValue) -> Any:
    """Returns a document or a list as Python values."""
    ((kind, content),) = value.items()
    if kind == "M":
        return {name: plain(member) for name, member in content.items()}
    if kind == "L":
        return [plain(member) for member in content]
    if kind == "N":
        return Decimal(content)
    if kind == "NULL":
        return None
    return b64decode(content) if kind == "B" else content


def _number(value: Any) -> Any:
    number = Decimal(value)
    return int(number) if number == number.to_integral_value() else float(number)
