"""A process that computes, as the process that answers sees it."""

from __future__ import annotations

import asyncio
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO

from partita import child_process
from partita.child_process import framed, take_frame
from partita_services.workflows.evaluation.messages import (
    PAGE,
    Answer,
    Setup,
    decode_answer,
    encode,
)

MODULE = "partita_services.workflows.evaluation.worker"
ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""What it is given of the environment: no secrets."""


def _page_file() -> IO[bytes]:
    """In memory where the system has such files: a container may have no folder to write to."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("partita-workflows"), "r+b")
    return TemporaryFile()


class Process(asyncio.Protocol):
    """`answered` is called with each answer, and `ended` when there will be none any more."""

    def __init__(
        self, answered: Callable[[Answer], None], ended: Callable[[Process], None]
    ) -> None:
        self._answered = answered
        self._ended = ended
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._page: mmap.mmap | None = None
        self.definitions: dict[str, int] = {}
        """The lengths of the definitions that it has, by their digests."""

    async def start(self, setup: Setup, niceness: int) -> None:
        with _page_file() as file:
            file.truncate(mmap.PAGESIZE)
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
            self._process, connection = await child_process.start(
                MODULE,
                *(str(file.fileno()), str(niceness)),
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
        """The number of the job that it began last, and of the part of it."""
        assert self._page is not None
        job, part = PAGE.unpack_from(self._page)
        return job, part

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (content := take_frame(self._received)) is not None:
            self._answered(decode_answer(content))

    def connection_lost(self, _: Exception | None) -> None:
        self._ended(self)
