"""How far the source has moved on since it was read: what is left to follow, for progress bars."""

from __future__ import annotations

import time
from contextlib import suppress

from partita_migrate.moving.loading.reports import READ_SINCE
from partita_migrate.moving.moves import Move
from partita_migrate.progress import Progress, silent
from partita_migrate.understanding.sources.connection import SourceError

LOOK_SECONDS = 3.0
"""Each look opens a connection."""


class Behind:
    """A progress that adds how far behind the source the rows are."""

    def __init__(self, move: Move, progress: Progress, position: int, since: float) -> None:
        """`position`: of the rows; `since`: when they were the source's last, by our clock."""
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
            return "nothing is followed"
        if time.monotonic() - self._looked > LOOK_SECONDS or not self._looked:
            with suppress(SourceError), self.move.origin.connect() as source:
                end = self.move.log.end(source)
                self._bytes = self.move.log.bytes_behind(self.position, end)
            self._looked = time.monotonic()
        text = f"{time.time() - self.since:,.0f} s behind"
        return text if self._bytes is None else f"{text}, {self._bytes:,} bytes"


def behind_first_place(move: Move, progress: Progress) -> Behind:
    """Of a load, whose changes are followed from there on."""
    since = move.state.fact(READ_SINCE, float) or time.time()
    return Behind(move, progress, move.position, since)
