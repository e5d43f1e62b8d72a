"""The service as one program that supervises its processes: database, web and counting.

A process that ends is started again, after a longer pause each time that it ends quickly. When the
program is asked to stop, it stops all of them, the database last.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import Callable, Sequence

from partita.errors import PartitaError
from partita.foundation import child_process

READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
PAUSE_SECONDS = 0.5
PAUSE_SECONDS_MAX = 10.0
STEADY_SECONDS = 10.0
"""A process that has run this long did not end quickly."""
URL = re.compile(r"http://\S+?:(\d+)")


class SupervisedProcess:
    """A process of the program, started again whenever it ends."""

    def __init__(self, arguments: Sequence[str], say: Callable[[str], None]) -> None:
        self._arguments = list(arguments)
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None
        self.url = ""

    async def start(self) -> None:
        """Returns when it is ready. When it is started again, it has the same port."""
        ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep_running(ready))
        try:
            await asyncio.wait_for(ready, READY_SECONDS_MAX)
        except TimeoutError as error:
            await self.stop()
            raise PartitaError(f"`partita {self._arguments[0]}` did not start.") from error

    async def stop(self) -> None:
        self._is_stopping = True
        if self._process is not None:
            await child_process.stop(self._process, STOP_SECONDS_MAX)
        if self._task is not None:
            await self._task

    async def _keep_running(self, ready: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        backoff = child_process.RestartBackoff(PAUSE_SECONDS, PAUSE_SECONDS_MAX)
        while not self._is_stopping:
            began = loop.time()
            await self._run(ready)
            if self._is_stopping:
                return
            is_steady = loop.time() - began > STEADY_SECONDS
            self._say(f"`partita {' '.join(self._arguments[:2])}` ended; starting it again.")
            await asyncio.sleep(backoff.next_seconds(was_healthy=is_steady))

    async def _run(self, ready: asyncio.Future[None]) -> None:
        process = self._process = await asyncio.create_subprocess_exec(
            # Not the modules of the folder in which it was started.
            *(sys.executable, "-P", "-m", "partita.cli"),
            *self._arguments,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C must not reach it: this program stops its processes in order.
            start_new_session=True,
        )
        assert process.stdout is not None
        async for line in process.stdout:
            text = line.decode("utf-8", "replace").rstrip()
            found = URL.search(text)
            if found and not ready.done():
                self.url = found[0]
                _set_option(self._arguments, "--port", found[1])
                ready.set_result(None)
            elif not found:
                self._say(text)
        await process.wait()


async def supervise(
    endpoint: str | None,
    database: Sequence[str],
    web: Sequence[str],
    counting: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Run until SIGTERM or Ctrl-C.

    `database`, `web` and `counting` are arguments of `partita`; a database is started only when
    there is no endpoint."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    processes: list[SupervisedProcess] = []
    try:
        if endpoint is None:
            server = await _start(database, say, processes)
            endpoint = server.url
        await _start([*counting, "--endpoint", endpoint], say, processes)
        front = await _start([*web, "--endpoint", endpoint], say, processes)
        say(f"Page hits are ready on {front.url} (database {endpoint})")
        await stop.wait()
    finally:
        for process in reversed(processes):
            await process.stop()


async def _start(
    arguments: Sequence[str], say: Callable[[str], None], processes: list[SupervisedProcess]
) -> SupervisedProcess:
    process = SupervisedProcess(arguments, say)
    processes.append(process)
    await process.start()
    return process


def _set_option(arguments: list[str], name: str, value: str) -> None:
    arguments[arguments.index(name) + 1] = value
