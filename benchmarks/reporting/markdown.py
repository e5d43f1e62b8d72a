"""The parts of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def origin(machine: dict[str, Any]) -> str:
    """Where and when, for a section that was measured in a run of its own."""
    return (
        f"{machine['date']}, commit {machine['commit']}, {machine['cores']} cores; "
        f"load {machine['load_at_start']:.2f} when it began."
    )
