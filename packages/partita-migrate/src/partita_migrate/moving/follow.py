"""Stage `follow`: every committed change, in the order of commits, until it is stopped.

A batch is applied to the state store, written to the target and committed together with the
position behind it. Only then the source is told that it need not keep what was followed.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct, field

from partita.errors import PartitaError
from partita_migrate.folder import Folder
from partita_migrate.moving.applying import Applier, ItemKey, item_key
from partita_migrate.moving.behind import LOOK_SECONDS
from partita_migrate.moving.loading.rejects import accept_item, reject_item, write_rejects
from partita_migrate.moving.loading.reports import READ_UNTIL
from partita_migrate.moving.logs.changes import Transaction
from partita_migrate.moving.moves import LOADED, POSITION_FACT, RESUME, Move, open_move
from partita_migrate.moving.sending import Sender, Write
from partita_migrate.moving.switching.phases import (
    BACKWARD,
    check_forward,
    check_unfinished,
    phase_of,
)
from partita_migrate.moving.switching.watching import Watch
from partita_migrate.moving.verifying.continuous import Continuous
from partita_migrate.progress import Progress, silent
from partita_migrate.understanding.sources.connection import SourceError

BATCH_CHANGES = 8000
SENT_WRITES = 500
"""That go to the target while the batch goes on."""
BATCH_SECONDS = 0.2
FAR_BEHIND_SECONDS = 5.0
FAR_BEHIND_BATCH_SECONDS = 1.0
"""Whoever has much to catch up waits for the target less often."""
SCHEMA_SECONDS = 5.0
SHOWN_SECONDS = 1.0
CONFIRM_SECONDS = 1.0
PENDING = "pending"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Followed(Struct, kw_only=True):
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
    """What --verify found meanwhile."""
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
) -> Followed:
    """`is_once`: up to where the log ends now; else until interrupted, or `stop` is set.
    `is_verifying`: compare both sides meanwhile."""
    stop = stop or threading.Event()
    with open_move(folder, endpoint, region=region, write_units=write_units, ask=ask) as move:
        if phase_of(move.state).name == BACKWARD:
            from partita_migrate.moving.back.following import follow_back

            with _stopped_by_signals(stop):
                return follow_back(
                    move, stop, is_once=is_once, is_dry_run=is_dry_run, progress=progress
                )
        follower = Follower(move, progress, stop)
        if is_verifying:
            follower.continuous = Continuous(move)
        if not is_dry_run:
            until = follower.log_end() if is_once else None
            with _stopped_by_signals(stop):
                follower.run(until)
            follower.look()
            write_rejects(move)
        return follower.report()


@contextmanager
def _stopped_by_signals(stopped: threading.Event) -> Iterator[None]:
    """An interrupt ends following behind a batch, and the second one at once."""
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
        self.sender = Sender(move)
        self.stop = stop or threading.Event()
        self.watch = Watch(move)
        self._tried: set[ItemKey] = set()
        """Items of this batch, while there are rejects that it may put right."""
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
        self.continuous: Continuous | None = None
        """Verifies meanwhile, where that is asked for."""

    def log_end(self) -> int:
        with self.move.origin.connect() as source:
            return self.move.log.end(source)

    def run(self, until: int | None = None, *, is_exact: bool = False) -> None:
        """Until a position is reached, where one is given. `is_exact`: and nothing behind it."""
        check_forward(self.move.state)
        self._repeat()
        position, resume = self.move.position, self.move.resume
        if until is not None and position >= until:
            return
        stream = self.move.log.transactions(position, resume)
        try:
            batch: list[Transaction] = []
            waited = time.monotonic()
            applied = 0
            for one in stream:
                if one is not None and is_exact and until is not None and one.position > until:
                    self._finish_batch(batch)
                    self._reach(until)
                    return
                if one is not None:
                    self._remember(one)
                    if not batch:
                        waited = time.monotonic()
                        self.move.state.begin()
                    batch.append(one)
                    before = self.applier.changes
                    self._apply(one)
                    applied += self.applier.changes - before
                is_due = (
                    time.monotonic() - waited > self._batch_seconds()
                    or applied >= BATCH_CHANGES
                    or self.stop.is_set()
                    or not self.move.log.is_repeatable
                )
                is_reached = until is not None and one is not None and one.position >= until
                if batch and (one is None or is_due or is_reached):
                    self._finish_batch(batch)
                    batch, applied = [], 0
                if is_reached:
                    return
                if one is None:
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

    def _reach(self, position: int) -> None:
        """The next transaction lies behind it. A log that puts several together, which may begin
        before it, has not come to it."""
        state = self.move.state
        if self.move.log.is_repeatable and self.move.position < position:
            with state.transaction():
                state.set_fact(POSITION_FACT, position)

    def _remember(self, one: Transaction) -> None:
        """What a log would tell otherwise the next time is kept until it is in the target: items
        that were written of it before a kill are then written again, or removed."""
        if not self.move.log.is_repeatable:
            with self.move.state.transaction():
                self.move.state.set_fact(PENDING, one)

    def _repeat(self) -> None:
        """What was begun and not finished."""
        pending = self.move.state.fact(PENDING, Transaction)
        if pending is not None and pending.position > self.move.position:
            self.move.state.begin()
            try:
                self._apply(pending)
                self._finish_batch([pending])
            finally:
                self.move.state.roll_back()

    def _apply(self, one: Transaction) -> None:
        self.applier.apply(one)
        self.transactions += bool(one.changes)
        if len(self.applier.writes) >= SENT_WRITES:
            self._send(self.applier.taken_writes())

    def _send(self, writes: list[Write]) -> None:
        self.sender.send(writes)
        self.writes += len(writes)
        if self.move.state.has_rejects:
            self._tried.update(item_key(*one) for one in writes)

    def _finish_batch(self, batch: list[Transaction]) -> None:
        """The target first, then the state store, then the source."""
        if not batch:
            return
        state, last = self.move.state, batch[-1]
        self._send(self.applier.taken_writes())
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
        """Between batches: how far it is, and whether both sides are the same."""
        self._show()
        if self.continuous is not None:
            self.continuous.step()
        self.watch.look(self._lag_seconds, self._differences)

    def _differences(self) -> int:
        found = self.continuous.different if self.continuous is not None else 0
        return found + self.move.state.reject_count()

    def _show(self) -> None:
        """How far behind following is, and when it will have caught up."""
        now = time.monotonic()
        if self.progress is silent or now - self._shown < SHOWN_SECONDS:
            return
        self._shown = now
        if now - self._looked > LOOK_SECONDS:
            self._left_text = self._look_ahead(now)
        text = f"Following, {self._lag_seconds:.1f} s behind{self._left_text}"
        self.progress(text, self.applier.changes, 0)

    def _look_ahead(self, now: float) -> str:
        """The bytes that are left, and the seconds that they will take."""
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
            # A server that is away is the log's to wait for.
            with suppress(SourceError), self.move.origin.connect() as source:
                self.move.origin.check_schema(source)

    def report(self) -> Followed:
        position = self.move.position
        behind = self.move.log.bytes_behind(position, self.log_end())
        return Followed(
            source=str(self.move.origin.address),
            endpoint=self.move.target.endpoint,
            changes=self.applier.changes,
            writes=self.writes,
            transactions=self.transactions,
            seconds=round(time.monotonic() - self._began, 3),
            position=position,
            # The last commit may be old, and nothing has come since.
            lag_seconds=0.0 if behind == 0 else round(self._lag_seconds, 3),
            lag_bytes=behind,
            rejects=len(self.move.state.rejects()),
            verified_rows=self.continuous.rows if self.continuous else 0,
            verified_items=self.continuous.items if self.continuous else 0,
            different=self.continuous.different if self.continuous else 0,
            differences=self.continuous.differences if self.continuous else [],
        )
