"""The process that evaluates the States Language. It has no credentials, and the kernel ends it
when a job takes too much time or memory.

    python -m partita_services.workflows.evaluation.evaluation_worker PARENT PAGE NICENESS

`evaluation_process.py` starts it, with a socket as its standard input. PAGE is the descriptor of a
page of shared memory, in which it notes the job that it is working on. It ends when the socket is
closed.
"""

from __future__ import annotations

import gc
import mmap
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from time import monotonic, process_time

from partita.foundation import child_process
from partita.foundation.child_process import framed, take_frame
from partita.foundation.service_limits import MB
from partita_services.workflows.evaluation.evaluation_jobs import EvaluationJobs
from partita_services.workflows.evaluation.evaluation_messages import (
    PAGE,
    JobAnswer,
    JobOrder,
    WorkerSetup,
    decode_order,
    decode_setup,
    encode,
)
from partita_services.workflows.language import processor_meter
from partita_services.workflows.running.tasks.integrations import ServerAbilities

MEMORY_BYTES_MAX = 512 * MB
"""The memory that a job may allocate on top of what the process has after its start."""
RECEIVE_BYTES = 1 * MB
ANSWERS_SECONDS_MAX = 0.01
"""Answers are sent together while further orders wait, but no later than this."""


class EvaluationWorker:
    def __init__(self, connection: socket.socket, page: mmap.mmap) -> None:
        self._connection = connection
        self._page = page
        self._received = bytearray()
        self._job = 0
        self._answers: list[bytes] = []
        self._answers_since = 0.0

    def run(self) -> None:
        setup = decode_setup(self._read())
        jobs = EvaluationJobs(_abilities(setup))
        while True:
            order = decode_order(self._read())
            if order.forgets:
                jobs.forget()
            self._do(order, jobs, setup)

    def _do(self, order: JobOrder, jobs: EvaluationJobs, setup: WorkerSetup) -> None:
        self._job = order.number
        self._announce(0)
        metered = processor_meter.ProcessorMeter(setup.turn_seconds, order.broken, self._announce)
        # The default action of the signal ends the process, wherever it is.
        signal.setitimer(signal.ITIMER_PROF, setup.seconds_max)
        began = process_time()
        outcome = jobs.run(order.job, metered)
        answer = framed(encode(JobAnswer(order.number, process_time() - began, outcome)))
        # Encoding the answer counts as well, so the timer is stopped only now.
        signal.setitimer(signal.ITIMER_PROF, 0)
        if not self._answers:
            self._answers_since = monotonic()
        self._answers.append(answer)
        if monotonic() - self._answers_since > ANSWERS_SECONDS_MAX:
            self._send()

    def _announce(self, part: int) -> None:
        PAGE.pack_into(self._page, 0, self._job, part)

    def _send(self) -> None:
        if self._answers:
            self._connection.sendall(b"".join(self._answers))
            self._answers.clear()

    def _read(self) -> bytes:
        """Returns the next message. Ends the process when the connection is closed."""
        while (content := take_frame(self._received)) is None:
            # Nobody else would send the answers while this process waits.
            self._send()
            received = self._connection.recv(RECEIVE_BYTES)
            if not received:
                raise SystemExit
            self._received += received
        return content


def _abilities(setup: WorkerSetup) -> ServerAbilities:
    operations = None if setup.operations is None else frozenset(setup.operations)
    return ServerAbilities(operations, setup.may_call, setup.stand_ins)


def _limit_memory() -> None:
    """Sets RLIMIT_AS. Systems without it (macOS) run jobs without a limit."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm") as file:
            # RLIMIT_AS limits all mapped memory, so what the libraries have mapped already is
            # added.
            taken = int(file.read().split()[0]) * resource.getpagesize()
        most = taken + MEMORY_BYTES_MAX
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(parent: str, page_file: str, niceness: str) -> None:
    child_process.begin(int(parent), int(page_file))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A systemd service may lack the permission to change its niceness.
    with suppress(OSError):
        os.nice(int(niceness))
    connection = socket.socket(fileno=os.dup(0))
    page = mmap.mmap(int(page_file), mmap.PAGESIZE)
    # A library that runs out of memory prints that before it aborts. The parent logs it anyway.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _limit_memory()
    # Everything imported so far stays alive: the garbage collector need not visit it again.
    gc.freeze()
    EvaluationWorker(connection, page).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
