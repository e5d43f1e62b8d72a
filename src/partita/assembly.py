"""The one place that picks an engine and wires the parts together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

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
from partita.database.recovery.buckets import Buckets
from partita.database.response_cache import RESPONSE_CACHE_BYTES
from partita.database.storage.archive import Archive, FolderArchive
from partita.database.storage.embedded import EmbeddedEngine, opened_for_reading
from partita.database.storage.engine import Engine
from partita.database.storage.lmdb import LmdbEngine
from partita.errors import PartitaError
from partita.functions.storage import TABLE as FUNCTIONS_TABLE
from partita.registry import ONLY_READS, PLAIN_READS, READS, WRITES, forwarded_rights, rights
from partita.server.companions import Companion
from partita.server.dispatch import Dispatcher
from partita.server.frames import Start
from partita.server.http import lifecycle
from partita.server.http.hosts import ALLOW_HOST, Hosts, is_local
from partita.server.http.listener import Listener
from partita.server.http.messages import Handle, HttpRequest, Reply
from partita.server.http.origins import ALLOW_ORIGIN, Origins
from partita.server.large_requests.process import LargeRequests
from partita.server.monitoring.pages import PAGES
from partita.server.protocol.model import LAMBDA, SCHEDULER
from partita.server.responses import EXPOSED_HEADERS, AwsResponses
from partita.settings import Settings, Trigger
from partita.workflows.running.storage.items import TABLE as WORKFLOWS_TABLE

if TYPE_CHECKING:
    from partita.server.security.access import Access
    from partita.server.security.audit.events import Sampled
    from partita.server.security.audit.recorder import Recorder
    from partita.server.security.callers import Caller
    from partita.server.security.gate import Gate
    from partita.server.security.limits import LimitSettings
    from partita.server.security.tls import Certificate, Tls

NO_SETTINGS = Settings()
MEMORY_FOLDER = Path("/dev/shm")
RECOVERY = "recovery"
"""The folder of the archive, in the data folder."""
AUDIT = "audit"
"""The folder of the audit log, in the data folder."""
UNPROTECTED = (
    "\n"
    "  *********************************************************************************\n"
    "  WARNING: this server listens on {host}, and asks nobody who they are. Whoever can\n"
    "  reach it can read, change and delete all data. Start it with --auth, or on 127.0.0.1.\n"
    "  *********************************************************************************\n"
)
STEP_FUNCTIONS = b"AWSStepFunctions"
"""How the targets of Step Functions' API begin."""
STATES = "states"
READ_STREAMS = (
    *("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"),
    *("dynamodb:ListStreams", "kinesis:DescribeStream", "kinesis:DescribeStreamSummary"),
    *("kinesis:GetRecords", "kinesis:GetShardIterator", "kinesis:ListShards"),
)
SEND = ("kinesis:PutRecord", "lambda:InvokeFunction")
SERVICE_RIGHTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    STATES: ((WORKFLOWS_TABLE,), SEND),
    LAMBDA: ((FUNCTIONS_TABLE,), (*READ_STREAMS, *SEND)),
    SCHEDULER: ((), ("states:StartExecution", *SEND)),
}
"""The tables of the companions' services, and what else they may do for the settings: read what
triggers read, and call what sinks and schedules name."""


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
    auth: bool = False,
    users: Path | None = None,
    tls: Certificate | None = None,
    audit_data: Sequence[Sampled] = (),
    limits: LimitSettings | None = None,
    warn: Callable[[str], None] | None = None,
) -> None:
    """Serve the database of a folder, or one in memory, until the process is told to stop.

    `say` gets a line when requests are accepted. `response_cache_bytes` bounds the response cache;
    0 switches it off, without it there is a default. Functions are looked for in the folder of the
    settings, and files in it; clients may bring code of their own if `may_upload`, or without it if
    nobody else can reach the server. `time_scale` is how fast time passes in workflows. A lenient
    database creates tables that the service refuses and clients of DynamoDB Local ask for. Pages of
    the allowed origins may use the server from a browser; it answers to the allowed hosts besides
    the local ones. Refusals name what would allow another. `console` is what its pages may do. With
    `auth`, requests must be signed by a user of the data folder, or of the file of `users`, whose
    policies allow them; `warn` is told when a server without it can be reached from elsewhere. With
    `tls`, it is HTTPS. With `auth` and a data folder there is an audit log; `audit_data` asks for
    requests for data in it.
    """
    _check_settings(settings)
    own_pages = b"" if console == NO_CONSOLE else CONSOLE_PATH
    origins = Origins(allowed_origins, EXPOSED_HEADERS, origin_setting, own_pages)
    hosts = Hosts(allowed_hosts, host_remedy)
    access, keys = _access(data, users) if auth else (None, {})
    secured = None if tls is None else _secured(tls)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        background = ThreadPoolExecutor(1, thread_name_prefix="partita-archive")
        database = Database(
            open_engine(data, durable=durable),
            archive=open_archive(data, durable=durable),
            run=background.submit,
            buckets=Buckets(settings.buckets, settings_folder),
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
        database.service.check_policy = _policy_problem
        since, last_sequences = 0.0, dict[str, str]()

        def start(service: str) -> bytes:
            begin = Start(
                endpoint=f"{'http' if secured is None else 'https'}://{database.service.address}",
                folder=str(settings_folder.absolute()),
                settings=settings,
                time_scale=time_scale,
                operations=(*READS, *WRITES),
                since=since,
                last_sequences=last_sequences,
                may_upload=hosts.is_local if may_upload is None else may_upload,
                credentials=keys.get(service, ()),
                scheduler_credentials=keys.get(SCHEDULER, ()),
            )
            if secured is not None:
                begin.certificate = str(secured.files.certificate.absolute())
                begin.client_certificate = secured.companion_certificate
            return msgspec.json.encode(begin)

        workflows = Companion("partita.workflows", partial(start, STATES))
        functions = Companion("partita.functions", partial(start, LAMBDA))
        large_requests = LargeRequests(database)
        sites: dict[bytes, Handle] = {}
        # Nobody can sign in there yet, and it speaks plain HTTP to its server.
        if console != NO_CONSOLE and access is None and secured is None:
            sites[CONSOLE_PATH[1:]] = _console(database, console, hosts)
        kind = Dispatcher if access is None else _gate()
        dispatcher = kind(
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
            sites,
        )
        handle: Handle = dispatcher.handle
        if access is not None:
            recorder = None if data is None else _recorder(data / AUDIT, audit_data)
            handle = _protected(dispatcher, database, access, recorder, limits)

        async def stop() -> None:
            await asyncio.gather(workflows.stop(), functions.stop())

        def ready(url: str) -> None:
            database.service.address = url.rpartition("//")[2]
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
            if access is None and warn is not None and not is_local(host):
                warn(UNPROTECTED.format(host=host))
            say(f"Partita is ready on {url} ({_kept(data, durable=durable)})")

        try:
            listener = Listener(
                handle,
                AwsResponses(),
                hosts=hosts,
                origins=origins,
                count=dispatcher.metrics.count_connections,
                is_guarded=access is not None,
                connections_per_address_max=limits.connections_max if limits else 0,
            )
            if secured is not None:
                secured.watch()
            context = None if secured is None else secured.context
            await lifecycle.serve(listener, host, port, ready, stop, context)
        finally:
            if access is not None:
                access.stop()
            if secured is not None:
                secured.stop()
            await large_requests.stop()
            await stop()
            background.shutdown(cancel_futures=True)
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


# Security: imported where it is asked for, since most servers start without it.


def _access(data: Path | None, users: Path | None) -> tuple[Access, dict[str, tuple[str, str]]]:
    """Who is known, and the keys of the companions, by the services that they answer for."""
    from partita.server.security.access import Access
    from partita.server.security.directory import new_key

    keys = {service: new_key(system_clock()) for service in SERVICE_RIGHTS}
    # Whatever is written from now on is for the owner of the process alone.
    os.umask(0o077)
    others = {key.id: (key.secret, _service_caller(name, key.id)) for name, key in keys.items()}
    access = Access(data, users, others=others)
    if access.is_empty:
        raise PartitaError(f"Nobody could sign a request: {access.how_to_begin()}.")
    return access, {name: (key.id, key.secret) for name, key in keys.items()}


def _secured(files: Certificate) -> Tls:
    from partita.server.security.tls import Tls

    return Tls(files)


def _policy_problem(document: str, arn: str) -> str:
    from partita.server.security.access import policy_problem

    return policy_problem(document, arn)


def _recorder(folder: Path, sampled: Sequence[Sampled]) -> Recorder:
    from partita.server.security.audit.log import AuditLog
    from partita.server.security.audit.recorder import Recorder

    return Recorder(AuditLog(folder), sampled)


def _gate() -> type[Gate]:
    from partita.server.security.gate import Gate

    return Gate


def _protected(
    dispatcher: Dispatcher,
    database: Database,
    access: Access,
    recorder: Recorder | None,
    limits: LimitSettings | None,
) -> Handle:
    from partita.server.security.limits import Limits

    gate = cast("Gate", dispatcher)
    gate.protect(
        database.service, access.callers, rights(), forwarded_rights(), recorder, Limits(limits)
    )
    access.watch(gate.admit_callers)
    return gate.guard


def _service_caller(service: str, access_key_id: str) -> Caller:
    """A companion keeps its state in a table, and calls what the settings name; for all that users
    have created, it has the rights of the role that they gave."""
    from partita.server.security.callers import service_caller

    tables, actions = SERVICE_RIGHTS[service]
    arns = [f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}" for table in tables]
    own = {"Effect": "Allow", "Action": "dynamodb:*"}
    own_tables = [{**own, "Resource": [*arns, *(f"{arn}/index/*" for arn in arns)]}] if arns else []
    document = {
        "Version": "2012-10-17",
        "Statement": [
            *own_tables,
            {"Effect": "Allow", "Action": list(actions), "Resource": "*"},
        ],
    }
    return service_caller(f"{service}.amazonaws.com", access_key_id, document)


def check(data: Path, say: Callable[[str], None]) -> bool:
    """Say what is wrong with a data folder, and how much was looked at; whether all is well."""
    from partita.database.check.check import check as check_folder
    from partita.database.check.findings import Folder
    from partita.database.check.recovery import backups_are_readable

    with opened_for_reading(data) as snapshot:
        folder = Folder(snapshot)
        findings = 0
        archive = FolderArchive(data / RECOVERY)
        for finding in chain(check_folder(folder), backups_are_readable(folder, archive)):
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


def open_archive(folder: Path | None, *, durable: bool = True) -> Archive | None:
    return None if folder is None else FolderArchive(folder / RECOVERY, durable=durable)
