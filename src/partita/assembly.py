"""The one place that picks an engine and wires the parts together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import msgspec

from partita.clock import system_clock
from partita.database.capacity.ledger import OFF
from partita.database.capacity.schedules import ScheduledChange
from partita.database.database import Database
from partita.database.response_cache import RESPONSE_CACHE_BYTES
from partita.database.storage.embedded import EmbeddedEngine, opened_for_reading
from partita.database.storage.engine import Engine
from partita.database.storage.lmdb import LmdbEngine
from partita.errors import PartitaError
from partita.registry import ONLY_READS, READS, WRITES, forwarded_rights, rights
from partita.server.companions import Companion
from partita.server.dispatch import Dispatcher
from partita.server.frames import Start
from partita.server.http import lifecycle
from partita.server.http.hosts import ALLOW_HOST, Hosts, is_local
from partita.server.http.listener import Listener
from partita.server.http.messages import Handle
from partita.server.http.origins import ALLOW_ORIGIN, Origins
from partita.server.monitoring.pages import PAGES
from partita.server.responses import EXPOSED_HEADERS, AwsResponses
from partita.settings import Function, Trigger
from partita.workflows.running.storage.items import TABLE as WORKFLOWS_TABLE

if TYPE_CHECKING:
    from partita.server.security.access import Access
    from partita.server.security.audit.events import Sampled
    from partita.server.security.audit.recorder import Recorder
    from partita.server.security.callers import Caller
    from partita.server.security.directory import AccessKey
    from partita.server.security.gate import Gate
    from partita.server.security.limits import LimitSettings
    from partita.server.security.tls import Certificate, Tls
    from partita.streams.triggers.runner import Triggers

MEMORY_FOLDER = Path("/dev/shm")
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
    settings, and files in it. `time_scale` is how fast time passes in workflows. A lenient database
    creates tables that the service refuses and clients of DynamoDB Local ask for. Pages of the
    allowed origins may use the server from a browser; it answers to the allowed hosts besides the
    local ones. Refusals name what would allow another. With `auth`, requests must be signed by a
    user of the data folder, or of the file of `users`, whose policies allow them; `warn` is told
    when a server without it can be reached from elsewhere. With `tls`, it is HTTPS. With
    `auth` and a data folder there is an audit log; `audit_data` asks for requests for data in it.
    """
    origins = Origins(allowed_origins, EXPOSED_HEADERS, origin_setting)
    hosts = Hosts(allowed_hosts, host_remedy)
    access, workflows_key = _access(data, users) if auth else (None, None)

    secured = None if tls is None else _secured(tls)

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
        workflows = _workflows(
            database, functions, time_scale, settings_folder, workflows_key, secured
        )
        database.service.check_policy = _policy_problem
        kind = Dispatcher if access is None else _gate()
        dispatcher = kind(
            database,
            READS,
            WRITES,
            ONLY_READS,
            PAGES,
            database.response_caches,
            {STEP_FUNCTIONS: workflows},
            hosts,
        )
        handle: Handle = dispatcher.handle
        if access is not None:
            recorder = None if data is None else _recorder(data / AUDIT, audit_data)
            handle = _protected(dispatcher, database, access, recorder, limits)

        def ready(url: str) -> None:
            database.service.address = url.rpartition("//")[2]
            database.start()
            for caller in callers:
                caller.start()
            if database.service.catalog.find(WORKFLOWS_TABLE) is not None:
                # Executions may be under way.
                workflows.start()
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
            await lifecycle.serve(listener, host, port, ready, workflows.stop, context)
        finally:
            if access is not None:
                access.stop()
            if secured is not None:
                secured.stop()
            await workflows.stop()
            for caller in callers:
                await caller.stop()
            database.close()

    lifecycle.run(run)


def _callers(
    database: Database, triggers: Sequence[Trigger], settings_folder: Path
) -> tuple[Triggers, ...]:
    """What calls the functions of triggers; most servers have none, and start without its room."""
    if not triggers:
        return ()
    from partita.streams.triggers.runner import Triggers

    return (Triggers(database, triggers, settings_folder),)


# Security: imported where it is asked for, since most servers start without it.


def _access(data: Path | None, users: Path | None) -> tuple[Access, AccessKey]:
    """Who is known, and the key of the process that runs workflows."""
    from partita.server.security.access import Access
    from partita.server.security.directory import new_key

    key = new_key(system_clock())
    # Whatever is written from now on is for the owner of the process alone.
    os.umask(0o077)
    access = Access(data, users, others={key.id: (key.secret, _workflows_caller(key.id))})
    if access.is_empty:
        raise PartitaError(f"Nobody could sign a request: {access.how_to_begin()}.")
    return access, key


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


def _workflows_caller(access_key_id: str) -> Caller:
    """Workflows keep their state in a table; what their tasks may do, their roles say."""
    from partita.server.security.callers import service_caller

    table = f"arn:aws:dynamodb:us-east-1:123456789012:table/{WORKFLOWS_TABLE}"
    document = {
        "Version": "2012-10-17",
        "Statement": {
            "Effect": "Allow",
            "Action": "dynamodb:*",
            "Resource": [table, f"{table}/index/*"],
        },
    }
    return service_caller("states.amazonaws.com", access_key_id, document)


def _workflows(
    database: Database,
    functions: Sequence[Function],
    time_scale: float,
    settings_folder: Path,
    credentials: AccessKey | None,
    secured: Tls | None,
) -> Companion:
    """The process that answers for Step Functions' API; it gets the address of the database, and
    what to sign its requests with."""

    def start() -> bytes:
        endpoint = f"{'http' if secured is None else 'https'}://{database.service.address}"
        folder = str(settings_folder.absolute())
        key = () if credentials is None else (credentials.id, credentials.secret)
        begin = Start(endpoint, folder, tuple(functions), time_scale, key)
        if secured is not None:
            begin.certificate = str(secured.files.certificate.absolute())
            begin.client_certificate = secured.companion_certificate
        return msgspec.json.encode(begin)

    return Companion("partita.workflows", start)


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
