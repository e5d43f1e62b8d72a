"""What the server cannot do yet, and the plan asks of it."""

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
    """One for each purpose; where nobody writes, no changes have to be followed."""
    found = []
    for purpose, what in NEEDED_FOR.items():
        missing = [check for check in checks if check.purpose == purpose and not check.is_ready]
        if not missing or (purpose == "changes" and not goals.writes_continue):
            continue
        settings = ", ".join(f"{one.setting} is {one.found}" for one in missing)
        found.append(
            Difficulty(
                kind="server",
                severity="note" if purpose == "statistics" else "care",
                what=f"As it is set up, the server cannot {what}: {settings}.",
                strategy=" ".join(one.change for one in missing),
            )
        )
    return found
