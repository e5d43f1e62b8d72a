"""Opens the database of a server: in a data folder, in memory, or in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from partita.assembly.serve_options import ServeOptions
from partita.assembly.server_protection import (
    ServerProtection,
    key_watch,
    sealed_buckets,
)
from partita.assembly.service_registry import ONLY_READS, PLAIN_READS, READS, WRITES
from partita.database.execution.database_interface import DatabaseInterface
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.execution.response_cache import RESPONSE_CACHE_BYTES
from partita.database.recovery.s3.object_buckets import ObjectBuckets
from partita.database.storage.archive import Archive, FolderArchive
from partita.database.storage.data_folder.embedded_engine import EmbeddedEngine
from partita.database.storage.data_folder.keyring_access import (
    KEYRING,
    RECOVERY,
    sealed_archive,
    sealed_engine,
    sealing,
)
from partita.database.storage.data_folder.lmdb_tree import LmdbEngine
from partita.database.storage.engine import Engine
from partita.foundation.clock import system_clock
from partita.foundation.prometheus_text import MetricFamily
from partita.server.backup_service import TARGET as COPYING
from partita.server.backup_service import BackupService
from partita.server.companions.companion_peers import LeaderEndpoint
from partita.server.http.http_messages import Handle
from partita.server.large_requests.large_request_queue import LargeRequestQueue

if TYPE_CHECKING:
    from partita.database.storage.sealing.keyring import Keyring

ALONE = LeaderEndpoint("", "", is_here=True)
"""The leader of an embedded database: the server itself."""
MEMORY_FOLDER = Path("/dev/shm")


def _unguarded(handle: Handle) -> Handle:
    return handle


def _advertise_nowhere(options: ServeOptions, url: str) -> None:
    """There are no other servers."""


def no_metrics() -> Iterator[MetricFamily]:
    return iter(())


class ServedDatabase(NamedTuple):
    """A database with everything that a dispatcher needs of it."""

    database: DatabaseInterface
    operations: dict[str, Any]
    close: Callable[[], Awaitable[None]]
    leader: Callable[[], LeaderEndpoint | None]
    """Returns the server that runs the companions, or None while there is no leader."""
    kept: str
    """Where the data is, in words for the ready line: `in memory`, `data in DIR`."""
    companions: Mapping[bytes, BackupService] = MappingProxyType({})
    """Services of the database itself, by the prefix of their targets."""
    guard: Callable[[Handle], Handle] = _unguarded
    """Wraps the handler of requests."""
    metric_families: Callable[[], Iterator[MetricFamily]] = no_metrics
    fence: Callable[[], str] = str
    """Returns the fencing token of this server's lease, which companions send with their writes.

    It is empty for an embedded database, which no other server can write to.
    """
    advertise: Callable[[ServeOptions, str], None] = _advertise_nowhere
    """Tells other servers the URL at which this one listens."""
    in_folder: EmbeddedDatabase | None = None
    """The database, if it has a data folder: it also keeps notes about files beside it."""


async def open_database(options: ServeOptions, protection: ServerProtection) -> ServedDatabase:
    parameters: dict[str, Any] = {
        "clock": system_clock,
        "transient_seconds": options.transient_seconds,
        "is_lenient": options.is_lenient,
        "capacity": options.capacity,
        "schedules": options.schedules,
    }
    if options.storage is not None:
        from partita.assembly.shared_server import open_shared

        parameters["buckets"] = _buckets(options)
        return await open_shared(options.storage, options.storage_reads, parameters)
    return _embedded(options, protection, parameters)


def _embedded(
    options: ServeOptions, protection: ServerProtection, parameters: dict[str, Any]
) -> ServedDatabase:
    loop = asyncio.get_running_loop()
    engine = open_engine(options.data, durable=options.durable)
    files = archive = open_archive(options.data, durable=options.durable)
    keyring = protection.keyring
    if keyring is not None:
        # Opening the engine has locked the folder, so a new key can take effect now.
        protection.begin_keyring()
        engine = parameters["sealed"] = sealed_engine(engine, keyring)
        archive = None if archive is None else sealed_archive(archive, keyring)
    cache_bytes = options.response_cache_bytes
    background = ThreadPoolExecutor(1, thread_name_prefix="partita-archive")
    database = EmbeddedDatabase(
        engine,
        archive=archive,
        buckets=_buckets(options),
        response_cache_bytes=RESPONSE_CACHE_BYTES if cache_bytes is None else cache_bytes,
        run=background.submit,
        call_soon=loop.call_soon,
        call_from_thread=loop.call_soon_threadsafe,
        call_later=loop.call_later,
        **parameters,
    )
    database.service.is_kept = options.data is not None
    watch = None
    if keyring is not None and options.encryption_key is not None:
        watch = key_watch(options.encryption_key, keyring, database)
    large_requests = LargeRequestQueue(database)
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
        if watch is not None:
            watch.stop()
        await large_requests.stop()
        background.shutdown(cancel_futures=True)
        database.close()

    companions = {COPYING: _copies(database, files, keyring, options.data)}
    return ServedDatabase(
        *(database, operations, close, lambda: ALONE, _kept(options), companions),
        in_folder=None if options.data is None else database,
    )


def _buckets(options: ServeOptions) -> ObjectBuckets:
    settings, folder = options.settings.buckets, options.settings_folder
    return ObjectBuckets(settings, folder, sealed_buckets(options.encryption_key))


def _copies(
    database: EmbeddedDatabase, files: Archive | None, keyring: Keyring | None, data: Path | None
) -> BackupService:
    recovery = database.service.recovery
    assert recovery is not None
    keyring_file = None if keyring is None or data is None else data / KEYRING
    return BackupService(database, files or recovery.archive, sealing(keyring), keyring_file)


def _kept(options: ServeOptions) -> str:
    if options.data is None:
        return "in memory"
    if options.durable:
        return f"data in {options.data}"
    return f"data in {options.data}, durability relaxed: a crash of the machine can lose it"


def open_engine(folder: Path | None, *, durable: bool = True) -> Engine:
    """Opens the engine over a data folder, or over a private one for a database in memory."""
    if folder is not None:
        return EmbeddedEngine(folder, durable=durable)
    parent = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with TemporaryDirectory(prefix="partita-", dir=parent) as private:
        # The folder is deleted at once: the open files live until the process ends, even by a kill.
        return LmdbEngine(Path(private), durable=False)


def open_archive(folder: Path | None, *, durable: bool = True) -> Archive | None:
    return None if folder is None else FolderArchive(folder / RECOVERY, durable=durable)
