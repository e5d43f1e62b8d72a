"""`partita migrate status`: how far a migration is, from the files of its folder alone.

Neither source nor target is contacted, and a process that works in the folder is not disturbed.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct, field

from partita_migrate.model.model_files import CHOSEN
from partita_migrate.model.proofs import TEST
from partita_migrate.moving.loading.load_report import LANES, ReadLane, TableLoad
from partita_migrate.moving.loading.load_report import REPORT as LOAD_REPORT
from partita_migrate.moving.move import BEGUN, LOADED, POSITION_FACT, MoveOptions
from partita_migrate.moving.processes.move_lock import LOCK
from partita_migrate.moving.switching.move_phase import (
    BACKWARD,
    FINISHED,
    FORWARD,
    PHASE,
    UNDER_WAY,
    UNTURNED,
    AuthorityChange,
    MovePhase,
    refusal,
)
from partita_migrate.moving.switching.target_write_block import CLOSED, SavedPolicies
from partita_migrate.moving.verifying.verify import REPORT, VerifyReport
from partita_migrate.row_store.state_store import MOVE, StoredFacts, state_path
from partita_migrate.workspace.migration_folder import ANALYSIS, INVENTORY, PLAN, Folder

LISTED_MAX = 100
FILES = (
    ("plan", (INVENTORY, PLAN)),
    ("analyze", (ANALYSIS,)),
    ("model", (CHOSEN,)),
    ("test", (TEST,)),
)
"""The files that the stages before the move leave behind."""


class StageStatus(Struct, frozen=True, kw_only=True):
    """One stage: whether it is done, and a few words on how far it is."""

    name: str
    is_done: bool
    said: str = ""


class ListedReject(Struct, frozen=True, kw_only=True):
    """A reject, without its row."""

    table: str
    key: str
    reason: str


class MoveStatus(Struct, kw_only=True):
    """Everything that `status` shows."""

    folder: str
    source: str = ""
    endpoint: str = ""
    model: str = ""
    is_followed: bool = False
    holder: str = ""
    """The process that works in the folder at present."""
    stages: list[StageStatus] = field(default_factory=list)
    tables: list[TableLoad] = field(default_factory=list)
    position: int = 0
    rejected: int = 0
    rejects: list[ListedReject] = field(default_factory=list)
    verified: VerifyReport | None = None
    phase: str = ""
    turns: list[AuthorityChange] = field(default_factory=list)
    under_way: str = ""
    """A cutover, rollback or finish that has begun: it is running, or was killed."""
    refusal: str = ""
    """Which side refuses writes although it is authoritative, and how to open it."""


def status(folder: Folder) -> MoveStatus:
    """Returns how far the migration in a folder is."""
    facts = StoredFacts(state_path(folder), LISTED_MAX)
    begun = facts.get(BEGUN, MoveOptions)
    phase = facts.get(PHASE, MovePhase) or MovePhase(FORWARD if begun else "")
    verified = _read_verification(folder)
    current = MoveStatus(
        folder=str(folder.path),
        holder=_holder(folder.path / MOVE / LOCK),
        tables=_tables(facts),
        position=facts.get(POSITION_FACT, int) or 0,
        rejected=facts.reject_count,
        rejects=[
            ListedReject(table=table, key=key, reason=why) for table, key, why in facts.rejects
        ],
        verified=verified,
        phase=phase.name,
        turns=phase.turns,
        under_way=facts.get(UNDER_WAY, str) or "",
        refusal=refusal(
            phase.name,
            str(folder.path),
            is_unturned=bool(facts.get(UNTURNED, bool)),
            is_target_closed=facts.get(CLOSED, SavedPolicies) is not None,
        ),
    )
    if begun is not None:
        current.source, current.endpoint, current.model = begun.source, begun.endpoint, begun.model
        current.is_followed = begun.is_followed
    is_loaded = bool(facts.get(LOADED, bool))
    current.stages = [
        *(
            StageStatus(name=name, is_done=all(folder.has(file) for file in files))
            for name, files in FILES
        ),
        StageStatus(name="load", is_done=is_loaded, said=_describe_load(current.tables)),
        StageStatus(
            name="follow",
            is_done=is_loaded and current.is_followed,
            said=f"up to position {current.position}" if current.is_followed else "",
        ),
        StageStatus(
            name="verify",
            is_done=verified is not None and verified.is_right and is_loaded,
            said="" if verified is None else _describe_verification(verified),
        ),
        StageStatus(name="cutover", is_done=phase.name in (BACKWARD, FINISHED)),
        StageStatus(name="finish", is_done=phase.name == FINISHED),
    ]
    return current


def _read_verification(folder: Folder) -> VerifyReport | None:
    if not folder.has(REPORT):
        return None
    report = folder.read_json(REPORT, VerifyReport)
    report.differences = report.differences[:LISTED_MAX]
    return report


def _tables(facts: StoredFacts) -> list[TableLoad]:
    """Returns the counts of the load; while rows are still being read, those of its lanes."""
    reported: list[TableLoad] = facts.get(LOAD_REPORT, list[TableLoad]) or []
    if reported:
        return reported
    tables: dict[str, TableLoad] = {}
    for lane in facts.get(LANES, list[ReadLane]) or []:
        table_load = tables.setdefault(lane.table, TableLoad(table=lane.table))
        table_load.rows += lane.rows
        table_load.expected += lane.expected
    return list(tables.values())


def _describe_load(tables: list[TableLoad]) -> str:
    rows, expected = sum(table.rows for table in tables), sum(table.expected for table in tables)
    return f"{rows:,} of {max(rows, expected):,} rows" if tables else ""


def _describe_verification(verified: VerifyReport) -> str:
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
