"""Follows backwards: carries what was written at the target since the cutover into the source.

A round reads the next records of all streams and writes the rows that they ask for in one marked
transaction of the source. It then stores, in one transaction of the state store, the source's rows
as they are now and how far the streams were read. After a kill in between, the same records ask for
the same rows again.
"""

from __future__ import annotations

import time
from threading import Event

from msgspec import Struct, field

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.moving.following.change_applier import Applier
from partita_migrate.moving.following.follow import FollowResult
from partita_migrate.moving.following.move_samples import MoveSampler
from partita_migrate.moving.loading.load import READ_UNTIL
from partita_migrate.moving.logs.source_changes import RowChange, SourceTransaction
from partita_migrate.moving.move import Move
from partita_migrate.moving.switching.fences import fence_of
from partita_migrate.moving.switching.fences.source_fence import SourceFence
from partita_migrate.moving.switching.fences.source_session import (
    SourceSession,
    SourceUnavailable,
    open_session,
)
from partita_migrate.moving.switching.move_phase import check_unfinished
from partita_migrate.moving.target_access.item_positions import key_of, position_of
from partita_migrate.moving.way_back.items_to_rows import DesiredRow, RowMapper, UnmappableItem
from partita_migrate.moving.way_back.kinesis_changes import open_stream
from partita_migrate.moving.way_back.row_writer import RowWriter
from partita_migrate.moving.way_back.stream_markers import SEEN_SECONDS_MAX, mark_of, place_marker
from partita_migrate.moving.way_back.table_streams import (
    ItemChange,
    ItemChangeStream,
    StreamCheckpoint,
)
from partita_migrate.moving.way_back.way_back_store import WayBackStore, key_bytes
from partita_migrate.understanding.sources.source_connection import SourceError
from partita_migrate.workspace.stage_progress import Progress, silent

PLACES, SINCE = "back_places", "back_since"
IDLE_SECONDS = 0.1
KEPT_SECONDS = 60.0
"""How often the stream positions are stored while nothing is written."""
QUIET_ROUNDS = 3
"""Rounds without a record after which a stream that nobody writes to counts as read to its end."""
TRIES = 20
RETRY_SECONDS = 0.5
AWAY_SECONDS_MAX = 300.0


class WayBackStart(Struct):
    """The point from which stream records come from applications and no longer from the move
    itself."""

    seconds: dict[str, float] = field(default_factory=dict)
    """By table, the second of the target's clock up to which the move's own writes were not
    recorded."""
    written: set[str] = field(default_factory=set)
    """The move's own writes after that, up to the cutover, in the form of `note_of`."""


def note_of(table: str, key: bytes, position: int | None) -> str:
    """Identifies one write of the move by table, key and position."""
    return f"{table} {key.decode()} {position}"


def follow_back(
    move: Move, stop: Event, *, is_once: bool, is_dry_run: bool, progress: Progress
) -> FollowResult:
    """Runs `follow` after a cutover."""
    began = time.monotonic()
    follower = BackFollower(move, fence_of(move.origin), progress)
    if is_once and not is_dry_run:
        follower.catch_up()
    elif not is_dry_run:
        follower.run(stop)
    return FollowResult(
        source=str(move.origin.address),
        endpoint=move.target.endpoint,
        changes=follower.changes,
        writes=follower.written,
        transactions=follower.rounds,
        seconds=round(time.monotonic() - began, 3),
        position=move.position,
        lag_seconds=round(follower.lag_seconds, 3),
        lag_bytes=None,
        rejects=len(follower.obstacles()),
        is_backwards=True,
    )


def catch_up_back(move: Move) -> None:
    """Carries over everything that is in the streams by now."""
    BackFollower(move, fence_of(move.origin)).catch_up()


class BackFollower:
    """Follows the target's streams and writes into the source."""

    def __init__(self, move: Move, fence: SourceFence, progress: Progress = silent) -> None:
        check_unfinished(move.state)
        self.move = move
        self.fence = fence
        self.progress = progress
        self.rows = RowMapper(move)
        self.writer = RowWriter(move.origin, self.rows)
        self.store = WayBackStore(move.state)
        self.applier = Applier(move, move.state.fact(READ_UNTIL, int) or 0)
        self.since = move.state.fact(SINCE, WayBackStart) or WayBackStart()
        self.tables = {table.name: table for table in move.design.tables}
        self.changes = 0
        self.rounds = 0
        self.written = 0
        self.marks: set[str] = set()
        """The texts of the markers that have been read."""
        self.lag_seconds = 0.0
        self.away_seconds_max = AWAY_SECONDS_MAX
        self._kept_at = time.monotonic()
        self._streams = self._open_streams()

    def _open_streams(self) -> list[ItemChangeStream]:
        places = self.move.state.fact(PLACES, dict[str, StreamCheckpoint]) or {}
        target, tables = self.move.target, self.tables
        return [
            open_stream(target, tables[name], checkpoint) for name, checkpoint in places.items()
        ]

    # Rounds.

    def run(self, stop: Event) -> None:
        """Follows until `stop` is set."""
        watch = MoveSampler(self.move)
        while not stop.is_set():
            if not self.round():
                self.lag_seconds = 0.0
                stop.wait(IDLE_SECONDS)
            watch.look(self.lag_seconds, self.store.obstacle_count)

    def catch_up(self) -> None:
        """Places a marker in each stream and follows until all of them have been read."""
        unread = {
            place_marker(self.move.target, table): name for name, table in self.tables.items()
        }
        end = time.monotonic() + SEEN_SECONDS_MAX
        while not unread.keys() <= self.marks:
            if self.round():
                end = time.monotonic() + SEEN_SECONDS_MAX
            elif time.monotonic() > end:
                table_name = next(name for mark, name in unread.items() if mark not in self.marks)
                raise PartitaError(
                    f"Writes to {table_name} have not appeared in its stream within"
                    f" {SEEN_SECONDS_MAX:.0f} s. Nothing was switched; try again."
                )
            else:
                time.sleep(IDLE_SECONDS / 2)

    def settle(self) -> None:
        """Follows until nothing more comes; for a target that nobody writes to any more."""
        quiet = 0
        while quiet < QUIET_ROUNDS:
            quiet = 0 if self.round() else quiet + 1
            time.sleep(IDLE_SECONDS)

    def round(self) -> int:
        """Carries over the next records and returns how many were read."""
        changes = [change for stream in self._streams for change in stream.read()]
        if not changes:
            self._keep_places()
            return 0
        try:
            self._carry_over([change for change in changes if not self._is_own(change)])
            self.marks.update(filter(None, map(mark_of, changes)))
        except BaseException:
            # The records are read again from the positions in the state store.
            self._streams = self._open_streams()
            raise
        self.lag_seconds = max(time.time() - changes[-1].at, 0.0)
        self.changes += len(changes)
        self.rounds += 1
        self.progress(f"Following back, {self.lag_seconds:.0f} s behind", self.changes, 0)
        return len(changes)

    def retry(self) -> list[tuple[DesiredRow, str]]:
        """Tries the rows that wait once more, and returns those that still wait."""
        if self.store.waiting():
            self._carry_over([])
        return self.store.waiting()

    def _is_own(self, change: ItemChange) -> bool:
        """True for a record of the move itself, recognized by its position attribute.

        Applications leave that attribute alone, or copy it together with an item. So a changed
        position counts as the move's only while nobody else could write, or when the move has
        recorded the write.
        """
        if mark_of(change) is not None:
            return True
        if change.new is None:
            return False
        position = position_of(change.new)
        if position is None or (change.old is not None and position_of(change.old) == position):
            return False
        if change.at <= self.since.seconds.get(change.table, 0.0):
            return True
        key = key_bytes(self.tables[change.table], change.key)
        return note_of(change.table, key, position) in self.since.written

    # Rows.

    def _carry_over(self, changes: list[ItemChange]) -> None:
        """Writes the rows that these changes ask for, and those that still wait."""
        with self.move.state.transaction():
            desired_rows = {
                (desired.table, desired.key_text): desired for desired, _ in self.store.waiting()
            }
            self.rows.pending = desired_rows
            for change in changes:
                self._add_desired_rows(change, desired_rows)
            done, waiting = self._write(list(desired_rows.values()))
            self._note(changes, done)
            self.store.set_waiting(waiting)
            self._set_places()
        self.written += len(done)

    def _set_places(self) -> None:
        places = {stream.table: stream.places for stream in self._streams}
        self.move.state.set_fact(PLACES, places)
        self._kept_at = time.monotonic()

    def _keep_places(self) -> None:
        """Stores the stream positions now and then, because Kinesis judges their age by the last
        read."""
        if time.monotonic() - self._kept_at > KEPT_SECONDS:
            with self.move.state.transaction():
                self._set_places()

    def _add_desired_rows(
        self, change: ItemChange, desired_rows: dict[tuple[str, str], DesiredRow]
    ) -> None:
        table = self.tables[change.table]
        try:
            for desired in self.rows.desired_rows(table, change.old, change.new):
                # The last change of a row wins, and takes its place in the order of changes.
                desired_rows.pop((desired.table, desired.key_text), None)
                desired_rows[desired.table, desired.key_text] = desired
            self.store.accept(change.table, change.key)
        except UnmappableItem as error:
            self.store.refuse(change.table, change.key, change.new or {}, str(error))

    def _write(
        self, desired_rows: list[DesiredRow]
    ) -> tuple[list[DesiredRow], list[tuple[DesiredRow, str]]]:
        """Writes rows into the source, again and again while it is away or busy."""
        if not desired_rows:
            return [], []
        away_since = time.monotonic()
        tried = 0
        while True:
            try:
                with open_session(self.move.origin, lock_seconds=5) as session:
                    return self._write_in(session, desired_rows)
            except (SourceUnavailable, SourceError):
                # The source may be restarting.
                self.progress(f"Waiting for {self.move.origin.address}", self.changes, 0)
                if time.monotonic() - away_since > self.away_seconds_max:
                    raise
            except PartitaError:
                tried += 1
                if tried > TRIES:
                    raise
            time.sleep(RETRY_SECONDS)

    def _write_in(
        self, session: SourceSession, desired_rows: list[DesiredRow]
    ) -> tuple[list[DesiredRow], list[tuple[DesiredRow, str]]]:
        with self.fence.passing(session):
            return self.writer.write(session, desired_rows)

    def _note(self, changes: list[ItemChange], done: list[DesiredRow]) -> None:
        """Updates the state store with the source's rows, and marks their items for stamping
        again."""
        applied = [RowChange(desired.table, desired.key, desired.row) for desired in done]
        self.applier.apply(SourceTransaction(self.move.position, "", time.time(), applied))
        for table, item in self.applier.take_writes():
            self.store.touch(table.name, key_of(table, item), item)
        for change in changes:
            self.store.touch(change.table, change.key, None)

    # What stands in the way.

    def obstacles(self) -> list[str]:
        """Returns a sentence for each item or row that cannot be carried into the source."""
        sentences = [f"{home} {_shown(key)}: {why}" for home, key, _, why in self.store.refused()]
        sentences += [
            f"{desired.table} {_shown(desired.key)}"
            f"{', deleted at the target' if desired.row is None else ''}: {why}"
            for desired, why in self.retry()
        ]
        return sentences


def _shown(key: Item) -> str:
    return ", ".join(str(next(iter(value.values()))) for value in key.values())
