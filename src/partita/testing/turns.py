"""An event loop without a thread: it turns while somebody waits for it, and stands otherwise.

So a database needs no thread of its own to answer, and its background work is over when an answer
is given.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

Step = Callable[[], None]


class Turns:
    def __init__(self) -> None:
        self._ready: SimpleQueue[Step] = SimpleQueue()
        self._later: list[Step] = []

    def call_soon(self, step: Step) -> None:
        """From any thread."""
        self._ready.put(step)

    def call_later(self, seconds: float, step: Step) -> None:
        """Kept until `start_later`, however long that is."""
        self._later.append(step)

    def start_later(self) -> None:
        later, self._later = self._later, []
        for step in later:
            self.call_soon(step)

    @property
    def is_idle(self) -> bool:
        return self._ready.empty()

    def run_ready(self) -> None:
        while not self.is_idle:
            self._ready.get()()

    def run_until(self, is_done: Callable[[], object]) -> None:
        while not is_done():
            self._ready.get()()
