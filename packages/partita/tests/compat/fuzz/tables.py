"""The tables that are fuzzed, and items for them.

Between them they have keys of all three types, with and without a sort key, local and global
indexes of all three projections, and indexes that share attributes with the table's key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..notation import Index, Step, Value, create, index
from .canonical import in_canonical_form
from .dice import Dice
from .values import value

Item = dict[str, Value]

KEY_POOLS: dict[str, tuple[str, ...]] = {
    "S": ("a", "b", "ab", "é", "a b", "\uff5e", "😀"),
    "N": ("1", "2", "-3.5", "10", "12345678901234567890123456789012345678", "1e-5", "1.0", "1e1"),
    "B": ("AQ==", "AQI=", "/w==", "YQ=="),
}
"""Few keys, so that requests meet items."""

KIND_OF: dict[str, str] = {
    "q": "N",
    "n": "N",
    "s": "S",
    "t": "S",
    "name": "S",
    "b": "B",
    "ss": "SS",
    "ns": "NS",
    "bs": "BS",
    "l": "L",
    "m": "M",
    "yes": "BOOL",
    "nil": "NULL",
}
"""Attributes beside the key, of which most values have this kind. `name` is a reserved word."""

ATTRIBUTES = (*KIND_OF, "x", "a.b", "with space")
WRONG_KIND = 0.08
WRONG_INDEX_KIND = 0.01


@dataclass(frozen=True)
class Table:
    name: str
    key: tuple[str, ...]
    local: tuple[Index, ...] = ()
    across: tuple[Index, ...] = ()

    @property
    def create(self) -> Step:
        return create(self.name, *self.key, local=self.local, across=self.across)

    @property
    def indexes(self) -> tuple[Index, ...]:
        return (*self.local, *self.across)

    @property
    def key_kinds(self) -> dict[str, str]:
        return kinds(self.key)

    @property
    def index_kinds(self) -> dict[str, str]:
        """The attributes that are keys of indexes, and not of the table."""
        used = {name: kind for one in self.indexes for name, kind in kinds(one.key).items()}
        return {name: kind for name, kind in used.items() if name not in self.key_kinds}


def kinds(attributes: Sequence[str]) -> dict[str, str]:
    """Parses "name:type" texts to a dict of types."""
    return dict(attribute.split(":") for attribute in attributes)


TABLES = (
    Table(
        "FuzzHash",
        ("pk:S",),
        across=(
            index("byN", "n:N"),
            index("bySQ", "s:S", "q:N", projection="KEYS_ONLY"),
            index("byB", "b:B", projection=["l", "m", "t"]),
        ),
    ),
    Table(
        "FuzzPairs",
        ("pk:S", "sk:N"),
        local=(
            index("localN", "pk:S", "n:N"),
            index("localS", "pk:S", "s:S", projection="KEYS_ONLY"),
            index("localB", "pk:S", "b:B", projection=["q", "m", "ss"]),
        ),
        across=(
            index("bySN", "s:S", "n:N"),
            index("byBkeys", "b:B", "sk:N", projection="KEYS_ONLY"),
        ),
    ),
    Table(
        "FuzzBytes",
        ("pk:B", "sk:S"),
        local=(index("localN", "pk:B", "n:N", projection=["t", "l"]),),
        across=(index("bySort", "sk:S", "pk:B", projection=["n", "x"]),),
    ),
    Table("FuzzNumbers", ("pk:N", "sk:B")),
)


def key_value(dice: Dice, kind: str) -> Value:
    return {kind: dice.choice(KEY_POOLS[kind])}


def key(dice: Dice, table: Table) -> Item:
    return {name: key_value(dice, kind) for name, kind in table.key_kinds.items()}


def place(table: Table, item: Item) -> str:
    """A name for the place of an item, which is the same for all ways to write its key."""
    return f"{table.name} {[in_canonical_form(item[name]) for name in table.key_kinds]}"


def attribute_value(dice: Dice, table: Table, name: str) -> Value:
    """A value that the attribute may well have."""
    kind = table.index_kinds.get(name)
    if kind is not None and not dice.chance(WRONG_INDEX_KIND):
        return key_value(dice, kind)
    if name in table.key_kinds:
        return key_value(dice, table.key_kinds[name])
    return value(dice, None if dice.chance(WRONG_KIND) else KIND_OF.get(name))


def item(dice: Dice, table: Table) -> Item:
    names: list[Any] = dice.some(ATTRIBUTES, 0, 9)
    return key(dice, table) | {name: attribute_value(dice, table, name) for name in names}
