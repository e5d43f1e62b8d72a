"""How a stage tells how far it is, to whoever watches."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and of how much."""


def silent(description: str, done: int, total: int) -> None:
    """For those who do not watch."""
