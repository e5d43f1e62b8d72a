"""Refused values as the service shows them in error messages: in the form in which Java prints
them.

`'[KeySchemaElement(attributeName=pk, keyType=HASH)]'` is a list with one structure. The service's
classes have members that its description does not list (recorded in 2026).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from partita.server.protocol.service_model import ModelShape, ServiceModel

Entries = Iterator[tuple[str, Iterator[str]]]
"""The entries of a container: each has a prefix and an iterator over the pieces of its text, which
are only made as long as they are shown."""

HIDDEN_MEMBERS: dict[str, tuple[str, ...]] = {
    "AttributeValue": (
        *("S", "N", "B", "INT", "DECIMAL", "DOUBLE", "SS", "NS", "BS"),
        *("INTSET", "DECIMALSET", "DOUBLESET", "M", "L", "NULL", "BOOL"),
    ),
    "PutRequest": ("Item", "WorkloadProfileName"),
}
# The service echoes these as JSON, not as Java objects (recorded).
SHOWN_AS_JSON = frozenset(("BatchGetRequestMap",))
# Limits of Partita's own: deeper and longer values are cut, so that refusing a large request is
# cheap.
LEVELS_MAX = 80
VALUE_CHARS_MAX = 16_384
NAME_CHARS_MAX = 1024
CUT = "..."


def member_name(name: str) -> str:
    return name[0].lower() + name[1:]


def hash_order(names: tuple[str, ...]) -> list[str]:
    """Returns names in the order in which a Java hash map or hash set iterates over them.

    Every recorded list of violations has this order (of member names that begin in lower case), and
    so have most of the printed enum sets.
    """
    buckets = 16
    while len(names) > buckets * 3 // 4:
        buckets *= 2
    return sorted(names, key=lambda name: _java_hash(name) & (buckets - 1))


def _java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value ^ (value >> 16)


def shown_name(name: str) -> str:
    """Returns a name that the client chose, shortened for the path to a refused value."""
    return name if len(name) <= NAME_CHARS_MAX else name[:NAME_CHARS_MAX] + CUT


def shown_value(model: ServiceModel, shape: ModelShape, content: Any) -> str:
    if shape.name in SHOWN_AS_JSON:
        return _cut(_json_text(content, 0))
    return _cut(_java_text(model, shape, content, 0))


def _cut(pieces: Iterator[str]) -> str:
    shown: list[str] = []
    left = VALUE_CHARS_MAX
    for piece in pieces:
        if len(piece) > left:
            shown += (piece[:left], CUT)
            break
        shown.append(piece)
        left -= len(piece)
    return "".join(shown)


def _java_text(model: ServiceModel, shape: ModelShape, content: Any, level: int) -> Iterator[str]:
    if content is None:
        yield "null"
    elif level > LEVELS_MAX:
        yield CUT
    elif shape.kind in _JAVA_CONTAINERS:
        start, entries, end = _JAVA_CONTAINERS[shape.kind]
        yield start.format(shape.name)
        yield from _joined(", ", entries(model, shape, content, level + 1))
        yield end
    elif shape.kind == "boolean":
        yield "true" if content else "false"
    else:
        yield str(content)


def _java_members(model: ServiceModel, shape: ModelShape, content: Any, level: int) -> Entries:
    for name in HIDDEN_MEMBERS.get(shape.name, tuple(shape.members)):
        target = model.shapes[shape.members.get(name, shape.name)]
        yield f"{member_name(name)}=", _java_text(model, target, content.get(name), level)


def _java_entries(model: ServiceModel, shape: ModelShape, content: Any, level: int) -> Entries:
    target = model.shapes[shape.value]
    for name, value in content.items():
        yield f"{shown_name(name)}=", _java_text(model, target, value, level)


def _java_elements(model: ServiceModel, shape: ModelShape, content: Any, level: int) -> Entries:
    target = model.shapes[shape.member]
    for value in content:
        yield "", _java_text(model, target, value, level)


_JAVA_CONTAINERS: dict[
    str, tuple[str, Callable[[ServiceModel, ModelShape, Any, int], Entries], str]
] = {
    "structure": ("{}(", _java_members, ")"),
    "map": ("{{", _java_entries, "}"),
    "list": ("[", _java_elements, "]"),
}


def _json_text(content: Any, level: int) -> Iterator[str]:
    if level > LEVELS_MAX:
        yield CUT
    elif type(content) is dict:
        yield "{"
        yield from _joined(",", _json_entries(content, level + 1))
        yield "}"
    elif type(content) is list:
        yield "["
        yield from _joined(",", (("", _json_text(value, level + 1)) for value in content))
        yield "]"
    else:
        yield json.dumps(content, ensure_ascii=False)


def _json_entries(content: dict[str, Any], level: int) -> Entries:
    for name, value in content.items():
        yield f"{json.dumps(shown_name(name), ensure_ascii=False)}:", _json_text(value, level)


def _joined(comma: str, entries: Entries) -> Iterator[str]:
    before = ""
    for start, pieces in entries:
        yield before + start
        yield from pieces
        before = comma
