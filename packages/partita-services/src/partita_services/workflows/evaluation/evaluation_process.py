"""An evaluation process, as seen by the process that answers requests."""

from __future__ import annotations

import asyncio
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO

from partita.foundation import child_process
from partita.foundation.child_process import framed, take_frame
from partita_services.workflows.evaluation.evaluation_messages import (
    PAGE,
    JobAnswer,
    WorkerSetup,
    decode_answer,
    encode,
)

MODULE = "partita_services.workflows.evaluation.evaluation_worker"
ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""The variables that the process inherits. Credentials are not among them."""


def _page_file() -> IO[bytes]:
    """A file for the shared page: in memory on Linux, because a container may have no writable
    folder."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("partita-workflows"), "r+b")
    return TemporaryFile()


class EvaluationProcess(asyncio.Protocol):
    """The connection to a child that evaluates jobs.

    `answered` is called with each answer, and `ended` once when no more answers will come.
    """

    def __init__(
        self, answered: Callable[[JobAnswer], None], ended: Callable[[EvaluationProcess], None]
    ) -> None:
        self._answered = answered
        self._ended = ended
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._page: mmap.mmap | None = None
        self.definitions: dict[str, int] = {}
        """The length of each definition that the child has in its cache, by digest."""

    async def start(self, setup: WorkerSetup, niceness: int) -> None:
        with _page_file() as file:
            file.truncate(mmap.PAGESIZE)
            # The child may be killed at any instruction, so it cannot report what it was doing. It
            # writes that into this page before each part of a job, and the page survives it.
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
            self._process, connection = await child_process.start(
                MODULE,
                *(str(file.fileno()), str(niceness)),
                # Expressions cannot read the environment, but a bug in a library could.
                environment={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                kept=(file.fileno(),),
            )
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, sock=connection)
        self.send(encode(setup))

    def send(self, content: bytes) -> None:
        assert self._transport is not None
        self._transport.write(framed(content))

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def exit_code(self) -> int:
        assert self._process is not None
        self.kill()
        return await self._process.wait()

    def under_way(self) -> tuple[int, int]:
        """The number of the job that the child began last, and of the part of the job it is in."""
        assert self._page is not None
        job, part = PAGE.unpack_from(self._page)
        return job, part

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (content := take_frame(self._received)) is not None:
            self._answered(decode_answer(content))

    def connection_lost(self, _: Exception | None) -> None:
        self._ended(self)
