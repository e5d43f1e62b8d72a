"""The one place that picks an engine and wires the parts together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from partita.clock import system_clock
from partita.console.modes import OFF as NO_CONSOLE
from partita.console.modes import PATH as CONSOLE_PATH
from partita.database.capacity.ledger import OFF
from partita.database.capacity.schedules import ScheduledChange
from partita.database.changes.streams import last_sequence, streams_of
from partita.database.database import Database
from partita.database.operations.streams.records import sequence_number
from partita.database.operations.streams.streams import stream_arn
from partita.database.response_cache import RESPONSE_CACHE_BYTES
from partita.database.storage.embedded import EmbeddedEngine, opened_for_reading
from partita.database.storage.engine import Engine
from partita.database.storage.lmdb import LmdbEngine
from partita.functions.storage import TABLE as FUNCTIONS_TABLE
from partita.registry import ONLY_READS, PLAIN_READS, READS, WRITES
from partita.server.companions import Companion
from partita.server.dispatch import Dispatcher
from partita.server.frames import Start
from partita.server.http import lifecycle
from partita.server.http.hosts import ALLOW_HOST, Hosts
from partita.server.http.listener import Listener
from partita.server.http.messages import Handle, HttpRequest, Reply
from partita.server.http.origins import ALLOW_ORIGIN, Origins
from partita.server.large_requests.process import LargeRequests
from partita.server.monitoring.pages import PAGES
from partita.server.responses import EXPOSED_HEADERS, AwsResponses
from partita.settings import Settings, Trigger
from partita.workflows.running.storage.items import TABLE as WORKFLOWS_TABLE

NO_SETTINGS = Settings()
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
    settings: Settings = NO_SETTINGS,
    may_upload: bool | None = None,
    time_scale: float = 1.0,
    settings_folder: Path = Path(),
    allowed_origins: Sequence[str] = (),
    allowed_hosts: Sequence[str] = (),
    origin_setting: str = ALLOW_ORIGIN,
    host_remedy: str = ALLOW_HOST,
    console: str = NO_CONSOLE,
) -> None:
    """Serve the database of a folder, or one in memory, until the process is told to stop.

    `say` gets a line when requests are accepted. `response_cache_bytes` bounds the response cache;
    0 switches it off, without it there is a default. Functions are looked for in the folder of the
    settings, and files in it; clients may bring code of their own if `may_upload`, or without it if
    nobody else can reach the server. `time_scale` is how fast time passes in workflows. A lenient
    database creates tables that the service refuses and clients of DynamoDB Local ask for. Pages of
    the allowed origins may use the server from a browser; it answers to the allowed hosts besides
    the local ones. Refusals name what would allow another. `console` is what its pages may do.
    """
    _check_settings(settings)
    own_pages = b"" if console == NO_CONSOLE else CONSOLE_PATH
    origins = Origins(allowed_origins, EXPOSED_HEADERS, origin_setting, own_pages)
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
        since, last_sequences = 0.0, dict[str, str]()

        def start() -> bytes:
            return msgspec.json.encode(
                Start(
                    endpoint=f"http://{database.service.address}",
                    folder=str(settings_folder.absolute()),
                    settings=settings,
                    time_scale=time_scale,
                    operations=(*READS, *WRITES),
                    since=since,
                    last_sequences=last_sequences,
                    may_upload=hosts.is_local if may_upload is None else may_upload,
                )
            )

        workflows = Companion("partita.workflows", start)
        functions = Companion("partita.functions", start)
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
            functions,
            large_requests,
            {} if console == NO_CONSOLE else {CONSOLE_PATH[1:]: _console(database, console, hosts)},
        )

        async def stop() -> None:
            await asyncio.gather(workflows.stop(), functions.stop())

        def ready(url: str) -> None:
            database.service.address = url.removeprefix("http://")
            database.start()
            nonlocal since
            since = database.service.clock()
            last_sequences.update(_last_sequences(database, settings.triggers))
            # Something may be under way, or about to be called.
            if database.service.catalog.find(WORKFLOWS_TABLE) is not None:
                workflows.start()
            is_calling = settings.triggers or settings.schedules
            if is_calling or database.service.catalog.find(FUNCTIONS_TABLE) is not None:
                functions.start()
            say(f"Partita is ready on {url} ({_kept(data, durable=durable)})")

        try:
            listener = Listener(
                dispatcher.handle,
                AwsResponses(),
                hosts=hosts,
                origins=origins,
                count=dispatcher.metrics.count_connections,
            )
            await lifecycle.serve(listener, host, port, ready, stop)
        finally:
            await large_requests.stop()
            await stop()
            database.close()

    lifecycle.run(run)


def _last_sequences(database: Database, triggers: Sequence[Trigger]) -> Iterator[tuple[str, str]]:
    """What the streams have last that triggers read from now on."""
    for trigger in triggers:
        if trigger.table is None or trigger.starting_position != "LATEST":
            continue
        snapshot = database.reads.snapshot
        for stream in streams_of(snapshot, trigger.table):
            last = sequence_number(last_sequence(snapshot, stream.number))
            yield stream_arn(database.service, stream), last


def _check_settings(settings: Settings) -> None:
    """What a companion could not start with is told of now."""
    if settings.triggers:
        from partita.functions.mappings.filters import compile_filters

        for trigger in settings.triggers:
            compile_filters(trigger.filter_patterns)
    if settings.schedules:
        from partita.functions.schedules.expressions import parse

        for schedule in settings.schedules:
            parse(schedule.expression, schedule.timezone, system_clock())


def _console(database: Database, mode: str, hosts: Hosts) -> Handle:
    """The pages in a browser; their room is loaded when the first of them is asked for."""
    loaded: list[Handle] = []

    def handle(request: HttpRequest, reply: Reply) -> None:
        if not loaded:
            from partita.client import Client
            from partita.console.service import Console

            endpoint = f"http://{database.service.address}"
            client = Client(endpoint, tries=1)
            loaded.append(Console(client, endpoint, mode, hosts).handle)
        loaded[0](request, reply)

    return handle


def check(data: Path, say: Callable[[str], None]) -> bool:
    """Say what is wrong with a data folder, and how much was looked at; whether all is well."""
    from partita.database.check.check import check as check_folder
    from partita.database.check.findings import Folder

    with opened_for_reading(data) as snapshot:
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
