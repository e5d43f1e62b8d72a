"""Lays out the values of a request: short values in one line, long ones with a line for each
member."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

WIDTH = 88


class LiteralSyntax(Struct, frozen=True, kw_only=True):
    """The syntax of literals in one programming language."""

    step: str
    name: Callable[[str], str]
    """Writes a member's name with the sign that follows it."""
    value: Callable[[Any], str]
    """Writes a text, a number, a boolean or bytes."""
    spaces: str
    """The space inside braces."""


def lay_out(value: Any, syntax: LiteralSyntax, depth: int = 0, lead: int = 0) -> str:
    """Writes a value. `lead` is the number of characters before it in its line."""
    short = in_line(value, syntax)
    if len(short) + lead + depth * len(syntax.step) <= WIDTH:
        return short
    pad, end = syntax.step * (depth + 1), syntax.step * depth
    if isinstance(value, dict) and value:
        members = ((syntax.name(name), member) for name, member in value.items())
        lines = [
            f"{pad}{name} {lay_out(member, syntax, depth + 1, len(name) + 2)},"
            for name, member in members
        ]
        return "\n".join(["{", *lines, f"{end}}}"])
    if isinstance(value, list) and value:
        lines = [f"{pad}{lay_out(member, syntax, depth + 1, 1)}," for member in value]
        return "\n".join(["[", *lines, f"{end}]"])
    return short


def in_line(value: Any, syntax: LiteralSyntax) -> str:
    if isinstance(value, dict):
        members = (
            f"{syntax.name(name)} {in_line(member, syntax)}" for name, member in value.items()
        )
        return f"{{{syntax.spaces}{', '.join(members)}{syntax.spaces}}}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(in_line(member, syntax) for member in value)}]"
    return syntax.value(value)


def with_bytes(value: Any, decode: Callable[[str], Any]) -> Any:
    """Replaces base64 texts, as bytes are sent on the wire, by what `decode` makes of them."""
    if isinstance(value, list):
        return [with_bytes(member, decode) for member in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("B"), str):
        return {"B": decode(value["B"])}
    if isinstance(value.get("BS"), list):
        return {"BS": [decode(text) for text in value["BS"]]}
    return {name: with_bytes(member, decode) for name, member in value.items()}
