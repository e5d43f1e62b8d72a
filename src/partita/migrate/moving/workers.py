"""Processes that do parts of a move, so that it takes more than one core.

Each has a pipe to and from it, and ends when that is closed. It holds the lock of the folder as
well: after a kill, whoever comes next waits for the last of them, so that nobody who was left
behind overwrites what is followed already.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from types import TracebackType
from typing import Any, BinaryIO, Generic, Self, TypeVar

import msgspec

from partita.errors import PartitaError

WORKERS_MAX = 4
AHEAD = 2
"""Tasks that wait for each process while it is busy."""
PR_SET_PDEATHSIG = 1
END_SECONDS_MAX = 10
_HEAD = struct.Struct(">BI")
_ANSWER, _REFUSAL = 0, 1

Answer = TypeVar("Answer")
Handler = Callable[[bytes], Any]
"""A task, encoded, to its answer."""


def worker_count() -> int:
    return max(1, min(WORKERS_MAX, len(os.sched_getaffinity(0))))


class Workers(Generic[Answer]):
    """`job`: a module with `worker(setup)`, which makes a handler of tasks."""

    def __init__(
        self, job: str, setup: Any, answer: type[Answer], lock: int, count: int | None = None
    ) -> None:
        self.count = count or worker_count()
        self._answer = answer
        self._job, self._setup, self._lock = job, msgspec.msgpack.encode(setup), lock
        self._processes: list[subprocess.Popen[bytes]] = []
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    def __enter__(self) -> Self:
        command = [sys.executable, "-P", "-m", __name__, self._job]
        for _ in range(self.count):
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[self._lock]
            )
            self._processes.append(process)
            self._idle.put(process)
            _write(process.stdin, _ANSWER, self._setup)
        self._pool = ThreadPoolExecutor(self.count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if kind is not None:
                process.kill()
            with suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
        self._pool.shutdown(cancel_futures=True)
        for process in self._processes:
            try:
                process.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def ask(self, task: Any) -> Answer:
        """The answer of whichever process is idle first."""
        process = self._idle.get()
        try:
            _write(process.stdin, _ANSWER, msgspec.msgpack.encode(task))
            kind, content = _read(process.stdout)
        except (OSError, EOFError) as error:
            raise PartitaError(
                "A process that worked on the move has ended; run the command again, and it goes"
                " on from here."
            ) from error
        finally:
            self._idle.put(process)
        if kind == _REFUSAL:
            raise PartitaError(content.decode())
        return msgspec.msgpack.decode(content, type=self._answer)

    def in_order(self, tasks: Iterable[Any]) -> Iterator[Answer]:
        """All answers, in the order of the tasks."""
        waiting: deque[Future[Answer]] = deque()
        for task in tasks:
            waiting.append(self._pool.submit(self.ask, task))
            if len(waiting) > self.count * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _write(pipe: Any, kind: int, content: bytes) -> None:
    pipe.write(_HEAD.pack(kind, len(content)))
    pipe.write(content)
    pipe.flush()


def _read(pipe: Any) -> tuple[int, bytes]:
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    kind, size = _HEAD.unpack(head)
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return kind, content


def serve(job: str, tasks: BinaryIO, answers: BinaryIO) -> None:
    """What the process does until its tasks end."""
    make: Callable[[bytes], Handler] = import_module(job).worker
    try:
        _, setup = _read(tasks)
        handle = make(setup)
        while True:
            _, task = _read(tasks)
            try:
                answer = msgspec.msgpack.encode(handle(task))
            except PartitaError as error:
                _write(answers, _REFUSAL, str(error).encode())
            else:
                _write(answers, _ANSWER, answer)
    except (EOFError, BrokenPipeError):
        return


def main() -> None:
    # Control-C is meant for the one that reads the answers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = sys.stdout.buffer
    # What is printed by mistake must not come between answers.
    sys.stdout = sys.stderr
    serve(sys.argv[1], sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
