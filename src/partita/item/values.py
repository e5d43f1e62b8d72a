"""Attribute values in the form of the wire, `{"S": "text"}`: ten types, checked and normalised.

A value stays what the JSON decoder made of it: a dict with one member, the type. Binary stays
base64 text. `normalize_item` is called when a value enters the system; from then on numbers are
canonical, sets are sorted and free of duplicates, and everything inside can rely on it.

The JSON types of the members (a string under `S`, a list under `L`) have been checked before, by
`protocol`; here come the rules that the service itself adds.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, auto
from typing import Any

from partita.errors import ValidationException
from partita.item import numbers
from partita.limits import NESTING_LEVELS_MAX

AttributeValue = dict[str, Any]
Item = dict[str, AttributeValue]

TYPES = frozenset(("S", "N", "B", "SS", "NS", "BS", "M", "L", "BOOL", "NULL"))
# The older generation's integer runs over at this exponent (recorded).
_LARGEST_EXPONENT = re.compile(r"[eE]\+?0*2147483647$")
SET_TYPES = frozenset(("SS", "NS", "BS"))
KEY_TYPES = frozenset(("S", "N", "B"))

EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
SEVERAL_TYPES = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
EMPTY_NAME = "Empty attribute name"
INVALID = "One or more parameter values were invalid: "


class MalformedValue(ValidationException):
    """A value that is none at all. A starting key is refused with a word more because of it."""

    code = "ValidationException"


class Wording(Enum):
    """Two generations of the service word the same refusal differently, by operation (recorded)."""

    CURRENT = auto()
    OLDER = auto()


def type_of(value: AttributeValue) -> str:
    """The type of a normalised value."""
    return next(iter(value))


def normalize_item(item: Item, wording: Wording = Wording.CURRENT) -> Item:
    """The item as it is stored; refuses what the service refuses."""
    if "" in item:
        raise ValidationException(EMPTY_NAME)
    return {name: normalize_value(value, wording) for name, value in item.items()}


def normalize_value(
    value: AttributeValue, wording: Wording = Wording.CURRENT, level: int = 1
) -> AttributeValue:
    if level > NESTING_LEVELS_MAX:
        raise ValidationException(TOO_DEEP)
    normalized: AttributeValue | None = None
    for kind, content in value.items():
        if content is None or kind not in TYPES:
            continue
        rule = _RULES.get(kind)
        checked = {kind: rule(content, wording, level)} if rule else value
        if normalized is not None:
            raise MalformedValue(SEVERAL_TYPES)
        normalized = checked
    if normalized is None:
        raise MalformedValue(EMPTY)
    return (
        normalized if len(normalized) == 1 else {kind: normalized[kind] for kind in _given(value)}
    )


def _given(value: AttributeValue) -> list[str]:
    return [kind for kind, content in value.items() if content is not None and kind in TYPES]


def _number(text: str, wording: Wording, level: int) -> str:
    if wording is Wording.OLDER:
        if not text:
            raise ValidationException("The parameter cannot be converted to a numeric value")
        if _LARGEST_EXPONENT.search(text):
            raise ValidationException(numbers.UNDERFLOW)
    return numbers.normalize(text)


def _null(flag: bool, wording: Wording, level: int) -> bool:
    if not flag:
        raise MalformedValue(INVALID + "Null attribute value types must have the value of true")
    return flag


def _list(members: list[AttributeValue], wording: Wording, level: int) -> list[AttributeValue]:
    # A list or map counts a level even when nothing is in it (seen on DynamoDB Local).
    if level == NESTING_LEVELS_MAX:
        raise ValidationException(TOO_DEEP)
    return [normalize_value(member, wording, level + 1) for member in members]


def _map(members: Item, wording: Wording, level: int) -> Item:
    if level == NESTING_LEVELS_MAX:
        raise ValidationException(TOO_DEEP)
    normalized = {}
    for name, value in members.items():
        normalized[name] = normalize_value(value, wording, level + 1)
        if not name:
            raise ValidationException(EMPTY_NAME)
    return normalized


def _string_set(members: list[str], wording: Wording, level: int) -> list[str]:
    # The two blanks are AWS's (recorded).
    if not members:
        raise MalformedValue(INVALID + "An string set  may not be empty")
    if len(set(members)) < len(members):
        if wording is Wording.CURRENT:
            shown = ", ".join(f'"{member}"' for member in _up_to_repeat(members, str.encode))
        else:
            shown = ", ".join(members)
        raise ValidationException(INVALID + f"Input collection [{shown}] contains duplicates.")
    return sorted(members, key=str.encode)


def _number_set(members: list[str], wording: Wording, level: int) -> list[str]:
    if not members:
        raise ValidationException(INVALID + "An number set  may not be empty")
    normalized = {_number(member, wording, level) for member in members}
    if len(normalized) < len(members):
        if wording is Wording.CURRENT:
            raise ValidationException(INVALID + "Input collection contains duplicates.")
        raise ValidationException("Input collection contains duplicates")
    return sorted(normalized, key=Decimal)


def _binary_set(members: list[str], wording: Wording, level: int) -> list[str]:
    if not members:
        raise MalformedValue(INVALID + "Binary sets should not be empty")
    if len(set(members)) < len(members):
        if wording is Wording.CURRENT:
            shown = ",".join(f'"{member}"' for member in _up_to_repeat(members, b64decode))
        else:
            shown = ", ".join(members)
        # No blank before "of": AWS's (recorded).
        raise ValidationException(
            INVALID + f"Input collection [{shown}]of type BS contains duplicates."
        )
    return sorted(members, key=b64decode)


def _up_to_repeat(members: list[str], order: Callable[[str], bytes]) -> list[str]:
    """Members in byte order up to the first repeat, then the repeat, then the rest as sent."""
    seen: set[str] = set()
    for position, member in enumerate(members):
        if member in seen:
            return [*sorted(members[:position], key=order), member, *members[position + 1 :]]
        seen.add(member)
    return members


_RULES: dict[str, Callable[[Any, Wording, int], Any]] = {
    "N": _number,
    "NULL": _null,
    "L": _list,
    "M": _map,
    "SS": _string_set,
    "NS": _number_set,
    "BS": _binary_set,
}
