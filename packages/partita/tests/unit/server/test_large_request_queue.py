"""The queue of large requests, without a process that decides them."""

from __future__ import annotations

import asyncio
from time import sleep
from typing import Any

import pytest

from partita.server.large_requests import large_request_queue
from partita.server.large_requests.large_request_queue import LargeRequest, LargeRequestQueue


class Caller:
    whose = ""


@pytest.mark.parametrize("is_before", [True, False])
def test_a_request_that_comes_as_the_idle_time_ends_is_taken(
    monkeypatch: pytest.MonkeyPatch, *, is_before: bool
) -> None:
    """Just before the waiting is cancelled, or just after: its task still counts as running."""
    given: Any = LargeRequest("PutItem", b"", Caller(), print, print)  # type: ignore[arg-type]

    async def run() -> None:
        monkeypatch.setattr(large_request_queue, "IDLE_SECONDS_MAX", 0.05)
        queue = LargeRequestQueue(None)  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        if is_before:
            loop.call_later(0.04999, queue._waiting.put, given)
        waiting = asyncio.create_task(queue._next())
        await asyncio.sleep(0)
        if not is_before:
            loop.call_later(0.0501, queue._waiting.put, given)
        # Both timers are due in one round of the loop.
        loop.call_later(0.02, time_passes)
        assert await waiting is given

    asyncio.run(run())


def time_passes() -> None:
    sleep(0.06)
