"""Items without DynamoDB's type descriptors: plain JSON, and the text of a typed CSV column."""

from __future__ import annotations

import json
from typing import Any, Final

from partita.copies.table_files.table_reading import Item
from partita.errors import PartitaError

KINDS: Final = ("S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M")
LISTS: Final = ("SS", "NS", "BS", "L", "M")
"""Types whose text in a CSV file is JSON."""


class NumberText(str):
    """The digits of a number as they are in the JSON text, so that parsing loses none of them."""


def is_item(value: Any) -> bool:
    """True for an item in DynamoDB JSON, {"id": {"S": "7"}}; values are not checked in depth."""
    return isinstance(value, dict) and all(
        isinstance(attribute, dict) and len(attribute) == 1 and next(iter(attribute)) in KINDS
        for attribute in value.values()
    )


# Plain JSON


def plain(item: Item) -> dict[str, Any]:
    """Plain JSON for an item: {"id": {"S": "7"}} becomes {"id": "7"}. Sets become lists."""
    return {name: _plain(value) for name, value in item.items()}


def _plain(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "N":
        return _number(content)
    if kind == "NULL":
        return None
    if kind == "NS":
        return [_number(member) for member in content]
    if kind == "L":
        return [_plain(element) for element in content]
    if kind == "M":
        return plain(content)
    return content


def _number(digits: str) -> int | float | str:
    """A JSON number if readers that use 64-bit floats keep it exactly, and a string otherwise."""
    if digits.lstrip("-").isdigit():
        return int(digits) if len(digits) < 16 else digits
    return float(digits) if len(digits) < 16 and "E" not in digits.upper() else digits


def read_plain(text: str | bytes) -> Any:
    return json.loads(text, parse_float=NumberText, parse_int=NumberText)


def typed(value: Any) -> dict[str, Any]:
    """The attribute value for a value of plain JSON: "7" becomes {"S": "7"}."""
    if isinstance(value, NumberText):
        return {"N": str(value)}
    if isinstance(value, bool):
        return {"BOOL": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, list):
        return {"L": [typed(element) for element in value]}
    if isinstance(value, dict):
        return {"M": {name: typed(member) for name, member in value.items()}}
    raise PartitaError(f"{value!r} is not a value that an item can have.")


# Text with a type


def text_of(kind: str, content: Any) -> str:
    """The CSV field for an attribute value; `value_of` is its inverse."""
    if kind == "BOOL":
        return "true" if content else "false"
    if kind == "NULL":
        return "null"
    if kind in LISTS:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if kind == "S" and needs_quotes(content):
        return json.dumps(content, ensure_ascii=False)
    return str(content)


def needs_quotes(text: str) -> bool:
    """True for strings that a reader would take for a missing value or for a quoted string."""
    return not text or text.startswith('"')


def value_of(kind: str, text: str) -> dict[str, Any]:
    """The attribute value for a CSV field in a column of type `kind`; raises ValueError."""
    if kind == "BOOL":
        if text not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return {kind: text == "true"}
    if kind == "NULL":
        return {kind: True}
    if kind in LISTS or (kind == "S" and text.startswith('"')):
        return {kind: json.loads(text)}
    return {kind: text}
