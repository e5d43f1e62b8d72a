"""The frame of cutover and rollback, the steps that change which side is authoritative."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from msgspec import Struct

from partita.errors import PartitaError
from partita_migrate.moving.move import Move, open_move
from partita_migrate.moving.move_status import status
from partita_migrate.moving.switching.fences.source_fence import SOURCE, SourceFence
from partita_migrate.moving.switching.move_phase import UNTURNED, Step, check_unfinished, under_way
from partita_migrate.moving.switching.target_write_block import TargetWriteBlock
from partita_migrate.workspace.migration_folder import Folder

AWAY_SECONDS_MAX = 10.0
"""How long a source that restarts is waited for while its fence is to be opened."""
FENCED_AWAY_SECONDS_MAX = 10.0
"""How long a side that does not answer is waited for while nobody can write."""
RETRY_SECONDS = 0.5


class SwitchResult(Struct, kw_only=True, omit_defaults=True):
    """The outcome of a cutover or rollback."""

    source: str
    endpoint: str
    position: int
    is_dry_run: bool = False
    is_switched: bool = False
    refused_seconds: float = 0.0
    """How long one side refused writes before the other was authoritative."""
    seconds: float = 0.0
    changes: int = 0


Result = TypeVar("Result", bound=SwitchResult)


@contextmanager
def switching(
    step: Step,
    result: type[Result],
    folder: Folder,
    endpoint: str | None,
    *,
    region: str,
    is_dry_run: bool,
    ask: Callable[[str], str] | None,
    needs_target: bool = True,
) -> Iterator[tuple[Move, TargetWriteBlock, Result]]:
    """Opens the move, the write block of its target, and the report, which is written at the end.

    An error says whether a side was left closed that ought to take writes.
    """
    try:
        with _stopped_by_terminate():
            yield from _switching(
                step, result, folder, endpoint, region, is_dry_run, ask, needs_target
            )
    except (Exception, KeyboardInterrupt) as error:
        current = status(folder)
        if not current.refusal or current.holder not in ("", f"process {os.getpid()}"):
            raise
        message = str(error) or "Interrupted."
        raise PartitaError(f"{message} {current.refusal}") from error


def _switching(
    step: Step,
    result: type[Result],
    folder: Folder,
    endpoint: str | None,
    region: str,
    is_dry_run: bool,
    ask: Callable[[str], str] | None,
    needs_target: bool,
) -> Iterator[tuple[Move, TargetWriteBlock, Result]]:
    began = time.monotonic()
    with open_move(folder, endpoint, region=region, ask=ask, needs_target=needs_target) as move:
        check_unfinished(move.state)
        report = result(
            source=str(move.origin.address),
            endpoint=move.target.endpoint,
            position=move.position,
            is_dry_run=is_dry_run,
        )
        with nullcontext() if is_dry_run else under_way(move.state, step):
            yield move, TargetWriteBlock(move, endpoint, region), report
        report.position = move.position
        report.seconds = round(time.monotonic() - began, 3)
        if not is_dry_run:
            folder.write_json(f"{step}.json", report)


@contextmanager
def _stopped_by_terminate() -> Iterator[None]:
    """Treats SIGTERM as an interrupt, so that what was closed is opened before the process ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def note_fence(move: Move) -> None:
    """Records that the fence is about to be closed; after a kill, the record stays."""
    with move.state.transaction():
        move.state.set_fact(UNTURNED, True)


def open_fence(move: Move, fence: SourceFence) -> None:
    """Opens the fence: the source takes writes and is authoritative."""
    end = time.monotonic() + AWAY_SECONDS_MAX
    while True:
        try:
            fence.turn(SOURCE)
            break
        except PartitaError:
            if time.monotonic() > end:
                raise
            time.sleep(RETRY_SECONDS)
    with move.state.transaction():
        move.state.remove_fact(UNTURNED)
