"""A server that is killed while it is busy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from .. import processes

END_SECONDS_MAX = 60

Load = Callable[[], None]
"""Goes on until the server is gone."""


def kill_under(loads: Sequence[Load], server: processes.Server, seconds: float) -> str:
    """kill -9 after some seconds; what the server had said after its ready line."""
    with ThreadPoolExecutor(len(loads)) as pool:
        working = [pool.submit(load) for load in loads]
        threading.Timer(seconds, server.process.kill).start()
        for one in working:
            one.result(timeout=END_SECONDS_MAX)
    return server.kill()
