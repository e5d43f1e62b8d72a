"""The processes of a function: each runs one call at a time, and is kept for the next.

Processes are started when they are needed, and end when they were not used for a while.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from partita.errors import TooManyRequestsException
from partita.functions.running.process import Function, FunctionProcess, Outcome

PROCESSES_MAX = 8
"""For a function without a limit of its own; further calls wait."""
CORES = os.cpu_count() or 1
BUSY_SECONDS = 0.05
"""How long a call waits for a busy process before another one is started."""
CALLS_MAX = 1000
"""Running and waiting: the concurrency that Lambda gives an account."""
IDLE_SECONDS_MAX = 600.0
IDLE_MAX = 64
"""Processes of all functions that are kept for the next call; more are ended after a moment."""


class Pool:
    """`concurrency` is how many calls may run at once; one more is refused. Without it, calls wait
    their turn."""

    def __init__(
        self, function: Function, starts: asyncio.Lock, concurrency: int | None = None
    ) -> None:
        self._function = function
        self._starts = starts
        self._calls_max = CALLS_MAX if concurrency is None else concurrency
        self._calls = 0
        self._turns = asyncio.Semaphore(PROCESSES_MAX if concurrency is None else concurrency)
        self._processes: list[FunctionProcess] = []
        self._idle: asyncio.LifoQueue[FunctionProcess] = asyncio.LifoQueue()

    @property
    def folder(self) -> Path:
        """Where its function's code is."""
        return self._function.folder

    @property
    def is_idle(self) -> bool:
        return not self._calls

    async def call(self, event: bytes, request_id: str = "", **context: Any) -> Outcome:
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
    ) -> Outcome:
        process = await self._take()
        try:
            return await process.call(event, request_id, **context)
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

    def idle_since(self) -> list[float]:
        """When each process that runs and is idle was used last, in the event loop's time."""
        return [
            process.used_at
            for process in self._processes
            if process.is_running and not process.is_called
        ]

    async def close_unused(self, since: float) -> None:
        """Those that nobody has called since then."""
        for process in self._processes:
            # They stay in the queue of the idle, and start again when they are called.
            if process.used_at < since and not process.is_called:
                await process.close()

    async def close(self) -> None:
        for process in self._processes:
            await process.close()
