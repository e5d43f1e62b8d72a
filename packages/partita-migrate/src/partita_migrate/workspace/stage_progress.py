"""The progress of a stage, reported to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is in total."""


def silent(description: str, done: int, total: int) -> None:
    """Reports nothing."""
