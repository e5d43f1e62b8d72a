"""A process that computes, as the process that answers sees it."""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO

from partita.workflows.evaluation.messages import (
    LENGTH,
    PAGE,
    Answer,
    Setup,
    decode_answer,
    encode,
    framed,
)

MODULE = "partita.workflows.evaluation.worker"
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
        ours, theirs = socket.socketpair()
        try:
            with theirs, _page_file() as file:
                file.truncate(mmap.PAGESIZE)
                self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
                numbers = (file.fileno(), niceness, os.getpid())
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", MODULE, *map(str, numbers)),
                    stdin=theirs.fileno(),
                    env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                    pass_fds=(file.fileno(),),
                )
        except BaseException:
            ours.close()
            raise
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, sock=ours)
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
        received = self._received
        received += data
        place = 0
        while len(received) - place >= LENGTH.size:
            end = place + LENGTH.size + LENGTH.unpack_from(received, place)[0]
            if len(received) < end:
                break
            answer = decode_answer(received[place + LENGTH.size : end])
            place = end
            self._answered(answer)
        del received[:place]

    def connection_lost(self, _: Exception | None) -> None:
        self._ended(self)
