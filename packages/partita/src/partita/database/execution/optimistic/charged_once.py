"""Charges of a request that may be decided more than once: each is made only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ChargedOnce:
    """The results of a request's charges, in the order in which its runs ask for them.

    A later run asks for the same charges in the same order, and gets the results of the first.
    """

    __slots__ = ("_position", "_results")

    def __init__(self) -> None:
        self._results: list[Any] = []
        self._position = 0

    def begin_run(self) -> None:
        self._position = 0

    def once(self, charge: Callable[[], Any]) -> Any:
        """Charges now, or returns what this charge came to in an earlier run."""
        if self._position == len(self._results):
            self._results.append(charge())
        self._position += 1
        return self._results[self._position - 1]
