"""Values: of few kinds and from small pools, so that two of them are often equal or nearly so."""

from __future__ import annotations

from ..notation import NULL, Value
from .canonical import canonical_number
from .dice import Dice

SCALARS = ("S", "N", "B")
SETS = ("SS", "NS", "BS")
KINDS = (*SCALARS, *SETS, "BOOL", "NULL", "L", "M")

TEXTS = ("a", "b", "ab", "abc", "aa", "B", "", "ä", "é", "1", "10", "😀", "\uff5e", "a b", "it's")
BYTES = ("", "AA==", "AQ==", "AQI=", "/w==", "gA==", "YQ==", "YWI=")
ASCII_BYTES = ("AQ==", "AQI=", "YQ==", "YWI=")
NUMBERS = ("0", "1", "2", "3", "-1", "10", "1.5", "-0", "1.0", "01", "1e1", "0.10")
EXTREMES = (
    "9.9999999999999999999999999999999999999E+125",
    "-9.9999999999999999999999999999999999999E+125",
    "1E-130",
    "-1E-130",
    "99999999999999999999999999999999999999",
)
DEPTH_MAX = 3
DIGITS_MAX = 38

MEMBERS = ("a", "b", "q", "l", "m", "ss", "name", "a.b")
"""The names of map members, which paths also use."""

MEMBER_KINDS = {"a": "S", "b": "B", "q": "N", "l": "L", "m": "M", "ss": "SS", "name": "S"}


def number(dice: Dice) -> str:
    """A number as a request may write it: of up to 38 digits, mostly of one."""
    if dice.chance(0.55):
        return dice.choice(NUMBERS)
    if dice.chance(0.03):
        return dice.choice(EXTREMES)
    digits = "".join(dice.choices("0123456789", k=dice.randint(1, DIGITS_MAX)))
    text = dice.choice(("", "", "-")) + digits
    if dice.chance(0.3):
        point = dice.randint(0, len(digits))
        text = f"{digits[:point] or '0'}.{digits[point:] or '0'}"
    if dice.chance(0.15):
        text += f"{dice.choice('eE')}{dice.choice(('', '+', '-'))}{dice.randint(0, 80)}"
    return text


def text(dice: Dice) -> str:
    if dice.chance(0.02):
        return "x" * dice.randint(1, 2000)
    return dice.choice(TEXTS)


def value(dice: Dice, kind: str | None = None, depth: int = 0) -> Value:
    """A value of the kind, or of any."""
    if kind is None:
        kind = dice.choice(KINDS if depth < DEPTH_MAX else SCALARS)
    if kind == "NULL":
        return NULL
    return {kind: _content(dice, kind, depth)}


def _content(dice: Dice, kind: str, depth: int) -> object:
    if kind == "S":
        return text(dice)
    if kind == "N":
        return canonical_number(number(dice)) if depth else number(dice)
    if kind == "B":
        return dice.choice(BYTES)
    if kind == "BOOL":
        return dice.chance(0.5)
    if kind == "SS":
        return dice.some(TEXTS, 1, 3)
    if kind == "NS":
        return _different_numbers(dice)
    if kind == "BS":
        return dice.some(BYTES, 1, 3)
    if kind == "L":
        return dice.times(0, 3, lambda: value(dice, depth=depth + 1))
    return {name: member(dice, name, depth + 1) for name in dice.some(MEMBERS, 0, 4)}


def _different_numbers(dice: Dice) -> list[str]:
    """1 and 1.0 are one number, and a set that has both is refused."""
    pool = ("0", "1", "2", "3", "-1.5", "10000000000", str(dice.getrandbits(100)))
    return dice.some(pool, 1, 3)


def member(dice: Dice, name: str, depth: int) -> Value:
    """A member of a map: of the kind that paths expect there, or of any."""
    kind = MEMBER_KINDS.get(name)
    return value(dice, kind if dice.chance(0.8) and depth < DEPTH_MAX else None, depth)


def needle(dice: Dice, kind: str | None = None) -> Value:
    """Returns an operand for contains(). In binaries, DynamoDB Local only finds text."""
    found = value(dice, kind)
    return {"B": dice.choice(ASCII_BYTES)} if "B" in found else found
