"""What the filter reads of a visit: what is counted of it, and who it was."""

from __future__ import annotations

from typing import Protocol

from partita.apps.pagehits.windows import Hit


class Visit(Hit, Protocol):
    @property
    def visitor(self) -> str:
        """Empty when it was not told."""
        ...

    @property
    def agent(self) -> str: ...
    @property
    def source(self) -> str:
        """The address that it came from; empty when that is not known."""
        ...
