"""The one place that picks an engine and wires the parts together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from partita.clock import system_clock
from partita.console.modes import OFF as NO_CONSOLE
from partita.console.modes import PATH as CONSOLE_PATH
from partita.database.capacity.ledger import OFF
from partita.database.capacity.schedules import ScheduledChange
from partita.database.changes.streams import last_sequence, streams_of
from partita.database.database import Database
from partita.database.operations.context import ReadContext
from partita.database.operations.streams.records import sequence_number
from partita.database.operations.streams.streams import stream_arn
from partita.database.recovery.buckets import Buckets
from partita.database.response_cache import RESPONSE_CACHE_BYTES
from partita.database.storage.archive import Archive, FolderArchive
from partita.database.storage.embedded import EmbeddedEngine, opened_for_reading
from partita.database.storage.engine import Engine, Snapshot
from partita.database.storage.lmdb import LmdbEngine
from partita.errors import PartitaError
from partita.functions.storage import TABLE as FUNCTIONS_TABLE
from partita.registry import (
    OF_ARCHIVES,
    ONLY_READS,
    PLAIN_READS,
    READS,
    WRITES,
    forwarded_rights,
    rights,
)
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
from partita.server.peers import Leader, LedCompanion, Peers
from partita.server.protocol.model import LAMBDA, SCHEDULER
from partita.server.responses import EXPOSED_HEADERS, AwsResponses
from partita.settings import Settings, Trigger
from partita.workflows.running.storage.items import TABLE as WORKFLOWS_TABLE

if TYPE_CHECKING:
    from partita.database.shared.database import SharedDatabase
    from partita.database.storage.sealing.engine import SealedEngine
    from partita.database.storage.sealing.folders import KeyWatch
    from partita.database.storage.sealing.keyring import Keyring
    from partita.database.storage.sealing.master_keys import KeySource
    from partita.server.security.access import Access
    from partita.server.security.administration import Administration
    from partita.server.security.audit.events import Sampled
    from partita.server.security.audit.recorder import Recorder
    from partita.server.security.callers import Caller
    from partita.server.security.gate import Gate
    from partita.server.security.limits import LimitSettings
    from partita.server.security.tls import Certificate, Tls

NO_SETTINGS = Settings()
ANY_HOST = ("", "0.0.0.0", "::")
ALONE = Leader("", "", is_here=True)
"""A server with a database of its own leads itself."""
MEMORY_FOLDER = Path("/dev/shm")
KEYRING = "keyring"
"""The file of an encrypted folder's keys."""
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
    storage: str | None = None,
    advertise: str = "",
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
    encryption_key: KeySource | None = None,
    warn: Callable[[str], None] | None = None,
) -> None:
    """Serve the database of a folder, or one in memory, until the process is told to stop.

    With `storage`, the URL of a PostgreSQL database, it is that one, which others may serve too;
    they reach this server under the host to `advertise`.
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
    requests for data in it. With an `encryption_key`, all that is written is encrypted.
    """
    _check_settings(settings)
    own_pages = b"" if console == NO_CONSOLE else CONSOLE_PATH
    origins = Origins(allowed_origins, EXPOSED_HEADERS, origin_setting, own_pages)
    hosts = Hosts(allowed_hosts, host_remedy)
    if storage is not None and encryption_key is not None:
        raise PartitaError(
            "Partita does not encrypt what it keeps in PostgreSQL: leave --encryption-key out and "
            "encrypt the disk of the database."
        )
    keyring = _keyring(data, encryption_key)
    if data is not None and keyring is not None and keyring.is_new:
        _begin(data, keyring)
    access, keys = _access(data, users, keyring) if auth else (None, {})
    secured = None if tls is None else _secured(tls)

    async def run() -> None:
        options: dict[str, Any] = {
            "clock": system_clock,
            "transient_seconds": transient_seconds,
            "is_lenient": is_lenient,
            "capacity": capacity,
            "schedules": schedules,
        }
        if storage is None:
            options["buckets"] = Buckets(settings.buckets, settings_folder)
            options["archive"] = open_archive(data, durable=durable)
            options["response_cache_bytes"] = (
                RESPONSE_CACHE_BYTES if response_cache_bytes is None else response_cache_bytes
            )
            engine = open_engine(data, durable=durable)
            served = _embedded(engine, options, keyring, encryption_key)
            served.database.service.is_kept = data is not None
        else:
            served = await _shared(storage, options)
        database = served.database
        database.service.check_policy = _policy_problem
        since, last_sequences = 0.0, dict[str, str]()
        scheme = "http" if secured is None else "https"

        def start(service: str) -> bytes:
            begin = Start(
                endpoint=f"{scheme}://{database.service.address}",
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

        companions = {
            STATES: partial(Companion, "partita.workflows", partial(start, STATES)),
            LAMBDA: partial(Companion, "partita.functions", partial(start, LAMBDA)),
        }
        certificates = ("", "")
        if secured is not None:
            certificates = str(secured.files.certificate.absolute()), secured.companion_certificate
        peers = Peers(companions, served.leader, *certificates)
        sites: dict[bytes, Handle] = {}
        if console != NO_CONSOLE:
            sites[CONSOLE_PATH[1:]] = _console(
                lambda request, reply: handle(request, reply),
                lambda: f"{scheme}://{database.service.address}",
                console,
                hosts,
                signs_in=access is not None,
            )
        kind = Dispatcher if access is None else _gate()
        dispatcher = kind(
            **served.operations,
            pages=PAGES,
            companions={
                STEP_FUNCTIONS: LedCompanion(peers, STATES),
                **_administration(access, data),
            },
            hosts=hosts,
            rest=LedCompanion(peers, LAMBDA),
            sites=sites,
        )
        handle: Handle = dispatcher.handle
        if storage is None and database.service.ledger.is_on:
            database.service.ledger.notice = dispatcher.notable.count_units()
        if access is not None:
            recorder = None if data is None else _recorder(data / AUDIT, audit_data)
            handle = _protected(dispatcher, database, access, recorder, limits)
        if storage is not None:
            handle = peers.guard(handle)

        def resume() -> None:
            """Something may be under way, or about to be called."""
            if database.service.catalog.find(WORKFLOWS_TABLE) is not None:
                peers.start(STATES)
            is_calling = settings.triggers or settings.schedules
            if is_calling or database.service.catalog.find(FUNCTIONS_TABLE) is not None:
                peers.start(LAMBDA)

        def ready(url: str) -> None:
            database.service.address = url.rpartition("//")[2]
            nonlocal since
            since = database.service.clock()
            if isinstance(database, Database):
                database.start()
                last_sequences.update(_last_sequences(database.reads, settings.triggers))
                resume()
            else:
                reached_at = advertise or ("" if host not in ANY_HOST else database.own_host)
                database.leadership.endpoint = _advertised(url, reached_at)
                database.start(_led(database, peers, resume, last_sequences, settings.triggers))
            if access is None and warn is not None and not is_local(host):
                warn(UNPROTECTED.format(host=host))
            say(f"Partita is ready on {url} ({served.kept or _kept(data, durable=durable)})")

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
            await lifecycle.serve(listener, host, port, ready, peers.close, context)
        finally:
            if access is not None:
                access.stop()
            if secured is not None:
                secured.stop()
            await peers.close()
            await served.close()

    lifecycle.run(run)


class Served(NamedTuple):
    """A database, and what a dispatcher is given of it."""

    database: Database | SharedDatabase
    operations: dict[str, Any]
    close: Callable[[], Awaitable[None]]
    leader: Callable[[], Leader | None]
    """The server whose companions answer."""
    kept: str = ""
    """Where its data is, if it is not in a folder."""


def _embedded(
    engine: Engine, options: dict[str, Any], keyring: Keyring | None, source: KeySource | None
) -> Served:
    loop = asyncio.get_running_loop()
    if keyring is not None:
        # A new key counts from now on, when nobody else has the folder.
        keyring.begin()
        engine = options["sealed"] = _sealed(engine, keyring)
        if options["archive"] is not None:
            options["archive"] = _sealed_archive(options["archive"], keyring)
    background = ThreadPoolExecutor(1, thread_name_prefix="partita-archive")
    database = Database(
        engine,
        run=background.submit,
        call_soon=loop.call_soon,
        call_from_thread=loop.call_soon_threadsafe,
        call_later=loop.call_later,
        **options,
    )
    key_watch = None
    if keyring is not None and source is not None:
        key_watch = _key_watch(source, keyring, database)
    large_requests = LargeRequests(database)
    operations = {
        "database": database,
        "reads": READS,
        "writes": WRITES,
        "only_reads": ONLY_READS,
        "plain_reads": {
            name: partial(database.read_plainly, read) for name, read in PLAIN_READS.items()
        },
        "response_caches": database.response_caches,
        "large_requests": large_requests,
    }

    async def close() -> None:
        if key_watch is not None:
            key_watch.stop()
        await large_requests.stop()
        background.shutdown(cancel_futures=True)
        database.close()

    return Served(database, operations, close, lambda: ALONE)


async def _shared(url: str, options: dict[str, Any]) -> Served:
    """A database that several servers share: its room is loaded only for it."""
    from partita.database.shared.database import SharedDatabase, SharedOperations
    from partita.database.storage.postgresql.connections import place

    database = await SharedDatabase.open(url, **options)
    reads = {name: read for name, read in READS.items() if name not in OF_ARCHIVES}
    writes = {name: write for name, write in WRITES.items() if name not in OF_ARCHIVES}
    shared = SharedOperations(database, reads, writes, ONLY_READS)
    operations = {"database": shared, "reads": {}, "writes": shared.handlers}

    def leader() -> Leader | None:
        found = database.leadership.leader
        if found is None:
            return None
        return Leader(found.endpoint, found.secret, database.leadership.lease is not None)

    return Served(database, operations, database.close, leader, place(url))


def _led(
    database: SharedDatabase,
    peers: Peers,
    resume: Callable[[], None],
    last_sequences: dict[str, str],
    triggers: Sequence[Trigger],
) -> Callable[[], None]:
    """What happens when this server begins to lead, or ends."""

    def led() -> None:
        if database.leadership.lease is None:
            stopping.append(asyncio.ensure_future(peers.stop()))
        else:
            database.submit_read(sequences, {}, begin)

    def sequences(context: ReadContext, request: object) -> bytes:
        return msgspec.json.encode(dict(_last_sequences(context, triggers)))

    def begin(found: bytes | BaseException) -> None:
        if isinstance(found, bytes) and database.leadership.lease is not None:
            last_sequences.update(msgspec.json.decode(found, type=dict[str, str]))
            resume()

    stopping: list[asyncio.Future[None]] = []
    return led


def _advertised(url: str, host: str) -> str:
    """Where other servers reach one that listens on any address, or is behind another name."""
    scheme, _, address = url.partition("://")
    return f"{scheme}://{host}:{address.rpartition(':')[2]}" if host else url


def _last_sequences(context: ReadContext, triggers: Sequence[Trigger]) -> Iterator[tuple[str, str]]:
    """What the streams have last that triggers read from now on."""
    for trigger in triggers:
        if trigger.table is None or trigger.starting_position != "LATEST":
            continue
        for stream in streams_of(context.snapshot, trigger.table):
            last = sequence_number(last_sequence(context.snapshot, stream.number))
            yield stream_arn(context.service, stream), last


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


def _console(
    serve_request: Handle, find_url: Callable[[], str], mode: str, hosts: Hosts, *, signs_in: bool
) -> Handle:
    """The pages in a browser; their room is loaded when the first of them is asked for."""
    loaded: list[Handle] = []

    def handle(request: HttpRequest, reply: Reply) -> None:
        if not loaded:
            from partita.console.endpoints import OwnServer
            from partita.console.service import Console

            server = OwnServer(serve_request, find_url)
            signing = server if signs_in else None
            loaded.append(Console(server, mode, hosts, signing=signing).handle)
        loaded[0](request, reply)

    return handle


# Security: imported where it is asked for, since most servers start without it.


def _keyring(data: Path | None, source: KeySource | None) -> Keyring | None:
    """The keys of an encrypted folder; without one, nobody is to take it for another."""
    if source is None:
        if data is not None and os.path.exists(data / KEYRING):
            raise PartitaError(
                f"The data folder {data} is encrypted: give --encryption-key file:PATH, env:NAME "
                "or command:LINE."
            )
        return None
    if data is None:
        raise PartitaError("In memory nothing is at rest: --encryption-key needs --data.")
    from partita.database.storage.sealing.folders import keyring_of

    # Whatever is written from now on is for the owner of the process alone.
    os.umask(0o077)
    return keyring_of(data, source)


def _begin(folder: Path, keyring: Keyring) -> None:
    from partita.database.storage.sealing.folders import begin

    begin(folder, keyring)


def _sealed(engine: Engine, keyring: Keyring) -> SealedEngine:
    from partita.database.storage.sealing.engine import SealedEngine

    return SealedEngine(engine, keyring)


def _sealed_archive(archive: Archive, keyring: Keyring) -> Archive:
    from partita.database.storage.sealing.archive import SealedArchive

    return SealedArchive(archive, keyring)


def _key_watch(source: KeySource, keyring: Keyring, database: Database) -> KeyWatch:
    from partita.database.storage.sealing.folders import KeyWatch

    def name_key() -> None:
        database.service.encryption_key = keyring.fingerprint

    name_key()
    watch = KeyWatch(source, keyring)
    watch.watch(name_key)
    return watch


def _access(
    data: Path | None, users: Path | None, keyring: Keyring | None
) -> tuple[Access, dict[str, tuple[str, str]]]:
    """Who is known, and the keys of the companions, by the services that they answer for."""
    from partita.server.security.access import Access
    from partita.server.security.directory import new_key

    keys = {service: new_key(system_clock()) for service in SERVICE_RIGHTS}
    # Whatever is written from now on is for the owner of the process alone.
    os.umask(0o077)
    others = {key.id: (key.secret, _service_caller(name, key.id)) for name, key in keys.items()}
    access = Access(data, users, others=others, keyring=keyring)
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


def _administration(access: Access | None, data: Path | None) -> dict[bytes, Administration]:
    """Who answers requests about users, where there are some."""
    if access is None:
        return {}
    from partita.server.security.administration import TARGET, Administration

    return {TARGET: Administration(access, None if data is None else data / AUDIT)}


def _gate() -> type[Gate]:
    from partita.server.security.gate import Gate

    return Gate


def _protected(
    dispatcher: Dispatcher,
    database: Database | SharedDatabase,
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


def check(data: Path, say: Callable[[str], None], encryption_key: KeySource | None = None) -> bool:
    """Say what is wrong with a data folder, and how much was looked at; whether all is well."""
    keyring = _keyring(data, encryption_key) if data.is_dir() else None
    archive: Archive = FolderArchive(data / RECOVERY)
    if keyring is not None:
        archive = _sealed_archive(archive, keyring)
    with opened_for_reading(data) as snapshot:
        return _check(snapshot, say, keyring, archive)


def check_storage(url: str, say: Callable[[str], None]) -> bool:
    """The same for what servers share in PostgreSQL."""
    from partita.database.shared.stored_snapshot import stored_snapshot

    with stored_snapshot(url) as snapshot:
        return _check(snapshot, say)


def copy_storage(source: str, target: str, say: Callable[[str], None]) -> bool:
    """Copy all data from one folder or URL to another, and check it there; whether all is well."""
    from partita.database.shared import copying
    from partita.database.shared.stored_snapshot import stored_snapshot
    from partita.database.storage.postgresql.connections import is_url

    for folder in (source, target):
        if not is_url(folder) and os.path.exists(Path(folder) / KEYRING):
            raise PartitaError(f"The data folder {folder} is encrypted: it cannot be copied yet.")
    read = stored_snapshot(source) if is_url(source) else opened_for_reading(Path(source))
    with read as snapshot:
        write = copying.postgresql_target(target) if is_url(target) else None
        with write or copying.folder_target(Path(target)) as copy:
            copied = copying.copy(snapshot, copy)
            say(f"{copied.pairs} keys, {copied.written} written.")
            copying.verify(snapshot, copy)
            copy.finish()
            say("Both are the same.")
    return check_storage(target, say) if is_url(target) else check(Path(target), say)


def _check(
    snapshot: Snapshot,
    say: Callable[[str], None],
    keyring: Keyring | None = None,
    archive: Archive | None = None,
) -> bool:
    from partita.database.check.check import check as check_folder
    from partita.database.check.findings import Folder
    from partita.database.check.recovery import backups_are_readable

    findings = 0

    def tell(finding: object) -> None:
        nonlocal findings
        findings += 1
        say(str(finding))

    if keyring is not None:
        snapshot = _opened(snapshot, keyring, tell)
    folder = Folder(snapshot, is_encrypted=keyring is not None)
    archived = iter(()) if archive is None else backups_are_readable(folder, archive)
    for finding in chain(check_folder(folder), archived):
        tell(finding)
    tables = len(folder.tables)
    looked_at = f"{tables} tables, {folder.items} items, {folder.entries} index entries"
    if folder.changes:
        looked_at += f", {folder.changes} changes"
    if folder.records:
        looked_at += f", {folder.records} records"
    say(f"{looked_at} checked: {f'{findings} findings' if findings else 'no findings'}.")
    return not findings


def _opened(snapshot: Snapshot, keyring: Keyring, tell: Callable[[object], None]) -> Snapshot:
    """What an encrypted folder has; each value that does not open is told of once."""
    from partita.database.storage.sealing.engine import Cipher, SealedSnapshot

    told: set[bytes] = set()

    def tell_once(key: bytes, damage: Exception) -> None:
        if key not in told:
            told.add(key)
            tell(damage)

    return SealedSnapshot(snapshot, Cipher(keyring), tell_once)


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
