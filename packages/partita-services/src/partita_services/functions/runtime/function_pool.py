"""The processes of a function. Each runs one call at a time, and is kept for the next call.

Processes are started when calls need them, and end after they were idle for a while.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from partita.errors import TooManyRequestsException
from partita_services.functions.runtime.function_process import (
    FunctionProcess,
    FunctionSpec,
    InvocationOutcome,
)

PROCESSES_MAX = 8
"""The processes of a function without reserved concurrency; further calls wait."""
CORES = os.cpu_count() or 1
BUSY_SECONDS = 0.05
"""A call waits this long for a busy process before another one is started."""
CALLS_MAX = 1000
"""Running and waiting calls together: the concurrency that Lambda gives an account."""
IDLE_SECONDS_MAX = 600.0
IDLE_MAX = 64
"""Idle processes of all functions together that are kept; more are ended after a moment."""


class FunctionPool:
    """The processes of one function.

    `concurrency` is its reserved concurrency: one more call is refused. Without it, calls wait
    their turn.
    """

    def __init__(
        self, function: FunctionSpec, starts: asyncio.Lock, concurrency: int | None = None
    ) -> None:
        self._function = function
        self._starts = starts
        self._calls_max = CALLS_MAX if concurrency is None else concurrency
        self._calls = 0
        self._turns = asyncio.Semaphore(PROCESSES_MAX if concurrency is None else concurrency)
        self._processes: list[FunctionProcess] = []
        # The process that was used last is taken first, so that the others stay idle long enough to
        # be ended.
        self._idle: asyncio.LifoQueue[FunctionProcess] = asyncio.LifoQueue()

    @property
    def folder(self) -> Path:
        """The folder with the function's code."""
        return self._function.folder

    @property
    def is_idle(self) -> bool:
        return not self._calls

    async def call(self, event: bytes, request_id: str = "", **context: Any) -> InvocationOutcome:
        if self._calls >= self._calls_max:
            raise TooManyRequestsException(
                "Rate Exceeded.", Reason="ReservedFunctionConcurrentInvocationLimitExceeded"
            )
        self._calls += 1
        try:
            async with self._turns:
                return await self._call_process(event, request_id, context)
        finally:
            self._calls -= 1

    async def _call_process(
        self, event: bytes, request_id: str, context: dict[str, Any]
    ) -> InvocationOutcome:
        process = await self._take()
        try:
            return await process.call(event, request_id, **context)
        finally:
            self._idle.put_nowait(process)

    async def _take(self) -> FunctionProcess:
        """Returns an idle process, or a new one.

        More processes than cores only help functions that wait instead of computing. So they are
        started only when no process has become idle for a while.
        """
        while len(self._processes) >= CORES or not self._idle.empty():
            try:
                async with asyncio.timeout(BUSY_SECONDS):
                    return await self._idle.get()
            except TimeoutError:
                # More interpreters that start at once than cores would only delay each other.
                if sum(process.is_starting for process in self._processes) < CORES:
                    break
        process = FunctionProcess(self._function, self._starts)
        self._processes.append(process)
        return process

    def idle_since(self) -> list[float]:
        """When each running, idle process was used last, in the event loop's time."""
        return [
            process.used_at
            for process in self._processes
            if process.is_running and not process.is_called
        ]

    async def close_unused(self, since: float) -> None:
        """End the processes that were not called since then."""
        for process in self._processes:
            # They stay in the queue of idle processes, and start again with the next call.
            if process.used_at < since and not process.is_called:
                await process.close()

    async def close(self) -> None:
        for process in self._processes:
            await process.close()
