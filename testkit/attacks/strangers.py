"""A client without credentials, and a meter of the server's costs, seen from outside.

Processor time includes all threads of the server and its child processes, by the kernel's clock of
each process. Memory is the peak since the last reset (`clear_refs`).
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
"""CPUCLOCK_SCHED of the kernel's posix-timers.h; clock_getcpuclockid(3) combines it with a pid."""
RESET_PEAK = "5"
NEW_HEAP = {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}
"""Freed memory is returned to the system at once, so that each request has a peak of its own."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Stranger:
    """Sends requests over one connection, which it opens again after the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: socket.socket | None = None
        self._received = b""

    def send(self, message: bytes) -> Answer:
        """Returns the response, whatever its status; raises an error when there is none."""
        if self._connection is None:
            place = ("127.0.0.1", self._port)
            self._connection = socket.create_connection(place, ANSWER_SECONDS_MAX)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._received = b""
        # The server may respond and close the connection before it has read everything.
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
    """The cost of one request."""

    seconds: float
    bytes: int
    own_seconds: float
    """Time of the server process without its children; all other clients had to wait for it."""


class Meter:
    """Measures the cost of requests: call `begin`, send something, call `spent`."""

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
        """Returns the cost since `begin`; a process that was started meanwhile counts in full."""
        pids = list(family(self._pid))
        seconds = {pid: seconds_of(pid) - self._seconds.get(pid, 0.0) for pid in pids}
        return Spent(
            sum(seconds.values()),
            sum(peak_of(pid) - self._bytes.get(pid, 0) for pid in pids),
            seconds[self._pid],
        )

    def settle(self) -> None:
        """Waits until the server is idle."""
        before = -1.0
        while (now := sum(map(seconds_of, family(self._pid)))) - before > 0.0005:
            before = now
            time.sleep(0.01)


def family(pid: int) -> Iterator[int]:
    """Yields the process and its descendants."""
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from family(int(child))


def seconds_of(pid: int) -> float:
    """Returns the processor time of all threads, including those that have ended."""
    return time.clock_gettime(~pid << 3 | SCHEDULED_CLOCK)


def peak_of(pid: int) -> int:
    """Returns the peak memory; 0 for a zombie process."""
    status = Path(f"/proc/{pid}/status").read_text()
    size = status.partition("VmHWM:")[2].split()[:1]
    return int(size[0]) * 1024 if size else 0
