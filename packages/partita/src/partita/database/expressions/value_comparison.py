"""Comparing attribute values as DynamoDB does: only values of one type have an order.

Normalized values are equal when their dicts are, as numbers are canonical and sets are sorted.
Python orders strings by code point, which is the order of their UTF-8 bytes.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any, Final

from partita.database.item.attribute_values import AttributeValue
from partita.database.item.item_sizes import binary_size

ORDERED_TYPES: Final = frozenset(("S", "N", "B"))
PREFIX_TYPES: Final = frozenset(("S", "B"))
SIZED_TYPES: Final = frozenset(("S", "B", "SS", "NS", "BS", "L", "M"))
MEMBER_TYPES: Final = {"SS": "S", "NS": "N", "BS": "B"}

Order = Callable[[Any, Any], bool]
ORDERS: Final[dict[str, Order]] = {"<": lt, "<=": le, ">": gt, ">=": ge}

_ORDERED: Final[dict[str, Callable[[str], Any]]] = {"S": str, "N": Decimal, "B": b64decode}


def is_ordered(left: AttributeValue, right: AttributeValue, order: Order) -> bool:
    """True when two values of the same type are in the given order, as in `left < right`."""
    ((kind, content),) = left.items()
    other = right.get(kind)
    if other is None:
        return False
    read = _ORDERED.get(kind)
    return read is not None and order(read(content), read(other))


def is_between(value: AttributeValue, lower: AttributeValue, upper: AttributeValue) -> bool:
    return is_ordered(lower, value, le) and is_ordered(value, upper, le)


def begins_with(value: AttributeValue, prefix: AttributeValue) -> bool:
    if "S" in value and "S" in prefix:
        text: str = value["S"]
        return text.startswith(prefix["S"])
    if "B" in value and "B" in prefix:
        return b64decode(value["B"]).startswith(b64decode(prefix["B"]))
    return False


def contains(container: AttributeValue, member: AttributeValue) -> bool:
    """True when a string or binary has a substring, a set a member, or a list an element."""
    ((kind, content),) = container.items()
    if kind == "L":
        return member in content
    if kind in MEMBER_TYPES:
        return member.get(MEMBER_TYPES[kind]) in content
    if kind == "S" and "S" in member:
        return member["S"] in content
    if kind == "B" and "B" in member:
        return b64decode(member["B"]) in b64decode(content)
    return False


def size(value: AttributeValue) -> AttributeValue | None:
    """Returns the value of size(), or None for types that have no size.

    A string counts UTF-16 code units (recorded), a binary bytes, everything else its members.
    """
    ((kind, content),) = value.items()
    if kind not in SIZED_TYPES:
        return None
    if kind == "S":
        length = len(content) if content.isascii() else len(content.encode("utf-16-le")) // 2
    else:
        length = binary_size(content) if kind == "B" else len(content)
    return {"N": str(length)}
