"""Document paths, as tuples of names and list indexes, by the kind of value found at their end."""

from __future__ import annotations

from collections.abc import Collection

from ..notation import Value
from .dice import Dice
from .tables import KIND_OF, Table, attribute_value
from .values import MEMBER_KINDS, value

Path = tuple[str | int, ...]

NESTED: dict[str, tuple[Path, ...]] = {
    "S": (("m", "a"), ("m", "name"), ("l", 0), ("m", "m", "a"), ("l", 1, "a")),
    "N": (("m", "q"), ("l", 0), ("l", 1), ("m", "l", 0), ("m", "m", "q"), ("x", "q")),
    "B": (("m", "b"), ("l", 2)),
    "SS": (("m", "ss"), ("m", "m", "ss")),
    "L": (("m", "l"), ("l", 0), ("m", "m", "l")),
    "M": (("m", "m"), ("l", 0)),
}
ANYWHERE: tuple[Path, ...] = (
    ("x",),
    ("a.b",),
    ("with space",),
    ("absent",),
    ("m", "a.b"),
    ("m", "absent"),
    ("l", 7),
    ("x", 0),
    ("x", "a"),
    ("l", 1, "q"),
    ("t", "a"),
    ("m", "l", 1, "a"),
)
INTO_KEYS: tuple[Path, ...] = (("pk", "a"), ("sk", 0))
"""These paths are refused."""


def path(dice: Dice, table: Table, kind: str | None, avoid: Collection[str] = ()) -> Path:
    """A path that probably leads to a value of the kind, and begins with no name to avoid."""
    options: list[Path] = [
        (name,) for name, usual in _top_kinds(table).items() if kind in (usual, None)
    ]
    nested = [one for usual, some in NESTED.items() if kind in (usual, None) for one in some]
    if nested and dice.chance(0.35):
        options = nested
    if dice.chance(0.1):
        options = list(ANYWHERE)
    if dice.chance(0.002):
        options = list(INTO_KEYS)
    options = [one for one in options if one[0] not in avoid]
    return dice.choice(options or [("x",)])


def _top_kinds(table: Table) -> dict[str, str]:
    return KIND_OF | table.key_kinds


def kind_at(table: Table, path: Path) -> str | None:
    """The kind of value that is usual there; of an index of a list, none is."""
    last = path[-1]
    if len(path) == 1:
        return _top_kinds(table).get(str(last))
    return MEMBER_KINDS.get(last) if isinstance(last, str) else None


def value_at(dice: Dice, table: Table, path: Path) -> Value:
    """A value that may well be found there."""
    if len(path) == 1:
        return attribute_value(dice, table, str(path[0]))
    return value(dice, kind_at(table, path), depth=len(path) - 1)
