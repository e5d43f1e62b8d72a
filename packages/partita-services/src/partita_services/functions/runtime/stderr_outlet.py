"""The stderr of a companion, which never blocks.

Functions decide how much is printed. A pipe that nobody reads would stop the companion, and with it
everybody's functions.
"""

from __future__ import annotations

import atexit
import io
import sys
from collections import deque
from threading import Condition, Thread
from typing import BinaryIO

from partita.foundation.service_limits import MB

WAITING_BYTES_MAX = 4 * MB
DRAIN_SECONDS_MAX = 1.0
DROPPED = "partita functions: %d bytes of output were dropped here, because nobody read them.\n"


def install() -> None:
    sys.stderr = StderrOutlet(sys.stderr.buffer)


class StderrOutlet(io.TextIOBase):
    """Text that is written faster than it is read is dropped, and a line says how many bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped_bytes = 0
        self._change = Condition()
        # A thread, because writing to a full pipe blocks. A daemon, because nobody may ever read
        # the pipe.
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
                # It stays in the queue until it is written, so that `drain` waits for it.
                content = self._waiting[0]
            try:
                self._file.write(content)
                self._file.flush()
            except (OSError, ValueError):
                # The reader is gone, and there is no other place for an error message.
                return
            with self._change:
                self._waiting.popleft()
                self._waiting_bytes -= len(content)
                self._change.notify_all()

    def drain(self) -> None:
        """Write what is left at exit, as long as the reader takes it at once."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting, DRAIN_SECONDS_MAX)
