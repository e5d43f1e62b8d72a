"""The one place that picks an engine and wires the parts together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from partita.clock import system_clock
from partita.database.capacity.ledger import OFF
from partita.database.capacity.schedules import ScheduledChange
from partita.database.database import Database
from partita.database.operations.context import Service
from partita.database.response_cache import RESPONSE_CACHE_BYTES
from partita.database.storage.embedded import EmbeddedEngine, opened_for_reading
from partita.database.storage.engine import Engine, Snapshot
from partita.database.storage.lmdb import LmdbEngine
from partita.errors import StorageError
from partita.registry import ONLY_READS, PLAIN_READS, READS, WRITES
from partita.server.companions import Companion
from partita.server.dispatch import Dispatcher
from partita.server.frames import Start
from partita.server.http import lifecycle
from partita.server.http.hosts import ALLOW_HOST, Hosts
from partita.server.http.listener import Listener
from partita.server.http.origins import ALLOW_ORIGIN, Origins
from partita.server.large_requests.process import LargeRequests
from partita.server.monitoring.pages import PAGES
from partita.server.responses import EXPOSED_HEADERS, AwsResponses
from partita.settings import Function, Trigger
from partita.workflows.running.storage.items import TABLE as WORKFLOWS_TABLE

if TYPE_CHECKING:
    from partita.streams.triggers.runner import Triggers

MEMORY_FOLDER = Path("/dev/shm")
STEP_FUNCTIONS = b"AWSStepFunctions"
"""How the targets of Step Functions' API begin."""


def serve(
    *,
    host: str,
    port: int,
    data: Path | None,
    say: Callable[[str], None],
    transient_seconds: float = 0.0,
    is_lenient: bool = False,
    durable: bool = True,
    capacity: str = OFF,
    response_cache_bytes: int | None = None,
    schedules: Sequence[ScheduledChange] = (),
    triggers: Sequence[Trigger] = (),
    functions: Sequence[Function] = (),
    time_scale: float = 1.0,
    settings_folder: Path = Path(),
    allowed_origins: Sequence[str] = (),
    allowed_hosts: Sequence[str] = (),
    origin_setting: str = ALLOW_ORIGIN,
    host_remedy: str = ALLOW_HOST,
) -> None:
    """Serve the database of a folder, or one in memory, until the process is told to stop.

    `say` gets a line when requests are accepted. `response_cache_bytes` bounds the response cache;
    0 switches it off, without it there is a default. Functions are looked for in the folder of the
    settings, and files in it. `time_scale` is how fast time passes in workflows. A lenient database
    creates tables that the service refuses and clients of DynamoDB Local ask for. Pages of the
    allowed origins may use the server from a browser; it answers to the allowed hosts besides the
    local ones. Refusals name what would allow another.
    """
    origins = Origins(allowed_origins, EXPOSED_HEADERS, origin_setting)
    hosts = Hosts(allowed_hosts, host_remedy)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        database = Database(
            open_engine(data, durable=durable),
            call_soon=loop.call_soon,
            call_from_thread=loop.call_soon_threadsafe,
            call_later=loop.call_later,
            clock=system_clock,
            transient_seconds=transient_seconds,
            is_lenient=is_lenient,
            capacity=capacity,
            schedules=schedules,
            response_cache_bytes=(
                RESPONSE_CACHE_BYTES if response_cache_bytes is None else response_cache_bytes
            ),
        )
        callers = _callers(database, triggers, settings_folder)
        workflows = _workflows(database.service, functions, time_scale, settings_folder)
        large_requests = LargeRequests(database)
        dispatcher = Dispatcher(
            database,
            READS,
            WRITES,
            ONLY_READS,
            PAGES,
            {name: partial(database.read_plainly, read) for name, read in PLAIN_READS.items()},
            database.response_caches,
            {STEP_FUNCTIONS: workflows},
            hosts,
            large_requests,
        )

        def ready(url: str) -> None:
            database.service.address = url.removeprefix("http://")
            database.start()
            for caller in callers:
                caller.start()
            if database.service.catalog.find(WORKFLOWS_TABLE) is not None:
                # Executions may be under way.
                workflows.start()
            say(f"Partita is ready on {url} ({_kept(data, durable=durable)})")

        try:
            listener = Listener(
                dispatcher.handle,
                AwsResponses(),
                hosts=hosts,
                origins=origins,
                count=dispatcher.metrics.count_connections,
            )
            await lifecycle.serve(listener, host, port, ready, workflows.stop)
        finally:
            await large_requests.stop()
            await workflows.stop()
            for caller in callers:
                await caller.stop()
            database.close()

    lifecycle.run(run)


def serve_shared(
    *,
    host: str,
    port: int,
    storage: str,
    say: Callable[[str], None],
    capacity: str = OFF,
    schedules: Sequence[ScheduledChange] = (),
    triggers: Sequence[Trigger] = (),
    functions: Sequence[Function] = (),
    time_scale: float = 1.0,
    settings_folder: Path = Path(),
    allowed_origins: Sequence[str] = (),
    allowed_hosts: Sequence[str] = (),
) -> None:
    """Serve a database in PostgreSQL that other servers may serve too, until told to stop."""
    from partita.database.shared.database import SharedDatabase, SharedOperations
    from partita.database.storage.postgresql.connections import place

    if triggers:
        raise StorageError("Triggers do not run with --storage: take them out of the settings.")
    hosts = Hosts(allowed_hosts, ALLOW_HOST)
    kept = place(storage)

    async def run() -> None:
        database = await SharedDatabase.open(
            storage, clock=system_clock, capacity=capacity, schedules=schedules
        )
        workflows = _workflows(database.service, functions, time_scale, settings_folder)
        operations = SharedOperations(database, READS, WRITES, ONLY_READS)
        dispatcher = Dispatcher(
            operations,
            {},
            operations.handlers,
            pages=PAGES,
            companions={STEP_FUNCTIONS: workflows},
            hosts=hosts,
        )

        def ready(url: str) -> None:
            database.service.address = url.removeprefix("http://")
            database.start()
            if database.service.catalog.find(WORKFLOWS_TABLE) is not None:
                workflows.start()
            say(f"Partita is ready on {url} ({kept})")

        try:
            listener = Listener(
                dispatcher.handle,
                AwsResponses(),
                hosts=hosts,
                origins=Origins(allowed_origins, EXPOSED_HEADERS, ALLOW_ORIGIN),
                count=dispatcher.metrics.count_connections,
            )
            await lifecycle.serve(listener, host, port, ready, workflows.stop)
        finally:
            await workflows.stop()
            await database.close()

    lifecycle.run(run)


def _callers(
    database: Database, triggers: Sequence[Trigger], settings_folder: Path
) -> tuple[Triggers, ...]:
    """What calls the functions of triggers; most servers have none, and start without its room."""
    if not triggers:
        return ()
    from partita.streams.triggers.runner import Triggers

    return (Triggers(database, triggers, settings_folder),)


def _workflows(
    service: Service, functions: Sequence[Function], time_scale: float, settings_folder: Path
) -> Companion:
    """The process that answers for Step Functions' API; it gets the address of the database."""

    def start() -> bytes:
        endpoint = f"http://{service.address}"
        folder = str(settings_folder.absolute())
        return msgspec.json.encode(Start(endpoint, folder, tuple(functions), time_scale))

    return Companion("partita.workflows", start)


def check(data: Path, say: Callable[[str], None]) -> bool:
    """Say what is wrong with a data folder, and how much was looked at; whether all is well."""
    with opened_for_reading(data) as snapshot:
        return _check(snapshot, say)


def check_storage(url: str, say: Callable[[str], None]) -> bool:
    """The same for what servers share in PostgreSQL."""
    from partita.database.shared.stored_snapshot import stored_snapshot

    with stored_snapshot(url) as snapshot:
        return _check(snapshot, say)


def _check(snapshot: Snapshot, say: Callable[[str], None]) -> bool:
    from partita.database.check.check import check as check_folder
    from partita.database.check.findings import Folder

    folder = Folder(snapshot)
    findings = 0
    for finding in check_folder(folder):
        findings += 1
        say(str(finding))
    tables = len(folder.tables)
    looked_at = f"{tables} tables, {folder.items} items, {folder.entries} index entries"
    if folder.changes:
        looked_at += f", {folder.changes} changes"
    if folder.records:
        looked_at += f", {folder.records} records"
    say(f"{looked_at} checked: {f'{findings} findings' if findings else 'no findings'}.")
    return not findings


def _kept(data: Path | None, *, durable: bool) -> str:
    """What becomes of the data, in words for the ready line."""
    if data is None:
        return "in memory"
    if durable:
        return f"data in {data}"
    return f"data in {data}, durability relaxed: a crash of the machine can lose it"


def open_engine(folder: Path | None, *, durable: bool = True) -> Engine:
    """The engine over a data folder, or over one that nobody sees."""
    if folder is not None:
        return EmbeddedEngine(folder, durable=durable)
    parent = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with TemporaryDirectory(prefix="partita-", dir=parent) as private:
        # The folder goes at once: the open files live on until the process ends, however it ends.
        return LmdbEngine(Path(private), durable=False)
