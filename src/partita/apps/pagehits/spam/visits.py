"""What the filter reads of a visit: attributes that the processor's events have."""

from __future__ import annotations

from typing import Protocol


class Visit(Protocol):
    @property
    def brand(self) -> str: ...
    @property
    def asset_id(self) -> int: ...
    @property
    def section_id(self) -> int: ...
    @property
    def paid_type(self) -> str: ...
    @property
    def resource_type(self) -> str | None: ...
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

    @property
    def time(self) -> float:
        """In seconds since 1970."""
        ...
