"""Stage `rollback`: the source becomes authoritative again, with everything that the target was
told.

1. Follow back what was written at the target. Anything that cannot become a row is reported, and
   nothing has changed.
2. Make the target refuse writes, and follow back the rest. If something of it is in the way, the
   target takes writes again.
3. Write again the items that applications have written, as rows make them, with positions.
4. Open the fence and turn the switch, in one transaction. From here on the source is followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
import orjson
from msgspec import field

from partita.client import ClientError
from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.moving.move import POSITION_FACT, RESUME, Move
from partita_migrate.moving.switching.fences import fence_of
from partita_migrate.moving.switching.fences.source_fence import SOURCE, SourceFence
from partita_migrate.moving.switching.fences.source_session import open_session
from partita_migrate.moving.switching.move_phase import (
    BACKWARD,
    FORWARD,
    PHASE,
    UNTURNED,
    AuthorityChange,
    phase_of,
)
from partita_migrate.moving.switching.switch_step import (
    FENCED_AWAY_SECONDS_MAX,
    SwitchResult,
    open_fence,
    switching,
)
from partita_migrate.moving.switching.target_write_block import TargetWriteBlock
from partita_migrate.moving.target_access.item_positions import is_tombstone, stamp, tombstone
from partita_migrate.moving.target_access.target_client import batches
from partita_migrate.moving.target_access.target_items import item_digest, key_hash
from partita_migrate.moving.way_back.follow_back import BackFollower
from partita_migrate.moving.way_back.items_to_rows import UnmappableItem
from partita_migrate.moving.way_back.stream_markers import marker_key
from partita_migrate.row_store.state_store import MOVE
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

REPLACED = "replaced.jsonl"
SHOWN_MAX = 20
READ_AT_ONCE = 1000
ON_THE_WAY_SECONDS = 5.0

Touched = tuple[str, Item, Item | None]
"""A table, the key of an item, and what rows make of it where that is known."""


class RollbackResult(SwitchResult, kw_only=True, omit_defaults=True):
    """The outcome of a rollback."""

    rows: int = 0
    """Rows that were written in the source."""
    items: int = 0
    """Items that applications had written, and that follow their rows again."""
    replaced: int = 0
    """Those of them that differed from their rows, such as stale copies."""
    replaced_file: str = ""
    obstacles: list[str] = field(default_factory=list)


def rollback(
    folder: Folder,
    endpoint: str | None,
    *,
    region: str = "us-east-1",
    is_stopped: bool = False,
    is_dry_run: bool = False,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> RollbackResult:
    """Makes the source authoritative again. `is_stopped` says that nobody writes at the target, for
    a target that cannot be made to refuse writes."""
    with switching(
        "rollback",
        RollbackResult,
        folder,
        endpoint,
        region=region,
        is_dry_run=is_dry_run,
        ask=ask,
        needs_target=False,
    ) as (move, gate, report):
        if phase_of(move.state).name != BACKWARD:
            _undo_begun(move, fence_of(move.origin), report)
            return report
        move.target.check_tables(move.design.tables, must_be_empty=False)
        _Rollback(move, gate, report, progress).run(is_stopped=is_stopped, is_dry_run=is_dry_run)
    return report


def _undo_begun(move: Move, fence: SourceFence, report: RollbackResult) -> None:
    """Opens a fence that a kill left closed: before the switch of a cutover, or after that of a
    rollback.

    The target is not contacted; it may be gone.
    """
    turns = phase_of(move.state).turns
    if not (move.state.fact(UNTURNED, bool) or fence.is_closed):
        # Run again after it succeeded, it succeeds again.
        if fence.is_installed and fence.side == SOURCE and turns and turns[-1].step == "rollback":
            report.is_switched = True
            return
        raise PartitaError(
            "There is nothing to roll back: the source is authoritative, and there was no cutover."
        )
    if not report.is_dry_run:
        open_fence(move, fence)
        report.is_switched = True


class _Rollback:
    """The steps of a rollback."""

    def __init__(
        self, move: Move, gate: TargetWriteBlock, report: RollbackResult, progress: Progress
    ) -> None:
        self.move = move
        self.gate = gate
        self.report = report
        self.progress = progress
        self.fence = fence_of(move.origin)
        self.back = BackFollower(move, self.fence, progress)
        self.tables = {table.name: table for table in move.design.tables}

    def run(self, *, is_stopped: bool, is_dry_run: bool) -> None:
        """Carries out the numbered steps of the module's description."""
        self.progress("Following back", 0, 0)
        self.back.catch_up()
        self._check(self._lasting_obstacles(), is_dry_run=is_dry_run)
        if is_dry_run:
            return
        began = time.monotonic()
        try:
            self.progress("Closing the target", 0, 0)
            self.gate.close(is_forced=is_stopped)
            self.back.away_seconds_max = FENCED_AWAY_SECONDS_MAX
            self._drain()
            self._check(self.back.obstacles(), is_dry_run=False)
            self.progress("Writing items as their rows make them", 0, 0)
            position, resume = self._log_end()
            self._stamp(position)
            self._commit(position, resume, began)
        except BaseException:
            if phase_of(self.move.state).name == BACKWARD:
                self.gate.open()
            raise
        open_fence(self.move, self.fence)
        self.report.is_switched = True
        self.report.refused_seconds = round(time.monotonic() - began, 3)

    def _lasting_obstacles(self) -> list[str]:
        """Returns the obstacles without rows that only wait for others that are on their way.

        Applications go on writing, and the shards of a stream are read one after the other.
        """
        lasting = self.back.obstacles()
        end = time.monotonic() + ON_THE_WAY_SECONDS
        while lasting and not self.back.store.refused() and time.monotonic() < end:
            self.progress("Following back", self.back.changes, 0)
            self.back.catch_up()
            still = set(self.back.obstacles())
            lasting = [obstacle for obstacle in lasting if obstacle in still]
        return lasting

    def _check(self, obstacles: list[str], *, is_dry_run: bool) -> None:
        """Raises when something that was written at the target does not fit into the source."""
        self.report.obstacles = obstacles
        self.report.changes, self.report.rows = self.back.changes, self.back.written
        if self.report.obstacles and not is_dry_run:
            shown = "; ".join(self.report.obstacles[:SHOWN_MAX])
            more = len(self.report.obstacles) - SHOWN_MAX
            rest = f"; and {more} more" if more > 0 else ""
            raise PartitaError(
                f"Not everything that was written at the target fits into the source:"
                f" {shown}{rest}."
                " Correct it at the target. Nothing has changed: the target is authoritative."
            )

    def _drain(self) -> None:
        """Follows to the end: only the move can write now, so nothing comes after its markers."""
        self.back.catch_up()
        self.back.settle()

    def _log_end(self) -> tuple[int, str]:
        """Returns the end of the source's log, behind everything of the way back; nobody else
        writes there."""
        if self.move.origin.family == "postgresql":
            with self.move.origin.connect() as source:
                return self.move.log.end(source), ""
        with self.move.log.sessions() as sessions, sessions() as session:
            return session.position, session.resume

    # Items that applications wrote become items that rows make.

    def _stamp(self, position: int) -> None:
        """Writes again what applications have written, as rows make it, and keeps what that
        replaces."""
        replaced: list[bytes] = []
        writes = []
        touched = [
            touch
            for touch in self.back.store.touched()
            if touch[1] != marker_key(self.tables[touch[0]])
        ]
        self.report.items = len(touched)
        for (name, key, item), existing in zip(touched, self._read_items(touched), strict=True):
            table = self.tables[name]
            made = item if item is not None else self._item_of_rows(name, existing)
            if made is None or is_tombstone(made):
                made = tombstone(key, position)
            if existing is not None and not is_tombstone(existing):
                if is_tombstone(made) or item_digest(existing) != item_digest(made):
                    replaced.append(_line(name, existing))
            writes.append((table, stamp(made, position)))
        self.report.replaced = len(replaced)
        if replaced:
            # Saved before they are replaced, so that nothing is lost.
            path = f"{MOVE}/{REPLACED}"
            replaced_path = self.move.folder.path / path
            before = replaced_path.read_bytes() if replaced_path.is_file() else b""
            self.move.folder.write_bytes(path, before + b"".join(replaced))
            self.report.replaced_file = path
        # Unconditional writes: nobody but the move can write now.
        encoded = ((table.name, orjson.dumps(item)) for table, item in writes)
        self.move.target.put_all(batches(encoded))

    def _read_items(self, touched: list[Touched]) -> Iterator[Item | None]:
        """Reads the items as they are now, some at a time; writes are refused meanwhile."""
        for start in range(0, len(touched), READ_AT_ONCE):
            keys = [(name, key) for name, key, _ in touched[start : start + READ_AT_ONCE]]
            try:
                yield from self.move.target.get_all(keys)
            except ClientError as error:
                raise PartitaError(f"{self.move.target.endpoint} refused: {error}") from error

    def _item_of_rows(self, name: str, existing: Item | None) -> Item | None:
        """Returns what rows make with the key of an existing item; None without one."""
        if existing is None or is_tombstone(existing):
            return None
        table = self.tables[name]
        try:
            number = self.back.rows.entity_of(table, existing)
        except UnmappableItem:
            return None
        entity = self.move.entities[number][1]
        key = self.back.rows.key_in(entity, existing)
        stored = self.move.state.find(entity.source, key) if key is not None else None
        made = self.move.items.item_of(number, stored.row) if stored is not None else None
        if made is None or key_hash(table, made) != key_hash(table, existing):
            return None
        return made

    def _commit(self, position: int, resume: str, began: float) -> None:
        """Records that the source is authoritative, and where following goes on."""
        state = self.move.state
        phase = phase_of(state)
        phase.name = FORWARD
        phase.turns.append(
            AuthorityChange(
                step="rollback",
                at=time.time(),
                refused_seconds=round(time.monotonic() - began, 3),
                position=position,
                changes=self.back.changes,
                rows=self.back.written,
            )
        )
        with open_session(self.move.origin) as session:
            self.back.writer.advance_sequences(session)
        with state.transaction():
            self.back.store.forget()
            state.set_fact(POSITION_FACT, position)
            if resume:
                state.set_fact(RESUME, resume)
            # The fence is still closed; after a kill, the next command has to open it.
            state.set_fact(UNTURNED, True)
            state.set_fact(PHASE, phase)


def _line(table: str, item: Item) -> bytes:
    return msgspec.json.encode({"table": table, "item": item}) + b"\n"
