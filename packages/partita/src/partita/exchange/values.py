"""Items as other formats write them: plain JSON, and text with a type."""

from __future__ import annotations

import json
from typing import Any, Final

from partita.errors import PartitaError
from partita.exchange.tables import Item

KINDS: Final = ("S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M")
LISTS: Final = ("SS", "NS", "BS", "L", "M")
"""Whose text is JSON."""


class Number(str):
    """The digits of a number, as somebody wrote them."""


def is_item(value: Any) -> bool:
    """Whether it is an item of the wire: attributes with one type each."""
    return isinstance(value, dict) and all(
        isinstance(one, dict) and len(one) == 1 and next(iter(one)) in KINDS
        for one in value.values()
    )


# Plain JSON


def plain(item: Item) -> dict[str, Any]:
    return {name: _plain(value) for name, value in item.items()}


def _plain(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "N":
        return _number(content)
    if kind == "NULL":
        return None
    if kind == "NS":
        return [_number(one) for one in content]
    if kind == "L":
        return [_plain(one) for one in content]
    if kind == "M":
        return plain(content)
    return content


def _number(digits: str) -> int | float | str:
    """As a number where JSON's readers keep it, and as text otherwise."""
    if digits.lstrip("-").isdigit():
        return int(digits) if len(digits) < 16 else digits
    return float(digits) if len(digits) < 16 and "E" not in digits.upper() else digits


def read_plain(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Number, parse_int=Number)


def typed(value: Any) -> dict[str, Any]:
    """The value of the wire for one of plain JSON."""
    if isinstance(value, Number):
        return {"N": str(value)}
    if isinstance(value, bool):
        return {"BOOL": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, list):
        return {"L": [typed(one) for one in value]}
    if isinstance(value, dict):
        return {"M": {name: typed(one) for name, one in value.items()}}
    raise PartitaError(f"{value!r} is no value of an item.")


# Text with a type


def text_of(kind: str, content: Any) -> str:
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
    """Whether a string would be taken for none, or for one in quotes."""
    return not text or text.startswith('"')


def value_of(kind: str, text: str) -> dict[str, Any]:
    """The value that a text stands for in a column of that type; ValueError if for none."""
    if kind == "BOOL":
        if text not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return {kind: text == "true"}
    if kind == "NULL":
        return {kind: True}
    if kind in LISTS or (kind == "S" and text.startswith('"')):
        return {kind: json.loads(text)}
    return {kind: text}
