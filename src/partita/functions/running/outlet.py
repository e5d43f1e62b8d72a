"""The stderr of a companion: nobody waits for who reads it.

Functions decide how much is printed, and a pipe that nobody reads would stop the companion, and
with it the functions of everybody.
"""

from __future__ import annotations

import atexit
import io
import sys
from collections import deque
from threading import Condition, Thread
from typing import BinaryIO

from partita.limits import MB

WAITING_BYTES_MAX = 4 * MB
DRAIN_SECONDS_MAX = 1.0
DROPPED = "partita functions: %d bytes were dropped here: nobody read them in time.\n"


def install() -> None:
    sys.stderr = Outlet(sys.stderr.buffer)


class Outlet(io.TextIOBase):
    """Text that comes faster than it is taken is dropped, and its size is told."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped_bytes = 0
        self._change = Condition()
        Thread(target=self._run, name="partita-stderr", daemon=True).start()
        atexit.register(self.drain)

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        content = text.encode(errors="replace")
        with self._change:
            if self._waiting_bytes + len(content) > WAITING_BYTES_MAX:
                self._dropped_bytes += len(content)
            else:
                if self._dropped_bytes:
                    content = (DROPPED % self._dropped_bytes).encode() + content
                    self._dropped_bytes = 0
                self._waiting.append(content)
                self._waiting_bytes += len(content)
                self._change.notify_all()
        return len(text)

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting)
                content = self._waiting[0]
            try:
                self._file.write(content)
                self._file.flush()
            except (OSError, ValueError):
                # There is nobody to tell.
                return
            with self._change:
                self._waiting.popleft()
                self._waiting_bytes -= len(content)
                self._change.notify_all()

    def drain(self) -> None:
        """At the end: as much as is taken at once."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting, DRAIN_SECONDS_MAX)
