"""The companion of a server: the process that runs workflows, so that they hold up nothing else.

The server starts it when it is first needed, hands it the requests of Step Functions' API and takes
back the answers. Everything it knows is in a table of that server, which it reaches over the wire:
it may be killed at any moment, and the next one goes on.
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
from partita.clock import system_clock
from partita.server import frames
from partita.server.frames import Told
from partita.workflows.api.machines import remove_later
from partita.workflows.api.registry import Api
from partita.workflows.api.service import Service
from partita.workflows.running.activities import Activities
from partita.workflows.running.engine import Engine
from partita.workflows.running.executions import Executions
from partita.workflows.running.functions import Functions
from partita.workflows.running.items import MACHINES, TABLE
from partita.workflows.running.records import DELETING, Machine
from partita.workflows.running.store import Store
from partita.workflows.running.tasks import Tasks
from partita.workflows.running.trials import Trials

logger = logging.getLogger(__name__)

SOCKET = 0
"""The server gives its end of the socket as the standard input."""
CONNECTIONS = 32
STOP_SECONDS = 1.0
"""How long requests are answered that came before the server hung up."""
PARENT_DEATH_SIGNAL = 1
MACHINES_PAGE = 1000


class Workflows:
    """All parts of it, wired together; also for programs that run workflows themselves."""

    def __init__(self, told: Told, table: str = TABLE) -> None:
        self.client = Client(told.endpoint, connections=CONNECTIONS)
        self._functions = Functions(told.functions, Path(told.folder))
        activities = Activities()
        store = Store(self.client, table)
        tasks = Tasks(self.client, store, self._functions, activities)
        engine = Engine(store, tasks, system_clock, told.time_scale)
        executions = tasks.executions = Executions(store, engine, system_clock)
        trials = Trials(tasks, system_clock, told.time_scale)
        self.service = Service(store, engine, executions, activities, trials, system_clock)
        self.api = Api(self.service)

    async def open(self) -> None:
        """Take up everything that was under way."""
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
    """Answer the server until it hangs up."""
    reader, writer = await asyncio.open_connection(sock=connection)
    first = await frames.read(reader)
    if first is None:
        return
    workflows = Workflows(msgspec.json.decode(first.content, type=Told))
    opening = asyncio.create_task(workflows.open())
    # Without it there is nothing to answer with: the server starts another companion.
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
        logger.error("Executions could not be taken up: %s", error)
    return error is not None


def main(server_pid: str) -> None:
    logging.basicConfig(format="partita workflows: %(message)s")
    _end_with(int(server_pid))
    # Ctrl-C is for the server, which hangs up when it is done.
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
    """Two companions must not run one beside the other, also when a server was killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != server_pid:
        sys.exit()
