"""The one place that picks an engine and wires the parts together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from partita.operations.database import Database
from partita.operations.registry import READS, WRITES
from partita.server import lifecycle
from partita.server.dispatch import Dispatcher
from partita.server.http import Listener
from partita.storage.engine import Engine
from partita.storage.lmdb import LmdbEngine

MEMORY_FOLDER = Path("/dev/shm")


def serve(
    *,
    host: str,
    port: int,
    data: Path | None,
    in_memory: bool = False,
    transient_seconds: float = 0.0,
    say: Callable[[str], None],
) -> None:
    """Serve one database until the process is told to stop; `say` gets a line when it is ready."""
    with open_engine(None if in_memory else data) as engine:
        databases: list[Database] = []

        def make_listener(loop: asyncio.AbstractEventLoop) -> Listener:
            database = Database(
                engine,
                call_soon=loop.call_soon,
                call_from_thread=loop.call_soon_threadsafe,
                call_later=loop.call_later,
                transient_seconds=transient_seconds,
            )
            databases.append(database)
            dispatcher = Dispatcher(database, READS, WRITES)
            return Listener(dispatcher.handle, dispatcher.metrics)

        def ready(url: str) -> None:
            database = databases[0]
            database.service.address = url.removeprefix("http://")
            database.start()
            where = "in memory" if in_memory else f"data in {data}"
            say(f"Partita is ready on {url} ({where})")

        lifecycle.run(make_listener, host, port, ready)
        for database in databases:
            database.close()


@contextmanager
def open_engine(folder: Path | None) -> Iterator[Engine]:
    """The engine over a data folder, or over one that is forgotten afterwards."""
    if folder is not None:
        yield LmdbEngine(folder)
        return
    parent = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with TemporaryDirectory(prefix="partita-", dir=parent) as private:
        engine = LmdbEngine(Path(private), durable=False)
    # The folder is gone already: the open files live on until the process ends, however it ends.
    yield engine
