"""Stage `follow`: carries over every committed change, in commit order, until it is stopped.

A batch is applied to the state store and written to the target; then rows and position are
committed together. Only after that commit is the source told that it may drop the log up to there.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct, field

from partita.errors import PartitaError
from partita_migrate.moving.following.change_applier import Applier, ItemKey, item_key
from partita_migrate.moving.following.lag_progress import LOOK_SECONDS
from partita_migrate.moving.following.move_samples import MoveSampler
from partita_migrate.moving.loading.load_report import READ_UNTIL
from partita_migrate.moving.loading.rejects import accept_item, reject_item, write_rejects
from partita_migrate.moving.logs.source_changes import SourceTransaction
from partita_migrate.moving.move import LOADED, POSITION_FACT, RESUME, Move, open_move
from partita_migrate.moving.switching.move_phase import (
    BACKWARD,
    check_forward,
    check_unfinished,
    phase_of,
)
from partita_migrate.moving.target_access.write_pipeline import Write, WritePipeline
from partita_migrate.moving.verifying.continuous_verification import ContinuousVerification
from partita_migrate.understanding.sources.source_connection import SourceError
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

BATCH_CHANGES = 8000
SENT_WRITES = 500
"""Writes that are sent to the target while the rest of the batch is still being applied."""
BATCH_SECONDS = 0.2
"""How long a batch is collected before the target is waited for."""
FAR_BEHIND_SECONDS = 5.0
FAR_BEHIND_BATCH_SECONDS = 1.0
"""The same when following is far behind: longer batches wait for the target less often."""
SCHEMA_SECONDS = 5.0
SHOWN_SECONDS = 1.0
CONFIRM_SECONDS = 1.0
PENDING = "pending"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class FollowResult(Struct, kw_only=True):
    """The outcome of a run of `follow`, printed by `--json`."""

    source: str
    endpoint: str
    changes: int
    writes: int
    transactions: int
    seconds: float
    position: int
    lag_seconds: float
    lag_bytes: int | None
    rejects: int
    verified_rows: int = 0
    verified_items: int = 0
    different: int = 0
    """Differences that `--verify` found while following."""
    differences: list[str] = field(default_factory=list)
    is_backwards: bool = False


def follow(
    folder: Folder,
    endpoint: str | None,
    *,
    region: str = "us-east-1",
    is_once: bool = False,
    is_verifying: bool = False,
    write_units: float | None = None,
    is_dry_run: bool = False,
    stop: threading.Event | None = None,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> FollowResult:
    """Follows the source's changes, or the target's after a cutover.

    `is_once` stops at the end that the log has now; otherwise it runs until it is interrupted or
    `stop` is set. `is_verifying` compares both sides while it follows.
    """
    stop = stop or threading.Event()
    with open_move(folder, endpoint, region=region, write_units=write_units, ask=ask) as move:
        if phase_of(move.state).name == BACKWARD:
            from partita_migrate.moving.way_back.follow_back import follow_back

            with _stopped_by_signals(stop):
                return follow_back(
                    move, stop, is_once=is_once, is_dry_run=is_dry_run, progress=progress
                )
        follower = Follower(move, progress, stop)
        if is_verifying:
            follower.continuous = ContinuousVerification(move)
        if not is_dry_run:
            until = follower.log_end() if is_once else None
            with _stopped_by_signals(stop):
                follower.run(until)
            follower.look()
            write_rejects(move)
        return follower.report()


@contextmanager
def _stopped_by_signals(stopped: threading.Event) -> Iterator[None]:
    """Makes the first interrupt stop following after the current batch, and the second one at
    once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        stopped.set()
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Follower:
    """Follows the source: reads transactions, applies them in batches, confirms them to the log."""

    def __init__(
        self, move: Move, progress: Progress = silent, stop: threading.Event | None = None
    ) -> None:
        if move.state.fact(LOADED, bool) is None:
            raise PartitaError(
                f"{move.folder.path} is not fully loaded; run `partita migrate load` again, which"
                " goes on where it stopped."
            )
        check_unfinished(move.state)
        self.move = move
        self.progress = progress
        self.applier = Applier(move, move.state.fact(READ_UNTIL, int) or 0)
        self.sender = WritePipeline(move)
        self.stop = stop or threading.Event()
        self.watch = MoveSampler(move)
        self._tried: set[ItemKey] = set()
        """Items that this batch writes; collected only while there are rejects that they may
        settle."""
        self.transactions = 0
        self.writes = 0
        self._began = time.monotonic()
        self._checked = 0.0
        self._confirmed = 0.0
        self._lag_seconds = 0.0
        self._shown = 0.0
        self._looked = 0.0
        self._left = 0
        self._left_text = ""
        self.continuous: ContinuousVerification | None = None
        """Compares both sides while following; None without `--verify`."""

    def log_end(self) -> int:
        """Returns the current end of the source's log."""
        with self.move.origin.connect() as source:
            return self.move.log.end(source)

    def run(self, until: int | None = None, *, is_exact: bool = False) -> None:
        """Follows until `until` is reached, or without end. `is_exact` stops before a transaction
        that ends behind `until`."""
        check_forward(self.move.state)
        self._repeat()
        position, resume = self.move.position, self.move.resume
        if until is not None and position >= until:
            return
        stream = self.move.log.transactions(position, resume)
        try:
            batch: list[SourceTransaction] = []
            waited = time.monotonic()
            applied = 0
            for transaction in stream:
                if (
                    transaction is not None
                    and is_exact
                    and until is not None
                    and transaction.position > until
                ):
                    self._finish_batch(batch)
                    self._advance_to(until)
                    return
                if transaction is not None:
                    self._remember(transaction)
                    if not batch:
                        waited = time.monotonic()
                        self.move.state.begin()
                    batch.append(transaction)
                    before = self.applier.changes
                    self._apply(transaction)
                    applied += self.applier.changes - before
                # A log that cannot be repeated is followed one transaction at a time, because only
                # one can be remembered.
                is_due = (
                    time.monotonic() - waited > self._batch_seconds()
                    or applied >= BATCH_CHANGES
                    or self.stop.is_set()
                    or not self.move.log.is_repeatable
                )
                is_reached = (
                    until is not None and transaction is not None and transaction.position >= until
                )
                if batch and (transaction is None or is_due or is_reached):
                    self._finish_batch(batch)
                    batch, applied = [], 0
                if is_reached:
                    return
                if transaction is None:
                    self._lag_seconds = 0.0
                    self._check_schema()
                    self.look()
                    if until is not None and self.move.position >= until:
                        return
                if self.stop.is_set() and not batch:
                    return
        finally:
            self.sender.close()
            self._tried.clear()
            self.move.state.roll_back()
            stream.close()

    def _batch_seconds(self) -> float:
        is_far = self._lag_seconds > FAR_BEHIND_SECONDS
        return FAR_BEHIND_BATCH_SECONDS if is_far else BATCH_SECONDS

    def _advance_to(self, position: int) -> None:
        """Moves the position up to `position` when the next transaction lies behind it.

        A log that merges transactions (SQLite's) may begin the next one before `position`, so it
        does not move.
        """
        state = self.move.state
        if self.move.log.is_repeatable and self.move.position < position:
            with state.transaction():
                state.set_fact(POSITION_FACT, position)

    def _remember(self, transaction: SourceTransaction) -> None:
        """Stores a transaction that the log would tell differently next time (SQLite's triggers log
        keys only), so that a restart after a kill writes or removes the same items."""
        if not self.move.log.is_repeatable:
            with self.move.state.transaction():
                self.move.state.set_fact(PENDING, transaction)

    def _repeat(self) -> None:
        """Applies the stored transaction again when a kill came before its commit."""
        pending = self.move.state.fact(PENDING, SourceTransaction)
        if pending is not None and pending.position > self.move.position:
            self.move.state.begin()
            try:
                self._apply(pending)
                self._finish_batch([pending])
            finally:
                self.move.state.roll_back()

    def _apply(self, transaction: SourceTransaction) -> None:
        self.applier.apply(transaction)
        self.transactions += bool(transaction.changes)
        if len(self.applier.writes) >= SENT_WRITES:
            self._send(self.applier.take_writes())

    def _send(self, writes: list[Write]) -> None:
        self.sender.send(writes)
        self.writes += len(writes)
        if self.move.state.has_rejects:
            self._tried.update(item_key(*write) for write in writes)

    def _finish_batch(self, batch: list[SourceTransaction]) -> None:
        """Finishes a batch: first the target, then the state store, then the source."""
        if not batch:
            return
        state, last = self.move.state, batch[-1]
        # After a kill before the commit, the batch is applied again and writes the same items at
        # the same positions. The other way round, the state store would count on items that the
        # target never got. The source comes last: what a slot has confirmed can never be read
        # again.
        self._send(self.applier.take_writes())
        refused = self.sender.finish()
        for key in self._tried:
            accept_item(state, key)
        self._tried.clear()
        for table, item, reason in refused:
            reject_item(state, table, item, reason)
        state.set_fact(POSITION_FACT, last.position)
        if last.resume:
            state.set_fact(RESUME, last.resume)
        state.commit()
        if time.monotonic() - self._confirmed > CONFIRM_SECONDS:
            self._confirmed = time.monotonic()
            self.move.log.confirm(last.position)
        self._lag_seconds = max(time.time() - last.committed_at, 0.0)
        self.look()

    def look(self) -> None:
        """Between batches: shows the lag, compares a little of both sides, and takes a sample."""
        self._show()
        if self.continuous is not None:
            self.continuous.step()
        self.watch.look(self._lag_seconds, self._differences)

    def _differences(self) -> int:
        differences = self.continuous.different if self.continuous is not None else 0
        return differences + self.move.state.reject_count()

    def _show(self) -> None:
        """Shows the lag and when following will have caught up."""
        now = time.monotonic()
        if self.progress is silent or now - self._shown < SHOWN_SECONDS:
            return
        self._shown = now
        if now - self._looked > LOOK_SECONDS:
            self._left_text = self._look_ahead(now)
        text = f"Following, {self._lag_seconds:.1f} s behind{self._left_text}"
        self.progress(text, self.applier.changes, 0)

    def _look_ahead(self, now: float) -> str:
        """Returns the bytes of log that are left, and the seconds that they will probably take."""
        left, since = None, now - self._looked
        with suppress(SourceError):
            left = self.move.log.bytes_behind(self.move.position, self.log_end())
        self._looked = now
        if left is None:
            return ""
        done, self._left = self._left - left, left
        text = f", {left:,} bytes"
        return f"{text}, {left / done * since:,.0f} s left" if left and done > 0 else text

    def _check_schema(self) -> None:
        if time.monotonic() - self._checked > SCHEMA_SECONDS:
            self._checked = time.monotonic()
            # The log waits for a server that is away; only the schema is of interest here.
            with suppress(SourceError), self.move.origin.connect() as source:
                self.move.origin.check_schema(source)

    def report(self) -> FollowResult:
        """Returns what following has done so far."""
        position = self.move.position
        behind = self.move.log.bytes_behind(position, self.log_end())
        return FollowResult(
            source=str(self.move.origin.address),
            endpoint=self.move.target.endpoint,
            changes=self.applier.changes,
            writes=self.writes,
            transactions=self.transactions,
            seconds=round(time.monotonic() - self._began, 3),
            position=position,
            # On an idle source the last commit is old, although nothing is missing.
            lag_seconds=0.0 if behind == 0 else round(self._lag_seconds, 3),
            lag_bytes=behind,
            rejects=len(self.move.state.rejects()),
            verified_rows=self.continuous.rows if self.continuous else 0,
            verified_items=self.continuous.items if self.continuous else 0,
            different=self.continuous.different if self.continuous else 0,
            differences=self.continuous.differences if self.continuous else [],
        )
