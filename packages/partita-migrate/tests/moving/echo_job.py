"""A job for worker processes that answers with the task and its process id."""

from __future__ import annotations

import os
import signal

import msgspec

from partita.errors import PartitaError
from partita_migrate.moving.processes.worker_processes import Handler

DIE, REFUSE = "die", "refuse"


def worker(content: bytes) -> Handler:
    setup = msgspec.msgpack.decode(content)

    def handle(task: bytes) -> tuple[str, int]:
        asked = msgspec.msgpack.decode(task)
        if asked == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        if asked == REFUSE:
            raise PartitaError("That is refused.")
        return f"{setup} {asked}", os.getpid()

    return handle
