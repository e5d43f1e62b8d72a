"""The process of a companion: answers the requests that the server forwards to it.

It keeps its state in tables of that server, which it reaches over the wire. So it may be killed at
any moment, and the next process continues.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable
from typing import Protocol

import msgspec

from partita.client import Client
from partita.client.request_signing import Credentials
from partita.foundation import child_process
from partita.server.companions import companion_frames
from partita.server.http.http_messages import HttpResponse

logger = logging.getLogger(__name__)

SOCKET = 0
"""The server passes its end of the socket as the standard input."""
STOP_SECONDS = 1.0
"""The time in which requests are still answered after the server has closed its socket."""


class CompanionHandler(Protocol):
    """The interface of a companion's service."""

    async def open(self) -> None:
        """Resumes everything that was under way. Requests are answered from then on."""

    async def answer(self, operation: str, body: bytes) -> HttpResponse: ...

    def stop_waiting(self) -> None:
        """Answers the requests that wait for something to happen."""

    async def close(self) -> None: ...


def client_of(start: companion_frames.CompanionStart, connections: int) -> Client:
    """Returns a client of the server, with the companion's own key if signatures are required."""
    return Client(
        start.endpoint,
        connections=connections,
        credentials=Credentials(*start.credentials) if start.credentials else None,
        certificate=start.certificate,
        client_certificate=start.client_certificate,
        fence=start.fence,
    )


def main(
    name: str, server_pid: str, make: Callable[[companion_frames.CompanionStart], CompanionHandler]
) -> None:
    child_process.begin(int(server_pid))
    logging.basicConfig(format=f"partita {name}: %(message)s")
    # Ctrl-C reaches all processes of the terminal. The server handles it, and closes the connection
    # when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(socket.socket(fileno=os.dup(SOCKET)), make))


async def serve(
    connection: socket.socket, make: Callable[[companion_frames.CompanionStart], CompanionHandler]
) -> None:
    """Answers the server until it closes the connection."""
    reader, writer = await asyncio.open_connection(sock=connection)
    first = await companion_frames.read(reader)
    if first is None:
        return
    service = make(msgspec.json.decode(first.content, type=companion_frames.CompanionStart))
    opening = asyncio.create_task(service.open())
    # If opening fails, nothing can be answered. The server then starts another companion.
    opening.add_done_callback(lambda _: writer.close() if _has_failed(opening) else None)
    answering: set[asyncio.Task[None]] = set()

    async def answer(frame: companion_frames.Frame) -> None:
        await asyncio.shield(opening)
        response = await service.answer(*companion_frames.operation_and_body(frame))
        writer.write(companion_frames.answer(frame.number, response))

    try:
        while (frame := await companion_frames.read(reader)) is not None:
            task = asyncio.create_task(answer(frame))
            answering.add(task)
            task.add_done_callback(answering.discard)
        service.stop_waiting()
        if answering and opening.done():
            await asyncio.wait(answering, timeout=STOP_SECONDS)
    finally:
        for task in (opening, *answering):
            task.cancel()
        await asyncio.gather(opening, *answering, return_exceptions=True)
        await service.close()
        writer.close()


def _has_failed(opening: asyncio.Task[None]) -> bool:
    error = None if opening.cancelled() else opening.exception()
    if error is not None:
        logger.error("What was under way could not be resumed: %s", error)
    return error is not None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
