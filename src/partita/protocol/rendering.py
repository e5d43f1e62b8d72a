"""How the service shows a refused value in an error: as Java prints it.

`'[KeySchemaElement(attributeName=pk, keyType=HASH)]'` is a list with one structure. The classes
of the service have members that its description does not list (recorded in 2026).
"""

from __future__ import annotations

from typing import Any

import orjson

from partita.protocol.model import Model, Shape

HIDDEN_MEMBERS: dict[str, tuple[str, ...]] = {
    "AttributeValue": (
        *("S", "N", "B", "INT", "DECIMAL", "DOUBLE", "SS", "NS", "BS"),
        *("INTSET", "DECIMALSET", "DOUBLESET", "M", "L", "NULL", "BOOL"),
    ),
    "PutRequest": ("Item", "WorkloadProfileName"),
}
# Echoed as JSON, not as Java objects (recorded).
SHOWN_AS_JSON = frozenset(("BatchGetRequestMap",))
# Ours: deeper values are cut, so that rendering cannot exhaust the stack.
LEVELS_MAX = 40


def member_name(name: str) -> str:
    return name[0].lower() + name[1:]


def shown_value(model: Model, shape: Shape, content: Any) -> str:
    if shape.name in SHOWN_AS_JSON:
        return orjson.dumps(content).decode()
    return java_text(model, shape, content)


def java_text(model: Model, shape: Shape, content: Any, level: int = 0) -> str:
    if content is None:
        return "null"
    if level > LEVELS_MAX:
        return "..."
    if shape.kind == "structure":
        names = HIDDEN_MEMBERS.get(shape.name, tuple(shape.members))
        shown = ", ".join(
            f"{member_name(name)}={_member_text(model, shape, name, content, level)}"
            for name in names
        )
        return f"{shape.name}({shown})"
    if shape.kind == "map":
        target = model.shapes[shape.value]
        entries = ", ".join(
            f"{name}={java_text(model, target, value, level + 1)}"
            for name, value in content.items()
        )
        return f"{{{entries}}}"
    if shape.kind == "list":
        target = model.shapes[shape.member]
        return f"[{', '.join(java_text(model, target, value, level + 1) for value in content)}]"
    if shape.kind == "boolean":
        return "true" if content else "false"
    return str(content)


def _member_text(model: Model, shape: Shape, name: str, content: dict[str, Any], level: int) -> str:
    if name not in shape.members:
        return "null"
    return java_text(model, model.shapes[shape.members[name]], content.get(name), level + 1)
