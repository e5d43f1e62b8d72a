"""Values of a request laid out over lines: short parts in one line, others a member a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

WIDTH = 88


class LiteralSyntax(Struct, frozen=True, kw_only=True):
    """What differs between the languages."""

    step: str
    name: Callable[[str], str]
    """Of a member, with the sign that follows it."""
    value: Callable[[Any], str]
    """Of a text, a number, a boolean or bytes."""
    spaces: str
    """Inside of braces."""


def lay_out(value: Any, syntax: LiteralSyntax, depth: int = 0, lead: int = 0) -> str:
    """`lead`: the characters that stand before it in its line."""
    short = in_line(value, syntax)
    if len(short) + lead + depth * len(syntax.step) <= WIDTH:
        return short
    pad, end = syntax.step * (depth + 1), syntax.step * depth
    if isinstance(value, dict) and value:
        members = ((syntax.name(name), one) for name, one in value.items())
        lines = [
            f"{pad}{name} {lay_out(one, syntax, depth + 1, len(name) + 2)},"
            for name, one in members
        ]
        return "\n".join(["{", *lines, f"{end}}}"])
    if isinstance(value, list) and value:
        lines = [f"{pad}{lay_out(one, syntax, depth + 1, 1)}," for one in value]
        return "\n".join(["[", *lines, f"{end}]"])
    return short


def in_line(value: Any, syntax: LiteralSyntax) -> str:
    if isinstance(value, dict):
        members = (f"{syntax.name(name)} {in_line(one, syntax)}" for name, one in value.items())
        return f"{{{syntax.spaces}{', '.join(members)}{syntax.spaces}}}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(in_line(one, syntax) for one in value)}]"
    return syntax.value(value)


def with_bytes(value: Any, decode: Callable[[str], Any]) -> Any:
    """Bytes are base64 on the wire; `decode` makes of them what the language has."""
    if isinstance(value, list):
        return [with_bytes(one, decode) for one in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("B"), str):
        return {"B": decode(value["B"])}
    if isinstance(value.get("BS"), list):
        return {"BS": [decode(one) for one in value["BS"]]}
    return {name: with_bytes(one, decode) for name, one in value.items()}
