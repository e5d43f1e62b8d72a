"""Recovery bases and table backups.

A recovery base is the state of a table at a stamp; a later state is the base plus the commits of
the recovery log. A table backup is a base of its own, or an existing base with later patches.

The progress of these tasks is not stored: after a restart they begin again and find most of their
chunks in the archive.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from msgspec.structs import replace

from partita.database.recovery import recovery_stages
from partita.database.recovery.chunk_manifests import (
    Chunk,
    ChunkManifest,
    get_manifest,
    put_chunk,
    put_manifest,
    read_chunks,
    read_patches,
)
from partita.database.recovery.recovery_context import RecoveryContext, Task
from partita.database.recovery.recovery_records import BackupRecord, RecoveryBase, RecoveryRecords
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.storage.recovery_log import stamp_of
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import Table


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
    for changes in read_patches(work.archive, table_id, after, until):
        if changes:
            patches.append(put_chunk(work.archive, changes))
        yield None
    return patches


def _put_durably(
    work: RecoveryContext, name: str, manifest: ChunkManifest
) -> Generator[Future[Any] | None, Any, None]:
    """Syncs the chunks before the manifest is written, so that it never lists a missing chunk."""
    yield work.run(work.archive.sync)
    put_manifest(work.archive, name, manifest)
    yield work.run(work.archive.sync)


def followed_tables(catalog: TableCatalog, records: RecoveryRecords) -> dict[bytes, str]:
    """The tables whose commits the recovery log keeps: table ids by the prefix of their items."""
    followed = [table for table in catalog if table.recovery]
    followed += [backup.table for backup in records.of(BackupRecord) if not backup.is_available]
    return {table_layout.items_prefix(table.number): table.table_id for table in followed}
