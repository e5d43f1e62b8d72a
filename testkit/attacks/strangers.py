"""One who sends what they like to a server, and what the server spends on it, seen from outside.

Processor time is that of the server's process with all its threads, and of its children, by the
kernel's clock of each; memory is the peak since it was last looked at (`clear_refs`).
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ANSWER_SECONDS_MAX = 60.0
SCHEDULED_CLOCK = 2
"""CPUCLOCK_SCHED of the kernel's posix-timers.h: what clock_getcpuclockid(3) makes of a pid."""
RESET_PEAK = "5"
NEW_HEAP = {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}
"""What a request used is returned to the system at once, so that the next one's peak is its own."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Stranger:
    """Requests over one connection, which is opened again where the server closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: socket.socket | None = None
        self._received = b""

    def send(self, message: bytes) -> Answer:
        """The answer, whatever it is; raises when there is none."""
        if self._connection is None:
            place = ("127.0.0.1", self._port)
            self._connection = socket.create_connection(place, ANSWER_SECONDS_MAX)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._received = b""
        # It may be answered, and the connection closed, before everything has been read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.sendall(message)
        return self._answer(is_head=message.startswith(b"HEAD "))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _answer(self, *, is_head: bool) -> Answer:
        assert self._connection is not None
        while b"\r\n\r\n" not in self._received:
            self._receive()
        start, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = start.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        length = 0 if is_head else int(headers.get("content-length", 0))
        while len(self._received) < length:
            self._receive()
        body, self._received = self._received[:length], self._received[length:]
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(first.split()[1]), headers, body)

    def _receive(self) -> None:
        assert self._connection is not None
        part = self._connection.recv(256 * 1024)
        if not part:
            raise ConnectionError("The server closed the connection without an answer.")
        self._received += part


class Spent(NamedTuple):
    """On one request."""

    seconds: float
    bytes: int
    own_seconds: float
    """Of the server itself, without its children: so long all others have waited."""


class Meter:
    """`begin`, send something, `spent`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seconds: dict[int, float] = {}
        self._bytes: dict[int, int] = {}

    def begin(self) -> None:
        self._seconds, self._bytes = {}, {}
        for pid in family(self._pid):
            self._seconds[pid] = seconds_of(pid)
            Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK)
            self._bytes[pid] = peak_of(pid)

    def spent(self) -> Spent:
        """A process that was started meanwhile counts as a whole."""
        pids = list(family(self._pid))
        seconds = {pid: seconds_of(pid) - self._seconds.get(pid, 0.0) for pid in pids}
        return Spent(
            sum(seconds.values()),
            sum(peak_of(pid) - self._bytes.get(pid, 0) for pid in pids),
            seconds[self._pid],
        )

    def settle(self) -> None:
        """Wait until the server has done everything that it wanted to."""
        before = -1.0
        while (now := sum(map(seconds_of, family(self._pid)))) - before > 0.0005:
            before = now
            time.sleep(0.01)


def family(pid: int) -> Iterator[int]:
    """The process, and what it has started."""
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from family(int(child))


def seconds_of(pid: int) -> float:
    """Processor time of all threads, also those that have ended."""
    return time.clock_gettime(~pid << 3 | SCHEDULED_CLOCK)


def peak_of(pid: int) -> int:
    """Nothing for a process that has ended and is not yet forgotten."""
    status = Path(f"/proc/{pid}/status").read_text()
    size = status.partition("VmHWM:")[2].split()[:1]
    return int(size[0]) * 1024 if size else 0
