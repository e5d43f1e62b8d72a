"""Shows how far behind the source the move is, for progress bars."""

from __future__ import annotations

import time
from contextlib import suppress

from partita_migrate.moving.loading.load_report import READ_SINCE
from partita_migrate.moving.move import Move
from partita_migrate.understanding.sources.source_connection import SourceError
from partita_migrate.workspace.stage_progress import Progress, silent

LOOK_SECONDS = 3.0
"""Time between two looks at the end of the log; each look opens a connection."""


class LagProgress:
    """A progress callback that adds how far the rows are behind the source, for example "Rows, 3 s
    behind, 12,480 bytes"."""

    def __init__(self, move: Move, progress: Progress, position: int, since: float) -> None:
        """`position` is the position of the rows; `since` is when they were current, by our
        clock."""
        self.move = move
        self.progress = progress
        self.position = position
        self.since = since
        self._bytes: int | None = None
        self._looked = 0.0

    def __call__(self, description: str, done: int, total: int) -> None:
        if self.progress is not silent:
            self.progress(f"{description}, {self._text()}", done, total)

    def _text(self) -> str:
        if not self.move.begun.is_followed:
            return "changes are not followed"
        if time.monotonic() - self._looked > LOOK_SECONDS or not self._looked:
            with suppress(SourceError), self.move.origin.connect() as source:
                end = self.move.log.end(source)
                self._bytes = self.move.log.bytes_behind(self.position, end)
            self._looked = time.monotonic()
        text = f"{time.time() - self.since:,.0f} s behind"
        return text if self._bytes is None else f"{text}, {self._bytes:,} bytes"


def load_progress(move: Move, progress: Progress) -> LagProgress:
    """Returns the progress of a load, which is behind by what has changed since its first row was
    read."""
    since = move.state.fact(READ_SINCE, float) or time.time()
    return LagProgress(move, progress, move.position, since)
