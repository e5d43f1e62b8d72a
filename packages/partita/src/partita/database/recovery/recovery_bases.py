"""Recovery bases and table backups, and what all recovery tasks have in common.

A recovery base is a table's state at a stamp; a later state is the base plus the commits of the
recovery log. Bases and backups are taken by tasks, which are generators: each `yield` ends a piece
of work and returns the next write batch. A task that yields a future is resumed when that is done.
One that yields COMMITTED is resumed when all its changes are on disk, which it waits for before it
reports a result. The progress of a task is not stored: after a restart it begins again and finds
most of its chunks in the archive.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Final

from msgspec.structs import replace

from partita.database.recovery import recovery_stages
from partita.database.recovery.chunk_manifests import (
    Chunk,
    ChunkManifest,
    get_manifest,
    put_chunk,
    put_manifest,
    read_chunks,
)
from partita.database.recovery.recovery_records import (
    BackupRecord,
    RecoveryBase,
    RecoveryRecords,
    Resource,
    kind_of,
)
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.recovery.s3.object_buckets import ObjectBuckets
from partita.database.recovery.s3.record_preparation import PreparationProcess
from partita.database.storage.archive import Archive
from partita.database.storage.engine import BulkLoadable, Snapshot
from partita.database.storage.recovery_log import (
    MICROSECONDS,
    Change,
    RecoveryLog,
    read_log,
    stamp_of,
)
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import CREATING, RestoreOrigin, Table
from partita.errors import StorageError
from partita.foundation.clock import Clock

Task = Generator["Future[Any] | None", WriteBatch, None]
Run = Callable[[Callable[[], Any]], "Future[Any]"]
"""Runs a function that waits for disk or network, on the background thread if there is one."""

PATCH_BYTES_MAX: Final = 4 << 20


class RecoveryContext:
    """The parts of a database that recovery tasks use."""

    def __init__(
        self,
        catalog: TableCatalog,
        records: RecoveryRecords,
        snapshot: Snapshot,
        archive: Archive,
        log: RecoveryLog,
        clock: Clock,
        run: Run,
        transient_seconds: float,
        table_arn: Callable[[str], str],
        buckets: ObjectBuckets,
        loads: BulkLoadable | None = None,
    ) -> None:
        self.catalog = catalog
        self.records = records
        self.snapshot = snapshot
        self.archive = archive
        self.log = log
        self.clock = clock
        self.run = run
        self.transient_seconds = transient_seconds
        self.table_arn = table_arn
        self.buckets = buckets
        self.loads = loads
        self.preparing = PreparationProcess()

    def arn(self, resource: Resource) -> str:
        kind = kind_of(type(resource))
        return f"{self.table_arn(resource.table_name)}/{kind}/{resource.id}"

    def bases(self, table_id: str) -> list[RecoveryBase]:
        """The bases of a table, the oldest first."""
        bases = [base for base in self.records.of(RecoveryBase) if base.table_id == table_id]
        return sorted(bases, key=lambda base: base.stamp)

    def base_at(self, table_id: str, stamp: int) -> RecoveryBase | None:
        """The newest base of a table that is not later than a stamp."""
        before = [base for base in self.bases(table_id) if base.stamp <= stamp]
        return before[-1] if before else None


def take_base(work: RecoveryContext, table: Table, base_id: str) -> Task:
    """Takes a recovery base of a table as it is now."""
    yield None
    recovery_stages.reach_stage(RecoveryStage.BASE_BEGUN)
    manifest = yield from _new_manifest(work, table, RecoveryStage.BASE_CHUNK_WRITTEN)
    recovery_stages.reach_stage(RecoveryStage.BASE_CHUNKS_WRITTEN)
    base = RecoveryBase(id=base_id, table_id=table.table_id, stamp=manifest.stamp)
    yield from _put_durably(work, base.manifest, manifest)
    recovery_stages.reach_stage(RecoveryStage.BASE_MANIFEST_WRITTEN)
    write_batch = yield None
    work.records.save(write_batch, base)


def take_backup(work: RecoveryContext, backup: BackupRecord) -> Task:
    """Takes a backup: the newest base plus the commits since, or without a base a full read."""
    yield None
    recovery_stages.reach_stage(RecoveryStage.BACKUP_BEGUN)
    until = stamp_of(work.snapshot)
    base = work.base_at(backup.table.table_id, until)
    if base is None:
        manifest = yield from _new_manifest(work, backup.table, RecoveryStage.BACKUP_CHUNK_WRITTEN)
    else:
        before = get_manifest(work.archive, base.manifest)
        patches = yield from _patches(work, backup.table.table_id, base.stamp, until)
        manifest = replace(before, stamp=until, patches=[*before.patches, *patches])
    recovery_stages.reach_stage(RecoveryStage.BACKUP_CHUNKS_WRITTEN)
    yield from _put_durably(work, backup.manifest, manifest)
    recovery_stages.reach_stage(RecoveryStage.BACKUP_MANIFEST_WRITTEN)
    write_batch = yield None
    work.records.save(write_batch, replace(backup, is_available=True))


def finish_loading(
    work: RecoveryContext,
    write_batch: WriteBatch,
    table: Table,
    origin: RestoreOrigin | None = None,
) -> None:
    """Makes a table ACTIVE once all its items are loaded."""
    settles_at = work.clock() + work.transient_seconds
    done = replace(table, transition=CREATING, settles_at=settles_at, origin=origin, import_id=None)
    work.catalog.save(write_batch, done)


def load_past_manifest(
    work: RecoveryContext, table_id: str, stamp: int
) -> Generator[Future[Any] | None, Any, tuple[ChunkManifest, int]]:
    """Returns the manifest of the newest base before a stamp, with the log flushed up to it."""
    yield work.run(work.log.flush)
    base = work.base_at(table_id, stamp)
    if base is None:
        raise StorageError(f"The archive has no base of table {table_id} before that moment.")
    return get_manifest(work.archive, base.manifest), stamp


def _new_manifest(
    work: RecoveryContext, table: Table, chunk_written: RecoveryStage
) -> Generator[Future[Any] | None, Any, ChunkManifest]:
    """Takes a fuzzy snapshot of a table: its chunks, then the commits made while these were read.

    Each chunk is read from the current snapshot, so no reader pins old pages of the tree for long.
    """
    start = stamp_of(work.snapshot)
    prefix = table_layout.items_prefix(table.number)
    chunks: list[Chunk] = []
    for chunk in read_chunks(work.snapshot, work.archive, prefix):
        chunks.append(chunk)
        recovery_stages.reach_stage(chunk_written)
        yield None
    end = stamp_of(work.snapshot)
    patches = yield from _patches(work, table.table_id, start, end)
    return ChunkManifest(stamp=end, chunks=chunks, patches=patches)


def _patches(
    work: RecoveryContext, table_id: str, after: int, until: int
) -> Generator[Future[Any] | None, Any, list[Chunk]]:
    """Archives the changes of the commits between two stamps."""
    patches: list[Chunk] = []
    if after == until:
        return patches
    yield work.run(work.log.flush)
    changed: dict[bytes, bytes | None] = {}
    size = 0
    for commits in read_log(work.archive, table_id, after, until):
        for _, changes in commits:
            changed.update(changes)
            size += sum(map(_change_bytes, changes))
        if size > PATCH_BYTES_MAX:
            patches.append(put_chunk(work.archive, list(changed.items())))
            changed, size = {}, 0
        yield None
    if changed:
        patches.append(put_chunk(work.archive, list(changed.items())))
    return patches


def _change_bytes(change: Change) -> int:
    place, value = change
    return len(place) + len(value or b"")


def _put_durably(
    work: RecoveryContext, name: str, manifest: ChunkManifest
) -> Generator[Future[Any] | None, Any, None]:
    """Syncs the chunks before the manifest is written, so that it never lists a missing chunk."""
    yield work.run(work.archive.sync)
    put_manifest(work.archive, name, manifest)
    yield work.run(work.archive.sync)


def seconds_of(stamp: int) -> float:
    return stamp / MICROSECONDS


def followed_tables(catalog: TableCatalog, records: RecoveryRecords) -> dict[bytes, str]:
    """The tables whose commits the recovery log keeps: table ids by the prefix of their items."""
    followed = [table for table in catalog if table.recovery]
    followed += [backup.table for backup in records.of(BackupRecord) if not backup.is_available]
    return {table_layout.items_prefix(table.number): table.table_id for table in followed}


def run_at_once(work: Callable[[], Any]) -> Future[Any]:
    """Runs a function on this thread: the `Run` of a database without a background thread."""
    future: Future[Any] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        # As with a thread pool, any error is raised where the result is awaited.
        future.set_exception(error)
    return future


COMMITTED: Final = run_at_once(lambda: None)
"""Yielded by tasks that run ahead of their commits, to wait until these are on disk."""
