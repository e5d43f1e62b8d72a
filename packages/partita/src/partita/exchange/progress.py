"""How far a command has come, for whoever watches a terminal."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Final, TextIO

SECONDS: Final = 0.2


class Progress:
    """One line on stderr that is written again and again; only its end where nobody watches."""

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
