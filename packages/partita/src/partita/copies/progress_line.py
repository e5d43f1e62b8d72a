"""The progress line of a command in a terminal."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Final, TextIO

SECONDS: Final = 0.2


class ProgressLine:
    """A line on stderr that is updated in place; if stderr is not a terminal, only its last state
    is written."""

    def __init__(
        self, verb: str, total: int = 0, *, what: str = "items", out: TextIO | None = None
    ) -> None:
        self._verb = verb
        self._what = what
        self._total = total
        self._out = out or sys.stderr
        self._started = monotonic()
        self._shown_at = 0.0
        self.count = 0

    def add(self, count: int) -> None:
        self.count += count
        now = monotonic()
        if self._out.isatty() and now - self._shown_at > SECONDS:
            self._shown_at = now
            self._out.write(f"\r{self._line(now)}\x1b[K")
            self._out.flush()

    def end(self, more: str = "") -> None:
        if self._out.isatty():
            self._out.write("\r")
        self._out.write(f"{self._line(monotonic())}{more}\n")

    def _line(self, now: float) -> str:
        rate = self.count / max(now - self._started, 0.001)
        share = f" of about {self._total:,}" if self._total > self.count else ""
        return f"{self.count:,}{share} {self._what} {self._verb} ({rate:,.0f}/s)"
