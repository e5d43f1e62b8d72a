"""`partita migrate status`: how far a migration is, from the files of its folder alone.

Neither source nor target is contacted, and a process that works in the folder is not disturbed.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct, field

from partita_migrate.folder import ANALYSIS, INVENTORY, PLAN, Folder
from partita_migrate.model.files import CHOSEN
from partita_migrate.model.proofs import TEST
from partita_migrate.moving.loading.reports import LANES, Lane, TableLoad
from partita_migrate.moving.loading.reports import REPORT as LOAD_REPORT
from partita_migrate.moving.moves import BEGUN, LOADED, POSITION_FACT, Begun
from partita_migrate.moving.state import LOCK, MOVE, StoredFacts, state_path
from partita_migrate.moving.switching.closing import CLOSED, Closed
from partita_migrate.moving.switching.phases import (
    BACKWARD,
    FINISHED,
    FORWARD,
    PHASE,
    UNDER_WAY,
    UNTURNED,
    Phase,
    Turn,
    refusal,
)
from partita_migrate.moving.verify import REPORT, Verified

LISTED_MAX = 100
FILES = (
    ("plan", (INVENTORY, PLAN)),
    ("analyze", (ANALYSIS,)),
    ("model", (CHOSEN,)),
    ("test", (TEST,)),
)
"""The files that the stages before the move leave behind."""


class Stage(Struct, frozen=True, kw_only=True):
    name: str
    is_done: bool
    said: str = ""


class Reject(Struct, frozen=True, kw_only=True):
    table: str
    key: str
    reason: str


class Status(Struct, kw_only=True):
    folder: str
    source: str = ""
    endpoint: str = ""
    model: str = ""
    is_followed: bool = False
    holder: str = ""
    """The process that works in the folder at present."""
    stages: list[Stage] = field(default_factory=list)
    tables: list[TableLoad] = field(default_factory=list)
    position: int = 0
    rejected: int = 0
    rejects: list[Reject] = field(default_factory=list)
    verified: Verified | None = None
    phase: str = ""
    turns: list[Turn] = field(default_factory=list)
    under_way: str = ""
    """A cutover, rollback or finish that has begun: it is running, or was killed."""
    refusal: str = ""
    """Which side refuses writes although it is authoritative, and how to open it."""


def status(folder: Folder) -> Status:
    facts = StoredFacts(state_path(folder), LISTED_MAX)
    begun = facts.get(BEGUN, Begun)
    phase = facts.get(PHASE, Phase) or Phase(FORWARD if begun else "")
    verified = _verified(folder)
    current = Status(
        folder=str(folder.path),
        holder=_holder(folder.path / MOVE / LOCK),
        tables=_tables(facts),
        position=facts.get(POSITION_FACT, int) or 0,
        rejected=facts.reject_count,
        rejects=[Reject(table=table, key=key, reason=why) for table, key, why in facts.rejects],
        verified=verified,
        phase=phase.name,
        turns=phase.turns,
        under_way=facts.get(UNDER_WAY, str) or "",
        refusal=refusal(
            phase.name,
            str(folder.path),
            is_unturned=bool(facts.get(UNTURNED, bool)),
            is_target_closed=facts.get(CLOSED, Closed) is not None,
        ),
    )
    if begun is not None:
        current.source, current.endpoint, current.model = begun.source, begun.endpoint, begun.model
        current.is_followed = begun.is_followed
    is_loaded = bool(facts.get(LOADED, bool))
    current.stages = [
        *(
            Stage(name=name, is_done=all(folder.has(file) for file in files))
            for name, files in FILES
        ),
        Stage(name="load", is_done=is_loaded, said=_loaded(current.tables)),
        Stage(
            name="follow",
            is_done=is_loaded and current.is_followed,
            said=f"up to position {current.position}" if current.is_followed else "",
        ),
        Stage(
            name="verify",
            is_done=verified is not None and verified.is_right and is_loaded,
            said="" if verified is None else _compared(verified),
        ),
        Stage(name="cutover", is_done=phase.name in (BACKWARD, FINISHED)),
        Stage(name="finish", is_done=phase.name == FINISHED),
    ]
    return current


def _verified(folder: Folder) -> Verified | None:
    if not folder.has(REPORT):
        return None
    report = folder.read_json(REPORT, Verified)
    report.differences = report.differences[:LISTED_MAX]
    return report


def _tables(facts: StoredFacts) -> list[TableLoad]:
    """Returns the counts of the load; while rows are still being read, those of its lanes."""
    reported: list[TableLoad] = facts.get(LOAD_REPORT, list[TableLoad]) or []
    if reported:
        return reported
    tables: dict[str, TableLoad] = {}
    for lane in facts.get(LANES, list[Lane]) or []:
        table_load = tables.setdefault(lane.table, TableLoad(table=lane.table))
        table_load.rows += lane.rows
        table_load.expected += lane.expected
    return list(tables.values())


def _loaded(tables: list[TableLoad]) -> str:
    rows, expected = sum(table.rows for table in tables), sum(table.expected for table in tables)
    return f"{rows:,} of {max(rows, expected):,} rows" if tables else ""


def _compared(verified: Verified) -> str:
    kind = "a sample" if verified.is_sample else "all"
    left = verified.different - verified.repaired
    outcome = f"{left:,} difference{'' if left == 1 else 's'}" if left else "nothing differs"
    return f"{kind} at position {verified.position}: {outcome}"


def _holder(path: Path) -> str:
    """Returns who has the lock. It is not tried: for that moment, nobody else could take it."""
    try:
        holder = path.read_text(errors="replace").strip()
        os.kill(int(holder.removeprefix("process ")), 0)
    except PermissionError:
        return holder
    except (OSError, ValueError):
        return ""
    return holder
