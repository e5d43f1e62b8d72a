"""An event loop without a thread: it runs only while a caller waits for it.

So a database needs no thread of its own, and its background work is done when a request returns.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

Callback = Callable[[], None]


class ManualLoop:
    def __init__(self) -> None:
        self._ready: SimpleQueue[Callback] = SimpleQueue()
        self._timers: list[Callback] = []

    def call_soon(self, callback: Callback) -> None:
        """Queues a callback; may be called from any thread."""
        self._ready.put(callback)

    def call_later(self, seconds: float, callback: Callback) -> None:
        """Queues a callback for the next `fire_timers`; the time is ignored."""
        self._timers.append(callback)

    def fire_timers(self) -> None:
        timers, self._timers = self._timers, []
        for callback in timers:
            self.call_soon(callback)

    @property
    def is_idle(self) -> bool:
        return self._ready.empty()

    def run_ready(self) -> None:
        while not self.is_idle:
            self._ready.get()()

    def run_until(self, is_done: Callable[[], object]) -> None:
        while not is_done():
            self._ready.get()()
