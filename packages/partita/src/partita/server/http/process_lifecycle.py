"""The lifecycle of a server process: start, report readiness, serve until a signal, stop."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from ssl import SSLContext
from typing import Any, TypeVar

from partita.server.http.listener import Listener

T = TypeVar("T")

GC_OBJECTS = 10_000
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a main coroutine on uvloop, or on asyncio's own loop where uvloop is not installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def serve(
    listener: Listener,
    host: str,
    port: int,
    ready: Callable[[str], None],
    before_stop: Callable[[], Coroutine[Any, Any, None]] | None = None,
    tls: SSLContext | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM. `ready` is called with the URL once requests are accepted.

    `before_stop` runs while the server still answers: for child processes that need the server to
    finish their own work. With `tls`, the server speaks HTTPS.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    chosen = await listener.start(host, port, tls)
    _allow_many_connections()
    # Objects that exist by now live as long as the process, so the cyclic garbage collector need
    # not visit them. Requests leave no cycles behind, so it may run less often than by default.
    gc.freeze()
    gc.set_threshold(GC_OBJECTS)
    ready(f"{'https' if tls else 'http'}://{_shown_host(host)}:{chosen}")
    await stop.wait()
    if before_stop is not None:
        await before_stop()
    await listener.stop()


def _allow_many_connections() -> None:
    """Raises the soft limit of open files to the hard limit; it is often only a thousand."""
    try:
        import resource
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _shown_host(host: str) -> str:
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
