"""A companion: a process beside the server that answers the requests of another AWS service.

It starts with the first request for it, and starts again whenever it ends. Requests that it has not
answered by then get a 500, after which clients try again.
"""

from __future__ import annotations

import asyncio
import logging
import os
from asyncio.subprocess import Process
from collections.abc import Callable, Collection, Mapping
from itertools import count

from partita.foundation import child_process
from partita.server.admission import Forwarded
from partita.server.companions import companion_frames
from partita.server.http.http_messages import HttpResponse, Reply
from partita.server.protocol.aws_responses import JSON_1_0

logger = logging.getLogger(__name__)

REST_SECONDS, REST_SECONDS_MAX = 0.2, 30.0
"""The pause before a companion that ended by itself is started again. It doubles while the
companion never answers."""
STOP_SECONDS_MAX = 5.0
SECRETS = ("PARTITA_ROOT_", "PARTITA_SERVE_")
"""Prefixes of environment variables that only the server may see."""
GONE = b'{"__type":"InternalServerError","message":"The process that answers this has ended."}'


class CompanionProcess:
    """Runs `python -m module` as a child process, forwards requests to it, and restarts it.

    `first` returns the content of the first frame that the process gets. `withheld` are names of
    environment variables with further secrets of the server.
    """

    def __init__(
        self, module: str, first: Callable[[], bytes], withheld: Collection[str] = ()
    ) -> None:
        self._module = module
        self._first = first
        self._withheld = withheld
        self._numbers = count(1)
        self._unsent: list[bytes] = []
        self._replies: dict[int, Reply] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._running: asyncio.Task[None] | None = None
        self._has_answered = False
        self._is_stopping = False

    def forward(self, forwarded: Forwarded, reply: Reply) -> None:
        if self._is_stopping:
            reply(HttpResponse(500, GONE, JSON_1_0))
            return
        number = next(self._numbers) & 0xFFFFFFFF
        self._replies[number] = reply
        request = companion_frames.request(number, forwarded.operation, forwarded.body)
        if self._writer is None:
            self._unsent.append(request)
            self.start()
        else:
            self._writer.write(request)

    def start(self) -> None:
        if self._running is None:
            self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stops the process, after it has answered what it can answer at once."""
        self._is_stopping = True
        if self._running is None:
            return
        if self._writer is None:
            self._running.cancel()
        else:
            self._writer.write_eof()
        await asyncio.wait([self._running], timeout=STOP_SECONDS_MAX)
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        backoff = child_process.RestartBackoff(REST_SECONDS, REST_SECONDS_MAX)
        while not self._is_stopping:
            self._has_answered = False
            try:
                await self._live()
            except OSError as error:
                logger.error("%s could not be started: %s.", self._module, error)
            if self._is_stopping:
                return
            logger.error("%s has ended; it is started again.", self._module)
            await asyncio.sleep(backoff.next_seconds(was_healthy=self._has_answered))

    async def _live(self) -> None:
        """Runs the process once, from its start to its end."""
        process, connection = await child_process.start(
            self._module, environment=without_secrets(os.environ, self._withheld)
        )
        try:
            reader, self._writer = await asyncio.open_connection(sock=connection)
            self._writer.write(companion_frames.encode(companion_frames.Frame(0, 0, self._first())))
            unsent, self._unsent = self._unsent, []
            self._writer.writelines(unsent)
            while (frame := await companion_frames.read(reader)) is not None:
                self._has_answered = True
                reply = self._replies.pop(frame.number, None)
                if reply is not None:
                    reply(companion_frames.response_in(frame))
        finally:
            await self._end(process)

    async def _end(self, process: Process) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        replies, self._replies = self._replies, {}
        for reply in replies.values():
            reply(HttpResponse(500, GONE, JSON_1_0))
        await child_process.reap(process, STOP_SECONDS_MAX)


def without_secrets(environment: Mapping[str, str], withheld: Collection[str]) -> dict[str, str]:
    """Returns the environment of companions: the server's without its secrets. The functions that
    companions run inherit it, and cannot see more."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(SECRETS) and name not in withheld
    }
