"""Runs parts of a move in several processes, so that it uses more than one core.

The first process imports the job and forks the others, which share its memory. Each process has a
pipe in each direction and ends when its task pipe closes. All of them inherit the folder's lock:
after a kill, the next command waits for the last of them, so no leftover process overwrites newer
items.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from types import TracebackType
from typing import Any, BinaryIO, Generic, NamedTuple, Self, TypeVar

import msgspec

from partita.errors import PartitaError
from partita.foundation import child_process

WORKERS_MAX = 4
AHEAD = 2
"""Tasks that wait for each process while it is busy."""
END_SECONDS_MAX = 10
_ANSWER, _REFUSAL = b"\0", b"\1"
"""The first byte of what a worker sends."""

Answer = TypeVar("Answer")
Handler = Callable[[bytes], Any]
"""Maps an encoded task to its answer."""


def worker_count() -> int:
    """Returns the number of processes: one for each core, at most four."""
    return max(1, min(WORKERS_MAX, len(os.sched_getaffinity(0))))


class WorkerPipes(NamedTuple):
    """The two pipes of one process."""

    tasks: BinaryIO
    answers: BinaryIO


class WorkerProcesses(Generic[Answer]):
    """Worker processes that run `job`, a module whose `worker(setup)` returns a handler of
    tasks."""

    def __init__(
        self, job: str, setup: Any, answer: type[Answer], lock: int, count: int | None = None
    ) -> None:
        self.count = count or worker_count()
        self._answer = answer
        self._job, self._setup, self._lock = job, msgspec.msgpack.encode(setup), lock
        self._pipes: list[WorkerPipes] = []
        self._idle: SimpleQueue[WorkerPipes] = SimpleQueue()

    def __enter__(self) -> Self:
        theirs: list[int] = []
        for _ in range(self.count):
            tasks, our_tasks = os.pipe()
            our_answers, answers = os.pipe()
            theirs += (tasks, answers)
            self._pipes.append(
                WorkerPipes(os.fdopen(our_tasks, "wb"), os.fdopen(our_answers, "rb"))
            )
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(os.getpid()), self._job, *map(str, theirs)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[self._lock, *theirs],
        )
        for handle in theirs:
            os.close(handle)
        for pipes in self._pipes:
            self._idle.put(pipes)
            with suppress(OSError):
                _send(pipes.tasks, self._setup)
        self._pool = ThreadPoolExecutor(self.count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        for pipes in self._pipes:
            with suppress(OSError):
                pipes.tasks.close()
        self._pool.shutdown(cancel_futures=True)
        try:
            self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipes in self._pipes:
            pipes.answers.close()

    def ask(self, task: Any) -> Answer:
        """Sends a task to the first idle process and returns its answer."""
        pipes = self._idle.get()
        try:
            return self._asked(pipes, task)
        finally:
            self._idle.put(pipes)

    def one(self) -> Callable[[Any], Answer]:
        """Reserves a process for the caller; returns a function that sends it a task."""
        return partial(self._asked, self._idle.get())

    def _asked(self, pipes: WorkerPipes, task: Any) -> Answer:
        try:
            _send(pipes.tasks, msgspec.msgpack.encode(task))
            reply = child_process.receive_frame(pipes.answers)
        except OSError:
            reply = None
        if reply is None:
            raise PartitaError(
                "A worker process of the move has ended; run the command again, and it goes on from"
                " here."
            )
        if reply.startswith(_REFUSAL):
            raise PartitaError(reply[1:].decode())
        return msgspec.msgpack.decode(memoryview(reply)[1:], type=self._answer)

    def in_order(self, tasks: Iterable[Any]) -> Iterator[Answer]:
        """Yields all answers in the order of the tasks."""
        waiting: deque[Future[Answer]] = deque()
        for task in tasks:
            waiting.append(self._pool.submit(self.ask, task))
            if len(waiting) > self.count * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _send(pipe: BinaryIO, content: bytes) -> None:
    pipe.write(child_process.framed(content))
    pipe.flush()


def serve(make: Callable[[bytes], Handler], pipes: WorkerPipes) -> None:
    """Answers tasks until the task pipe closes."""
    setup = child_process.receive_frame(pipes.tasks)
    if setup is None:
        return
    handle = make(setup)
    with suppress(BrokenPipeError):
        while (task := child_process.receive_frame(pipes.tasks)) is not None:
            try:
                reply = _ANSWER + msgspec.msgpack.encode(handle(task))
            except PartitaError as error:
                reply = _REFUSAL + str(error).encode()
            _send(pipes.answers, reply)


def main() -> None:
    """Runs as the first worker process and forks the others."""
    # Control-C reaches the whole process group; only the parent acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, job, *handles = sys.argv[1:]
    child_process.end_with(int(parent))
    make: Callable[[bytes], Handler] = import_module(job).worker
    # Keeps the garbage collector from touching shared pages, which would copy them.
    gc.freeze()
    pairs = list(zip(map(int, handles[::2]), map(int, handles[1::2]), strict=True))
    mine = pairs[0]
    first, children = os.getpid(), list[int]()
    for other in pairs[1:]:
        child = os.fork()
        if child == 0:
            child_process.end_with(first)
            mine, children = other, []
            break
        children.append(child)
    # A pipe only reports its end when no process has the other side open any more.
    for handle in {handle for pair in pairs for handle in pair} - set(mine):
        os.close(handle)
    serve(make, WorkerPipes(os.fdopen(mine[0], "rb"), os.fdopen(mine[1], "wb")))
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
