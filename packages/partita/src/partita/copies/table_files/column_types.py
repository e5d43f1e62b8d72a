"""The columns that a CSV or Parquet file needs for the items of a table, and their types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partita.copies.table_files.plain_values import KINDS, needs_quotes
from partita.copies.table_files.table_reading import Item

INTEGER_DIGITS: Final = 18
"""Integers of at most this many digits always fit into 64 bits."""
FLOAT_DIGITS: Final = 15
"""Decimals of at most this many digits survive a conversion to a 64-bit float and back."""


class ColumnTypes:
    """The attribute names of all items, with their types: keys first, then in order of appearance.

    An attribute has several types when items disagree; CSV then writes a column for each type.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._kinds: dict[str, set[str]] = {key: set() for key in keys}
        self._quoted: set[str] = set()
        """Attributes with a string that would be misread without quotes."""
        self._not_integers: set[str] = set()
        self._not_floats: set[str] = set()

    def note(self, item: Item) -> None:
        for name, value in item.items():
            ((kind, content),) = value.items()
            self._kinds.setdefault(name, set()).add(kind)
            if kind == "S" and needs_quotes(content):
                self._quoted.add(name)
            elif kind == "N":
                self._note_number(name, content)

    def _note_number(self, name: str, digits: str) -> None:
        unsigned = digits.lstrip("-")
        if not unsigned.isdigit() or len(unsigned) > INTEGER_DIGITS:
            self._not_integers.add(name)
        if len(unsigned) > FLOAT_DIGITS or "E" in digits.upper():
            self._not_floats.add(name)

    def kinds(self) -> dict[str, set[str]]:
        """The types of each attribute that some item has."""
        return {name: kinds for name, kinds in self._kinds.items() if kinds}

    def are_integers(self, name: str) -> bool:
        return name not in self._not_integers

    def are_floats(self, name: str) -> bool:
        return name not in self._not_floats

    def headers(self) -> dict[tuple[str, str], str]:
        """The CSV header for each name and type, such as `price:N`.

        Strings that need no quotes have the bare name as their header.
        """
        return {
            (name, kind): self._header(name, kind)
            for name, kinds in self.kinds().items()
            for kind in sorted(kinds, key=KINDS.index)
        }

    def _header(self, name: str, kind: str) -> str:
        is_plain = kind == "S" and self._kinds[name] == {"S"} and name not in self._quoted
        looks_typed = name.rpartition(":")[2] in KINDS and ":" in name
        return name if is_plain and not looks_typed else f"{name}:{kind}"
