"""Attribute values in the form of the wire, `{"S": "text"}`: ten types, checked and normalized.

A value stays what the JSON decoder made of it: a dict with one member, whose name is the type.
Binary stays base64 text. `normalize_item` is called where a value enters the system; everything
behind it can rely on canonical numbers and on sets that are sorted and free of duplicates.

`server/protocol` has already checked the JSON types of the members (a string under `S`, a list
under `L`). This module adds the rules that the service itself checks.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sized
from decimal import Decimal
from enum import Enum, auto
from typing import Any, Final

from partita.database.item import numbers
from partita.errors import INVALID, MalformedValue, ValidationException
from partita.foundation.service_limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX

AttributeValue = dict[str, Any]
Item = dict[str, AttributeValue]

TYPES: Final = frozenset(("S", "N", "B", "SS", "NS", "BS", "M", "L", "BOOL", "NULL"))
SET_TYPES: Final = frozenset(("SS", "NS", "BS"))

EMPTY: Final = (
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
)
SEVERAL_TYPES: Final = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)
TOO_DEEP: Final = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
TOO_LARGE: Final = "Item size has exceeded the maximum allowed size"
EMPTY_NAME: Final = "Empty attribute name"


class ErrorWording(Enum):
    """The generation of the service's error texts that an operation uses (recorded)."""

    CURRENT = auto()
    OLDER = auto()


class ValueCheck:
    """The state of checking one item: the wording of errors, and how many members are left."""

    __slots__ = ("has_empty_name", "room", "wording")

    def __init__(self, wording: ErrorWording) -> None:
        self.wording = wording
        self.room = ITEM_BYTES_MAX
        self.has_empty_name = False

    def count(self, members: Sized) -> None:
        """Refuse an item with more members than bytes are allowed, before they are checked.

        Every member counts at least one byte.
        """
        self.room -= len(members)
        if self.room < 0:
            raise ValidationException(TOO_LARGE)

    def finish(self) -> None:
        """Report an empty attribute name in a map, after all other problems (recorded)."""
        if self.has_empty_name:
            raise ValidationException(EMPTY_NAME)


def type_of(value: AttributeValue) -> str:
    """Returns the type of a normalized value, such as "S"."""
    return next(iter(value))


def normalize_item(item: Item, wording: ErrorWording = ErrorWording.CURRENT) -> Item:
    """Returns the item as it is stored; raises the service's error if it is not valid."""
    if "" in item:
        raise ValidationException(EMPTY_NAME)
    check = ValueCheck(wording)
    check.count(item)
    normalized = {name: _normalized(value, check, 1) for name, value in item.items()}
    check.finish()
    return normalized


def normalize_value(
    value: AttributeValue,
    wording: ErrorWording = ErrorWording.CURRENT,
    check: ValueCheck | None = None,
) -> AttributeValue:
    """Returns one value as it is stored.

    The values of one request share a `check`, and with it the number of members they may have.
    """
    check = check or ValueCheck(wording)
    normalized = _normalized(value, check, 1)
    check.finish()
    return normalized


def _normalized(value: AttributeValue, check: ValueCheck, level: int) -> AttributeValue:
    if level > NESTING_LEVELS_MAX:
        raise ValidationException(TOO_DEEP)
    normalized: AttributeValue | None = None
    for kind, content in value.items():
        checked: Any = content
        # The two most frequent types come first; strings need no rule at all.
        if kind == "N":
            checked = _number(content, check, level)
        elif kind != "S":
            rule = _RULES.get(kind)
            if rule is not None:
                checked = rule(content, check, level)
        if normalized is not None:
            raise MalformedValue(SEVERAL_TYPES)
        # Most values are in normal form already: no new dict is made for them.
        normalized = value if checked is content else {kind: checked}
    if normalized is None:
        raise MalformedValue(EMPTY)
    return normalized


def _number(text: str, check: ValueCheck, level: int) -> str:
    if check.wording is ErrorWording.OLDER:
        return numbers.normalize_older(text)
    return numbers.normalize(text)


def _null(flag: bool, check: ValueCheck, level: int) -> bool:
    if not flag:
        raise MalformedValue(f"{INVALID}Null attribute value types must have the value of true")
    return flag


def _list(members: list[AttributeValue], check: ValueCheck, level: int) -> list[AttributeValue]:
    # A list or map counts as a level even when it is empty (observed on DynamoDB Local).
    if level == NESTING_LEVELS_MAX:
        raise ValidationException(TOO_DEEP)
    check.count(members)
    return [_normalized(member, check, level + 1) for member in members]


def _map(members: Item, check: ValueCheck, level: int) -> Item:
    if level == NESTING_LEVELS_MAX:
        raise ValidationException(TOO_DEEP)
    check.count(members)
    normalized = {}
    for name, value in members.items():
        normalized[name] = _normalized(value, check, level + 1)
        if not name:
            check.has_empty_name = True
    return normalized


def _string_set(members: list[str], check: ValueCheck, level: int) -> list[str]:
    # The two spaces in this message are AWS's (recorded).
    if not members:
        raise MalformedValue(f"{INVALID}An string set  may not be empty")
    check.count(members)
    if len(set(members)) < len(members):
        if check.wording is ErrorWording.CURRENT:
            shown = ", ".join(f'"{member}"' for member in _up_to_repeat(members, None))
        else:
            shown = ", ".join(members)
        raise ValidationException(f"{INVALID}Input collection [{shown}] contains duplicates.")
    return _in_byte_order(members)


def _number_set(members: list[str], check: ValueCheck, level: int) -> list[str]:
    if not members:
        raise ValidationException(f"{INVALID}An number set  may not be empty")
    check.count(members)
    normalized = {_number(member, check, level) for member in members}
    if len(normalized) < len(members):
        if check.wording is ErrorWording.CURRENT:
            raise ValidationException(f"{INVALID}Input collection contains duplicates.")
        raise ValidationException("Input collection contains duplicates")
    return sorted(normalized, key=Decimal)


def _binary_set(members: list[str], check: ValueCheck, level: int) -> list[str]:
    if not members:
        raise MalformedValue(f"{INVALID}Binary sets should not be empty")
    check.count(members)
    if len(set(members)) < len(members):
        if check.wording is ErrorWording.CURRENT:
            shown = ",".join(f'"{member}"' for member in _up_to_repeat(members, b64decode))
        else:
            shown = ", ".join(members)
        # The missing space before "of" is AWS's (recorded).
        raise ValidationException(
            f"{INVALID}Input collection [{shown}]of type BS contains duplicates."
        )
    return sorted(members, key=b64decode)


def _in_byte_order(members: list[str]) -> list[str]:
    """Returns the members sorted by their UTF-8 bytes, which is the order of code points.

    Members that are in order already are returned as they are.
    """
    before = ""
    for member in members:
        if member < before:
            return sorted(members)
        before = member
    return members


def _up_to_repeat(members: list[str], order: Callable[[str], bytes] | None) -> list[str]:
    """Returns the members in the order in which the service's error lists them: up to the first
    duplicate in byte order, then the duplicate, then the rest as sent (recorded)."""
    seen: set[str] = set()
    for position, member in enumerate(members):
        if member in seen:
            return [*sorted(members[:position], key=order), member, *members[position + 1 :]]
        seen.add(member)
    return members


_RULES: Final[dict[str, Callable[[Any, ValueCheck, int], Any]]] = {
    "N": _number,
    "NULL": _null,
    "L": _list,
    "M": _map,
    "SS": _string_set,
    "NS": _number_set,
    "BS": _binary_set,
}
