"""Stage `rollback`: the source becomes authoritative again, with all that the target was told.

1. What was written at the target is followed back as far as it goes. What cannot be a row is said,
   and nothing has changed.
2. The target refuses writes, and the rest is followed back. Should something of that be in the way,
   the target takes writes again.
3. Items that applications have written are written again as rows make them, with positions.
4. The fence opens and the switch is turned, in one transaction. From here on the source is
   followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
import orjson
from msgspec import field

from partita.client import ClientError
from partita.database.item.values import Item
from partita.errors import PartitaError
from partita_migrate.folder import Folder
from partita_migrate.moving.back.following import BackFollower
from partita_migrate.moving.back.markers import marker_key
from partita_migrate.moving.back.rows import CannotReturn
from partita_migrate.moving.fences import fence_of
from partita_migrate.moving.fences.fence import SOURCE, Fence
from partita_migrate.moving.fences.session import open_session
from partita_migrate.moving.items import item_digest, key_hash
from partita_migrate.moving.moves import (
    POSITION_FACT,
    RESUME,
    Move,
)
from partita_migrate.moving.positions import (
    is_tombstone,
    stamped,
    tombstone,
)
from partita_migrate.moving.state import MOVE
from partita_migrate.moving.switching.closing import TargetGate
from partita_migrate.moving.switching.phases import (
    BACKWARD,
    FORWARD,
    PHASE,
    UNTURNED,
    Turn,
    phase_of,
)
from partita_migrate.moving.switching.steps import (
    FENCED_AWAY_SECONDS_MAX,
    Switched,
    open_fence,
    switching,
)
from partita_migrate.moving.target import batches
from partita_migrate.progress import Progress, silent

REPLACED = "replaced.jsonl"
SHOWN_MAX = 20
READ_AT_ONCE = 1000
ON_THE_WAY_SECONDS = 5.0

Touched = tuple[str, Item, Item | None]
"""The table and the key of an item, and what rows make of it where that is known."""


class RolledBack(Switched, kw_only=True, omit_defaults=True):
    rows: int = 0
    """That were written in the source."""
    items: int = 0
    """That applications had written, and that follow their rows again."""
    replaced: int = 0
    """Of those, the ones that said something else than their rows: copies that were not kept."""
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
) -> RolledBack:
    """`is_stopped`: nobody writes at the target, where it cannot be made to refuse."""
    with switching(
        "rollback",
        RolledBack,
        folder,
        endpoint,
        region=region,
        is_dry_run=is_dry_run,
        ask=ask,
        needs_target=False,
    ) as (move, gate, found):
        if phase_of(move.state).name != BACKWARD:
            _undo_begun(move, fence_of(move.origin), found)
            return found
        move.target.check_tables(move.design.tables, must_be_empty=False)
        _Rollback(move, gate, found, progress).run(is_stopped=is_stopped, is_dry_run=is_dry_run)
    return found


def _undo_begun(move: Move, fence: Fence, found: RolledBack) -> None:
    """A cutover that was killed before its switch, or a rollback behind it, left the fence closed.
    The target is not asked: it may be gone."""
    turns = phase_of(move.state).turns
    if not (move.state.fact(UNTURNED, bool) or fence.is_closed):
        # Run again after it was done, it says so.
        if fence.is_installed and fence.side == SOURCE and turns and turns[-1].step == "rollback":
            found.is_switched = True
            return
        raise PartitaError(
            "There was no cutover, and the source is authoritative; there is nothing to roll back."
        )
    if not found.is_dry_run:
        open_fence(move, fence)
        found.is_switched = True


class _Rollback:
    def __init__(self, move: Move, gate: TargetGate, found: RolledBack, progress: Progress) -> None:
        self.move = move
        self.gate = gate
        self.found = found
        self.progress = progress
        self.fence = fence_of(move.origin)
        self.back = BackFollower(move, self.fence, progress)
        self.tables = {table.name: table for table in move.design.tables}

    def run(self, *, is_stopped: bool, is_dry_run: bool) -> None:
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
        self.found.is_switched = True
        self.found.refused_seconds = round(time.monotonic() - began, 3)

    def _lasting_obstacles(self) -> list[str]:
        """Without rows that wait for others which are on their way: applications go on writing, and
        the shards of a stream are read one after the other."""
        lasting = self.back.obstacles()
        end = time.monotonic() + ON_THE_WAY_SECONDS
        while lasting and not self.back.store.refused() and time.monotonic() < end:
            self.progress("Following back", self.back.changes, 0)
            self.back.catch_up()
            still = set(self.back.obstacles())
            lasting = [one for one in lasting if one in still]
        return lasting

    def _check(self, obstacles: list[str], *, is_dry_run: bool) -> None:
        self.found.obstacles = obstacles
        self.found.changes, self.found.rows = self.back.changes, self.back.written
        if self.found.obstacles and not is_dry_run:
            shown = "; ".join(self.found.obstacles[:SHOWN_MAX])
            more = len(self.found.obstacles) - SHOWN_MAX
            rest = f"; and {more} more" if more > 0 else ""
            raise PartitaError(
                f"Not all that was written at the target can be in the source: {shown}{rest}."
                " Correct it at the target. Nothing has changed: the target is authoritative."
            )

    def _drain(self) -> None:
        """Nobody but the move can write now: what is in front of its markers is all there is."""
        self.back.catch_up()
        self.back.settle()

    def _log_end(self) -> tuple[int, str]:
        """Where the source's log is while nobody writes there: behind all of the way back."""
        if self.move.origin.family == "postgresql":
            with self.move.origin.connect() as source:
                return self.move.log.end(source), ""
        with self.move.log.sessions() as sessions, sessions() as session:
            return session.position, session.resume

    # Items of applications become items of rows.

    def _stamp(self, position: int) -> None:
        replaced: list[bytes] = []
        writes = []
        touched = [
            one for one in self.back.store.touched() if one[1] != marker_key(self.tables[one[0]])
        ]
        self.found.items = len(touched)
        for (name, key, item), there in zip(touched, self._present(touched), strict=True):
            table = self.tables[name]
            made = item if item is not None else self._made(name, there)
            if made is None or is_tombstone(made):
                made = tombstone(key, position)
            if there is not None and not is_tombstone(there):
                if is_tombstone(made) or item_digest(there) != item_digest(made):
                    replaced.append(_line(name, there))
            writes.append((table, stamped(made, position)))
        self.found.replaced = len(replaced)
        if replaced:
            # Before they are replaced: what stood there is not lost.
            path = f"{MOVE}/{REPLACED}"
            kept = self.move.folder.path / path
            before = kept.read_bytes() if kept.is_file() else b""
            self.move.folder.write_bytes(path, before + b"".join(replaced))
            self.found.replaced_file = path
        encoded = ((table.name, orjson.dumps(item)) for table, item in writes)
        self.move.target.put_all(batches(encoded))

    def _present(self, touched: list[Touched]) -> Iterator[Item | None]:
        """As they are now, some at a time: writes are refused meanwhile."""
        for start in range(0, len(touched), READ_AT_ONCE):
            keys = [(name, key) for name, key, _ in touched[start : start + READ_AT_ONCE]]
            try:
                yield from self.move.target.get_all(keys)
            except ClientError as error:
                raise PartitaError(f"{self.move.target.endpoint} refused: {error}") from error

    def _made(self, name: str, there: Item | None) -> Item | None:
        """What rows make with the key of an item that is there."""
        if there is None or is_tombstone(there):
            return None
        table = self.tables[name]
        try:
            number = self.back.rows.entity_of(table, there)
        except CannotReturn:
            return None
        entity = self.move.homes[number][1]
        key = self.back.rows.key_in(entity, there)
        kept = self.move.state.find(entity.source, key) if key is not None else None
        made = self.move.items.made(number, kept.row) if kept is not None else None
        if made is None or key_hash(table, made) != key_hash(table, there):
            return None
        return made

    def _commit(self, position: int, resume: str, began: float) -> None:
        state = self.move.state
        phase = phase_of(state)
        phase.name = FORWARD
        phase.turns.append(
            Turn(
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
            # The fence is still closed: whoever is killed here has to open it.
            state.set_fact(UNTURNED, True)
            state.set_fact(PHASE, phase)


def _line(table: str, item: Item) -> bytes:
    return msgspec.json.encode({"table": table, "item": item}) + b"\n"
