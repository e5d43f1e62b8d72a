"""Runs several calls at a time, and pauses until the service stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_all(calls: Iterable[Coroutine[Any, Any, Result]], at_a_time: int) -> list[Result]:
    """Runs calls concurrently, and returns their results in order. When a call fails, its error is
    raised after all have ended.

    A caller that starts over after a failure must not meet a write of the first attempt that is
    still on its way. `asyncio.gather` alone would leave such writes behind.
    """
    gate = asyncio.Semaphore(at_a_time)

    async def run(call: Coroutine[Any, Any, Result]) -> Result:
        async with gate:
            return await call

    results = await asyncio.gather(*map(run, calls), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Sleeps, but returns at once when the service is asked to stop."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
