"""Checks the JSON types of DynamoDB JSON that comes from files.

Requests do not need this: `server/protocol` has checked the types of all their members.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any, Final

_STRINGS: Final = frozenset(("S", "N", "B"))
_FLAGS: Final = frozenset(("BOOL", "NULL"))
_SETS: Final = frozenset(("SS", "NS", "BS"))


def is_map(members: Any) -> bool:
    """True for a map of attribute values, such as `{"id": {"S": "a"}, "n": {"N": "1"}}`."""
    return isinstance(members, dict) and all(_is_value(value) for value in members.values())


def _is_value(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    for kind, content in value.items():
        if kind in _STRINGS:
            return isinstance(content, str) and (kind != "B" or _is_base64(content))
        if kind in _FLAGS:
            return isinstance(content, bool)
        if kind == "M":
            return is_map(content)
        if not isinstance(content, list):
            return False
        if kind == "L":
            return all(_is_value(member) for member in content)
        if kind in _SETS:
            return all(_is_value({kind[0]: member}) for member in content)
    return False


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
