"""Runs several calls at a time, none of which outlives the failure of another.

A caller that starts over after a failure must not meet a write of the first attempt that is still
on its way. `asyncio.gather` alone would leave such writes behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_all(calls: Iterable[Coroutine[Any, Any, Result]], at_a_time: int) -> list[Result]:
    """Returns the results in order. When a call fails, its error is raised after all have
    ended."""
    gate = asyncio.Semaphore(at_a_time)

    async def run(call: Coroutine[Any, Any, Result]) -> Result:
        async with gate:
            return await call

    results = await asyncio.gather(*map(run, calls), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
