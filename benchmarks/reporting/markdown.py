"""The parts of a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def origin(machine: dict[str, Any]) -> str:
    """Returns the machine and the date, for a section that was measured in a separate run."""
    return (
        f"{machine['date']}, commit {machine['commit']}, {machine['cores']} cores; "
        f"load {machine['load_at_start']:.2f} when it began."
    )
