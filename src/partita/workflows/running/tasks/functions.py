"""The functions that tasks call: those of the settings, and those of installed packages.

A package provides one as an entry point of the group `partita.functions`. A process runs one call
at a time; processes are started when they are needed and kept for the next call.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from partita.functions.process import Function, FunctionError, FunctionProcess
from partita.settings import Function as Setting
from partita.workflows.language.errors import StateError
from partita.workflows.running.arns import function_arn, function_name

GROUP = "partita.functions"
PROCESSES_MAX = 8
"""For a function without a limit of its own; further calls wait."""
CORES = os.cpu_count() or 1
BUSY_SECONDS = 0.05
"""How long a call waits for a busy process before another one is started."""
CALLS_MAX = 1000
"""Running and waiting: the concurrency that Lambda gives an account."""


class Functions:
    """By name. Functions of the settings take precedence over those of packages."""

    def __init__(self, functions: Iterable[Setting], folder: Path) -> None:
        starts = asyncio.Lock()
        offered = [
            Setting(name=point.name, handler=point.value) for point in entry_points(group=GROUP)
        ]
        self._calls: set[asyncio.Task[Any]] = set()
        self._pools = {
            setting.name: _Pool(setting, folder, starts) for setting in (*offered, *functions)
        }

    async def call(self, resource: str, event: Any) -> Any:
        """The result of a function. Raises StateError when it fails."""
        pool = self._pools.get(function_name(resource) or "")
        if pool is None:
            raise StateError(
                "Lambda.ResourceNotFoundException",
                f"Function not found: {resource} (Service: Lambda, Status Code: 404)",
            )
        call = asyncio.create_task(pool.call(json.dumps(event).encode()))
        self._calls.add(call)
        call.add_done_callback(self._forget)
        try:
            # A function runs on even when nobody waits for it any more, as on Lambda.
            return await asyncio.shield(call)
        except FunctionError as error:
            raise StateError(error.error_type, json.dumps(error.content)) from error

    def _forget(self, call: asyncio.Task[Any]) -> None:
        """Retrieve its error, or asyncio would log it when nobody waited for the call."""
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()

    async def close(self) -> None:
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))


class _Pool:
    """The processes of one function."""

    def __init__(self, setting: Setting, folder: Path, starts: asyncio.Lock) -> None:
        self._function = Function(
            setting.name,
            setting.handler,
            folder,
            setting.timeout_seconds,
            function_arn(setting.name),
            setting.environment,
        )
        self._starts = starts
        limit = setting.concurrency
        self._calls_max = CALLS_MAX if limit is None else limit
        self._calls = 0
        self._turns = asyncio.Semaphore(PROCESSES_MAX if limit is None else limit)
        self._processes: list[FunctionProcess] = []
        self._idle: asyncio.LifoQueue[FunctionProcess] = asyncio.LifoQueue()

    async def call(self, event: bytes) -> Any:
        if self._calls >= self._calls_max:
            raise StateError(
                "Lambda.TooManyRequestsException",
                "Rate Exceeded. (Service: Lambda, Status Code: 429)",
            )
        self._calls += 1
        try:
            async with self._turns:
                return await self._call_process(event)
        finally:
            self._calls -= 1

    async def _call_process(self, event: bytes) -> Any:
        process = await self._take()
        try:
            return await process.call(event)
        finally:
            self._idle.put_nowait(process)

    async def _take(self) -> FunctionProcess:
        """An idle process, or a new one. More processes than cores help only functions that wait
        rather than compute, so they are started only when none becomes idle for a while.
        """
        while len(self._processes) >= CORES or not self._idle.empty():
            try:
                async with asyncio.timeout(BUSY_SECONDS):
                    return await self._idle.get()
            except TimeoutError:
                if sum(process.is_starting for process in self._processes) < CORES:
                    break
        process = FunctionProcess(self._function, self._starts)
        self._processes.append(process)
        return process

    async def close(self) -> None:
        for process in self._processes:
            await process.close()
