"""The companion of a server: a separate process that runs workflows, so that they block nothing.

The server starts it when it is first needed, and passes it the requests of Step Functions' API. Its
state is in a table of that server, which it reaches over the wire: it may be killed at any moment,
and the next one continues.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from partita.client import Client
from partita.client.signing import Credentials
from partita.clock import system_clock
from partita.server import frames
from partita.workflows.api.machines import remove_later
from partita.workflows.api.registry import Api
from partita.workflows.api.service import Service
from partita.workflows.running.engine import Engine
from partita.workflows.running.executions import Executions
from partita.workflows.running.storage.items import MACHINES, TABLE
from partita.workflows.running.storage.records import DELETING, Machine
from partita.workflows.running.storage.store import Store
from partita.workflows.running.tasks.activities import Activities
from partita.workflows.running.tasks.functions import Functions
from partita.workflows.running.tasks.runner import TaskRunner
from partita.workflows.running.trials import Trials

logger = logging.getLogger(__name__)

SOCKET = 0
"""The server passes its end of the socket as the standard input."""
CONNECTIONS = 32
STOP_SECONDS = 1.0
"""How long requests are still answered after the server has closed the connection."""
PARENT_DEATH_SIGNAL = 1
MACHINES_PAGE = 1000


class Workflows:
    """The workflow engine with its API; programs can also run it in their own process."""

    def __init__(self, start: frames.Start, table: str = TABLE) -> None:
        credentials = Credentials(*start.credentials) if start.credentials else None
        self.client = Client(
            start.endpoint,
            connections=CONNECTIONS,
            credentials=credentials,
            certificate=start.certificate,
            client_certificate=start.client_certificate,
        )
        self._functions = Functions(start.functions, Path(start.folder))
        activities = Activities()
        store = Store(self.client, table)
        tasks = TaskRunner(self.client, store, self._functions, activities)
        engine = Engine(store, tasks, system_clock, start.time_scale)
        executions = tasks.executions = Executions(store, engine, system_clock)
        trials = Trials(tasks, system_clock, start.time_scale)
        self.service = Service(store, engine, executions, activities, trials, system_clock)
        self.api = Api(self.service)

    async def open(self) -> None:
        """Resume everything that was under way."""
        service = self.service
        await service.store.prepare()
        await service.engine.recover()
        after = None
        while True:
            machines, after = await service.store.page(MACHINES, Machine, MACHINES_PAGE, after)
            for machine in machines:
                if machine.status == DELETING:
                    remove_later(service, machine.name)
            if after is None:
                return

    async def close(self) -> None:
        await self.service.engine.close()
        await self._functions.close()
        await self.client.close()


async def serve(connection: socket.socket) -> None:
    """Answer the server until it closes the connection."""
    reader, writer = await asyncio.open_connection(sock=connection)
    first = await frames.read(reader)
    if first is None:
        return
    workflows = Workflows(msgspec.json.decode(first.content, type=frames.Start))
    opening = asyncio.create_task(workflows.open())
    # If it fails, nothing can be answered: the server starts another companion.
    opening.add_done_callback(lambda _: writer.close() if _has_failed(opening) else None)
    answering: set[asyncio.Task[None]] = set()

    async def answer(frame: frames.Frame) -> None:
        await asyncio.shield(opening)
        status, body = await workflows.api.answer(*frames.operation_and_body(frame))
        writer.write(frames.encode(frames.Frame(frame.number, status, body)))

    try:
        while (frame := await frames.read(reader)) is not None:
            task = asyncio.create_task(answer(frame))
            answering.add(task)
            task.add_done_callback(answering.discard)
        workflows.service.activities.close()
        if answering and opening.done():
            await asyncio.wait(answering, timeout=STOP_SECONDS)
    finally:
        for task in (opening, *answering):
            task.cancel()
        await asyncio.gather(opening, *answering, return_exceptions=True)
        await workflows.close()
        writer.close()


def _has_failed(opening: asyncio.Task[None]) -> bool:
    error = None if opening.cancelled() else opening.exception()
    if error is not None:
        logger.error("Executions could not be resumed: %s", error)
    return error is not None


def main(server_pid: str) -> None:
    logging.basicConfig(format="partita workflows: %(message)s")
    _end_with(int(server_pid))
    # Ctrl-C is for the server, which closes the connection when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(socket.socket(fileno=os.dup(SOCKET))))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _end_with(server_pid: int) -> None:
    """End with the server even if it is killed: two companions must not run at the same time."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != server_pid:
        sys.exit()
