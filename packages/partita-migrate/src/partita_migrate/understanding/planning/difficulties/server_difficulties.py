"""Finds what the plan needs and the server cannot do yet."""

from __future__ import annotations

from collections.abc import Iterable

from partita_migrate.understanding.planning.difficulties.difficulty import Difficulty
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.planning.readiness.readiness_check import Purpose, ServerCheck

NEEDED_FOR: dict[Purpose, str] = {
    "backup": "take the backup",
    "changes": "follow the writes that go on",
    "statistics": "mine access patterns",
}


def find_unready(checks: Iterable[ServerCheck], goals: Goals) -> list[Difficulty]:
    """Returns a difficulty for each purpose. If nobody writes to the source, no changes have to be
    followed."""
    difficulties = []
    for purpose, what in NEEDED_FOR.items():
        missing = [check for check in checks if check.purpose == purpose and not check.is_ready]
        if not missing or (purpose == "changes" and not goals.writes_continue):
            continue
        settings = ", ".join(f"{check.setting} is {check.found}" for check in missing)
        difficulties.append(
            Difficulty(
                kind="server",
                # Without statistics, access patterns can be mined from logs or written by hand.
                severity="note" if purpose == "statistics" else "care",
                what=f"With its current settings, the server cannot {what}: {settings}.",
                strategy=" ".join(check.change for check in missing),
            )
        )
    return difficulties
