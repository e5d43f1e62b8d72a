"""What cutover and rollback have in common: a step that changes which side is authoritative."""

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
from partita_migrate.folder import Folder
from partita_migrate.moving.fences.fence import SOURCE, Fence
from partita_migrate.moving.moves import Move, open_move
from partita_migrate.moving.status import status
from partita_migrate.moving.switching.closing import TargetGate
from partita_migrate.moving.switching.phases import UNTURNED, Step, check_unfinished, under_way

AWAY_SECONDS_MAX = 10.0
"""A source that restarts while its fence is to be opened is waited for."""
FENCED_AWAY_SECONDS_MAX = 10.0
"""Nobody can write while a side that gives no answer is waited for."""
RETRY_SECONDS = 0.5


class Switched(Struct, kw_only=True, omit_defaults=True):
    source: str
    endpoint: str
    position: int
    is_dry_run: bool = False
    is_switched: bool = False
    refused_seconds: float = 0.0
    """For how long one side refused writes before the other was authoritative."""
    seconds: float = 0.0
    changes: int = 0


Result = TypeVar("Result", bound=Switched)


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
) -> Iterator[tuple[Move, TargetGate, Result]]:
    """The move, the gate of its target, and the report, which is written at the end. What fails
    says whether a side is left closed that ought to take writes."""
    try:
        with _stopped_by_terminate():
            yield from _switching(
                step, result, folder, endpoint, region, is_dry_run, ask, needs_target
            )
    except (Exception, KeyboardInterrupt) as error:
        told = status(folder)
        if not told.refusal or told.holder not in ("", f"process {os.getpid()}"):
            raise
        said = str(error) or "Interrupted."
        raise PartitaError(f"{said} {told.refusal}") from error


def _switching(
    step: Step,
    result: type[Result],
    folder: Folder,
    endpoint: str | None,
    region: str,
    is_dry_run: bool,
    ask: Callable[[str], str] | None,
    needs_target: bool,
) -> Iterator[tuple[Move, TargetGate, Result]]:
    began = time.monotonic()
    with open_move(folder, endpoint, region=region, ask=ask, needs_target=needs_target) as move:
        check_unfinished(move.state)
        found = result(
            source=str(move.origin.address),
            endpoint=move.target.endpoint,
            position=move.position,
            is_dry_run=is_dry_run,
        )
        with nullcontext() if is_dry_run else under_way(move.state, step):
            yield move, TargetGate(move, endpoint, region), found
        found.position = move.position
        found.seconds = round(time.monotonic() - began, 3)
        if not is_dry_run:
            folder.write_json(f"{step}.json", found)


@contextmanager
def _stopped_by_terminate() -> Iterator[None]:
    """SIGTERM is an interrupt: what was closed is opened again before the process ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def note_fence(move: Move) -> None:
    """Before it is closed: a kill leaves the note behind."""
    with move.state.transaction():
        move.state.set_fact(UNTURNED, True)


def open_fence(move: Move, fence: Fence) -> None:
    """The source takes writes, and is authoritative."""
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
