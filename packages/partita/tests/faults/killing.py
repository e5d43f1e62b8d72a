"""A server that is killed while it is busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from testkit.servers import processes

BEGIN_SECONDS_MAX = 120
END_SECONDS_MAX = 120

Load = Callable[[], None]
"""Goes on until the server is gone."""


def kill_under(
    loads: Sequence[Load],
    server: processes.Server,
    seconds: float,
    has_begun: Callable[[], bool] = lambda: True,
) -> str:
    """kill -9 some seconds after the load has begun; what the server had said since its start."""
    with ThreadPoolExecutor(len(loads)) as pool:
        working = [pool.submit(load) for load in loads]
        try:
            deadline = time.monotonic() + BEGIN_SECONDS_MAX
            while not has_begun() and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(seconds)
        finally:
            server.process.kill()
        for one in working:
            one.result(timeout=END_SECONDS_MAX)
    return server.kill()
