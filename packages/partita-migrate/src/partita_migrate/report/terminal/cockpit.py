"""The terminal of `partita migrate run`: the stages of a move, their progress, and keys to
press."""

from __future__ import annotations

import select
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from partita_migrate.moving.move_status import MoveStatus, status
from partita_migrate.moving.run_stages import QUIT, CockpitSession, RunReport
from partita_migrate.report.terminal.moving_screen import summarize_follow, summarize_status
from partita_migrate.report.terminal.progress_bars import ProgressBars
from partita_migrate.report.terminal.terminal_tables import grid
from partita_migrate.workspace.migration_folder import Folder

KEYS = {"v": "verify", "c": "cutover", "r": "rollback", "f": "finish", "q": QUIT}
CONFIRMED = ("cutover", "rollback", "finish")
"""These keys have to be pressed twice, so that a mistake does nothing."""
LOOKED_SECONDS = 1.0
SAID_MAX = 5


class Cockpit:
    """The screen. It is redrawn again and again while stages run below it."""

    def __init__(self, folder: Folder, console: Console) -> None:
        self.folder = folder
        self.bars = ProgressBars(console, is_started=False)
        self.stage = ""
        self.said: deque[str] = deque(maxlen=SAID_MAX)
        self._requested = ""
        self._pressed = ""
        self._lock = threading.Lock()
        self._looked = 0.0
        self._status: MoveStatus | None = None

    def seat(self) -> CockpitSession:
        return CockpitSession(self.taken, self.said.append, self.begin)

    def begin(self, stage: str) -> None:
        self.stage = stage
        self.bars.clear()

    def press(self, key: str) -> None:
        stage = KEYS.get(key.lower(), "")
        if stage in CONFIRMED and self._pressed != stage:
            self._pressed = stage
            self.said.append(f"Press {key} again for {stage}.")
            return
        self._pressed = ""
        if stage and self.stage != "follow":
            self.said.append(f"{self.stage} is running; press {key} again when it has ended.")
        elif stage:
            with self._lock:
                self._requested = stage

    def taken(self) -> str:
        with self._lock:
            requested, self._requested = self._requested, ""
        return requested

    def __rich__(self) -> RenderableType:
        if self._status is None or time.monotonic() - self._looked > LOOKED_SECONDS:
            self._looked = time.monotonic()
            with suppress(OSError):
                self._status = status(self.folder)
        parts: list[RenderableType] = []
        if self._status is not None:
            rows = [
                (
                    stage.name,
                    "now" if stage.name == self.stage else "done" if stage.is_done else "",
                    stage.said,
                )
                for stage in self._status.stages
            ]
            parts.append(grid(f"The move of {self.folder.path}", ["stage", "", ""], rows, []))
        parts.append(self.bars.bars)
        parts += [Text(sentence) for sentence in self.said]
        parts.append(Text("  ".join(f"{key} {stage}" for key, stage in KEYS.items()), "dim"))
        return Group(*parts)


@contextmanager
def cockpit(folder: Folder) -> Iterator[Cockpit]:
    """Shows the cockpit to a person at a terminal, reads single keys, and restores the terminal at
    the end."""
    console = Console(stderr=True)
    screen = Cockpit(folder, console)
    over = threading.Event()
    keys = threading.Thread(target=_read_keys, args=(screen, over), daemon=True)
    before = termios.tcgetattr(sys.stdin)
    try:
        # cbreak mode leaves Control-C an interrupt.
        tty.setcbreak(sys.stdin)
        keys.start()
        with Live(screen, console=console, refresh_per_second=4, transient=True):
            yield screen
    finally:
        over.set()
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        keys.join()


def _read_keys(screen: Cockpit, over: threading.Event) -> None:
    while not over.is_set():
        ready, _, _ = select.select([sys.stdin], [], [], 0.2)
        if ready and (key := sys.stdin.read(1)):
            screen.press(key)


def summarize_run(ran: RunReport) -> Iterator[RenderableType]:
    if ran.stages:
        yield Text(f"Run: {', '.join(ran.stages)}.")
    if ran.status is not None:
        yield from summarize_status(ran.status)
    if ran.followed is not None:
        yield from summarize_follow(ran.followed)
    if ran.next:
        yield Text(f"Next: {ran.next}.")
