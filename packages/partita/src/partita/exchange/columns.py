"""Which columns the items of a table need, and of which types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partita.exchange.tables import Item
from partita.exchange.values import KINDS, needs_quotes

INTEGER_DIGITS: Final = 18
"""Up to which a whole number is one of 64 bits, whatever its digits."""
FLOAT_DIGITS: Final = 15
"""Up to which a decimal is a float of 64 bits and back."""


class Columns:
    """Keys first, then the others in the order in which they came."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._kinds: dict[str, set[str]] = {key: set() for key in keys}
        self._quoted: set[str] = set()
        """Names with a string that needs quotes."""
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
        """Names, and the types that they have somewhere."""
        return {name: kinds for name, kinds in self._kinds.items() if kinds}

    def are_integers(self, name: str) -> bool:
        return name not in self._not_integers

    def are_floats(self, name: str) -> bool:
        return name not in self._not_floats

    def headers(self) -> dict[tuple[str, str], str]:
        """A header for each name and type: the bare name for strings that are what they look."""
        return {
            (name, kind): self._header(name, kind)
            for name, kinds in self.kinds().items()
            for kind in sorted(kinds, key=KINDS.index)
        }

    def _header(self, name: str, kind: str) -> str:
        is_plain = kind == "S" and self._kinds[name] == {"S"} and name not in self._quoted
        looks_typed = name.rpartition(":")[2] in KINDS and ":" in name
        return name if is_plain and not looks_typed else f"{name}:{kind}"
