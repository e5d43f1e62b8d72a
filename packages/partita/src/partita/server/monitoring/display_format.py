"""Formats keys, numbers and times for a terminal."""

from __future__ import annotations

KEY_CHARS_MAX = 60
"""Longer keys are cut. A key may have 2,048 bytes, far more than fit on a line."""
TIME_STEPS = ((86_400, "d"), (3600, "h"), (60, "min"))


def shown_key(key: str) -> str:
    """Formats a key on one line. Control characters, which a terminal would obey, are escaped."""
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in key
    )
    return shown if len(shown) <= KEY_CHARS_MAX else f"{shown[: KEY_CHARS_MAX - 3]}..."


def shortened(name: str, chars: int) -> str:
    """Cuts the middle of a long name, because similar names differ at the beginning or the end."""
    if len(name) <= chars:
        return name
    end = (chars - 1) // 2
    return f"{name[: chars - 1 - end]}…{name[-end:]}"


def shown_number(number: float) -> str:
    """Formats a number with all digits; the format `g` would only keep six."""
    return f"{number:.1f}".removesuffix(".0")


def shown_seconds(seconds: float) -> str:
    for step, unit in TIME_STEPS:
        if seconds >= 2 * step:
            return f"{seconds / step:.0f} {unit}"
    return f"{seconds:.0f} s"
