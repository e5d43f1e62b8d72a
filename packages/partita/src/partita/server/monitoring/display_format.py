"""Keys, numbers and times as a terminal shows them."""

from __future__ import annotations

KEY_CHARS_MAX = 60
"""A key has up to 2,048 bytes, a line of a terminal far less."""
TIME_STEPS = ((86_400, "d"), (3600, "h"), (60, "min"))


def shown_key(key: str) -> str:
    """On one line, and without anything that a terminal would obey."""
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in key
    )
    return shown if len(shown) <= KEY_CHARS_MAX else f"{shown[: KEY_CHARS_MAX - 3]}..."


def shortened(name: str, chars: int) -> str:
    """Its beginning and its end: names of a family differ in one of them."""
    if len(name) <= chars:
        return name
    end = (chars - 1) // 2
    return f"{name[: chars - 1 - end]}…{name[-end:]}"


def shown_number(number: float) -> str:
    """All of its digits: `g` has six."""
    return f"{number:.1f}".removesuffix(".0")


def shown_seconds(seconds: float) -> str:
    for step, unit in TIME_STEPS:
        if seconds >= 2 * step:
            return f"{seconds / step:.0f} {unit}"
    return f"{seconds:.0f} s"
