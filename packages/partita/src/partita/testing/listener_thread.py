"""An HTTP listener in a thread of this process, in front of a private database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread

from partita.server.http import process_lifecycle
from partita.server.http.cors import AllowedOrigins
from partita.server.http.http_messages import HttpRequest, Reply
from partita.server.http.listener import Listener
from partita.server.protocol.aws_responses import EXPOSED_HEADERS, AwsResponses
from partita.testing.private_database import Database

SWEEP_SECONDS = 1.0

Stop = Callable[[], object]


@contextmanager
def in_thread(
    database: Database, host: str, port: int, allowed_origins: Sequence[str] = ()
) -> Iterator[str]:
    listener = _listener(database, AllowedOrigins(allowed_origins, EXPOSED_HEADERS))
    started: Future[tuple[int, Stop]] = Future()

    async def run() -> None:
        await _serve(database, listener, host, port, started)

    thread = Thread(target=process_lifecycle.run, args=(run,), name="partita-server", daemon=True)
    thread.start()
    chosen, stop = started.result()
    address = f"[{host}]:{chosen}" if ":" in host else f"{host}:{chosen}"
    try:
        database.listens_at(address)
        yield f"http://{address}"
    finally:
        stop()
        thread.join()


def _listener(database: Database, origins: AllowedOrigins) -> Listener:
    def handle(request: HttpRequest, reply: Reply) -> None:
        reply(database.answer(request))

    count = database.metrics.count_connections
    return Listener(handle, AwsResponses(), origins=origins, count=count)


async def _serve(
    database: Database,
    listener: Listener,
    host: str,
    port: int,
    started: Future[tuple[int, Stop]],
) -> None:
    loop = asyncio.get_running_loop()
    try:
        chosen = await listener.start(host, port)
    except Exception as error:
        # Any error must reach the thread that waits for the start, or it would wait forever.
        started.set_exception(error)
        return
    stop = asyncio.Event()
    started.set_result((chosen, lambda: loop.call_soon_threadsafe(stop.set)))
    sweeps = loop.create_task(_sweep(database))
    await stop.wait()
    sweeps.cancel()
    await listener.stop()


async def _sweep(database: Database) -> None:
    while not database.is_closed:
        database.settle()
        await asyncio.sleep(SWEEP_SECONDS)
