"""`partita backup --storage`: backs up the data that servers share in PostgreSQL, and restores it.

One snapshot of PostgreSQL shows the rows, the archive, and the changes that are not in the archive
yet, all at one moment. Servers may run meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from partita.copies.backups.backup_format import BackupSummary, BackupWriter, DatabaseBackup
from partita.copies.backups.backup_snapshot import backup_snapshot, restore_files
from partita.copies.backups.server_backup import Progress
from partita.copies.storage_copy.postgresql_target import PostgresqlTarget
from partita.copies.storage_copy.snapshot_copy import SPACES, copy_snapshot, verify_copy
from partita.database.recovery.chunk_manifests import (
    CHUNKS,
    MANIFESTS,
    Chunk,
    ChunkManifest,
    put_chunk,
    run_of,
)
from partita.database.recovery.recovery_bases import followed_tables
from partita.database.recovery.recovery_records import RecoveryRecords
from partita.database.shared.stored_snapshot import StoredSnapshot, stored_snapshot
from partita.database.storage.archive import Archive
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.postgresql import postgresql_schema
from partita.database.storage.postgresql.optimistic_commit import stamp_row
from partita.database.storage.postgresql.postgresql_pool import connected
from partita.database.storage.recovery_log import (
    LOGS,
    MICROSECONDS,
    STAMP_KEY,
    commits_of,
    new_log_file,
    pack_blocks,
)
from partita.database.tables.definition.table_catalog import TableCatalog

NOT_COPIED: Final = (STAMP_KEY,)
"""In PostgreSQL, each table has its own stamp, in a sequence beside the rows."""

_STAMP: Final = """
    SELECT greatest((extract(epoch FROM now()) * 1000000)::bigint,
        (SELECT max(last) FROM partita_sequences WHERE key >= %b AND key < %b))"""
_PENDING: Final = "SELECT stamp, place, value FROM partita_recovery WHERE key = %b"


def back_up_postgresql(url: str, location: Archive, progress: Progress) -> BackupSummary:
    """Takes a backup of a shared database at one moment."""

    async def check() -> None:
        async with connected(url) as connection:
            await postgresql_schema.check(connection, oldest=postgresql_schema.ARCHIVE_VERSION)

    asyncio.run(check())
    with stored_snapshot(url) as snapshot:
        return _PostgresqlBackup(snapshot, location, progress).take()


def restore_into(
    target: PostgresqlTarget, location: Archive, backup: DatabaseBackup, progress: Progress
) -> None:
    """Copies a backup into a database, which servers may use after `target.finish`.

    An interrupted restore continues when it is run again.
    """
    restore_files(target.archive, location, backup, lambda archive: archive)
    snapshot = backup_snapshot(location, backup)
    copy_snapshot(snapshot, target, progress, NOT_COPIED)
    verify_copy(snapshot, target, NOT_COPIED)
    target.promise_stamps(backup.manifest.stamp, _followed(snapshot))


class _PostgresqlBackup:
    def __init__(self, snapshot: StoredSnapshot, location: Archive, progress: Progress) -> None:
        self._snapshot = snapshot
        self._writer = BackupWriter(location)
        self._progress = progress

    def take(self) -> BackupSummary:
        stamp = self._stamp()
        backup = DatabaseBackup(
            created_at=stamp / MICROSECONDS,
            manifest=ChunkManifest(stamp=stamp, chunks=list(self._chunks(stamp))),
            files=sorted((*self._archived(), *self._pending())),
        )
        return self._writer.finish(backup)

    def _stamp(self) -> int:
        """The present, but not less than the stamp of any commit."""
        bounds = [STAMP_KEY, prefix_end(STAMP_KEY)]
        row = self._snapshot.connection.execute(_STAMP, bounds).fetchone()
        assert row is not None
        stamp: int = row[0]
        return stamp

    def _chunks(self, stamp: int) -> Iterator[Chunk]:
        for space in SPACES:
            pairs = self._snapshot.range(space, prefix_end(space))
            if STAMP_KEY.startswith(space):
                pairs = _stamped(stamp, pairs)
            while run := run_of(pairs, 0):
                yield put_chunk(self._writer, run)
                self._progress(len(run))

    def _archived(self) -> Iterator[str]:
        """Writes the files of the archive; yields their names."""
        archive = self._snapshot.archive
        for kind in (CHUNKS, MANIFESTS, LOGS):
            for name in archive.names(kind):
                if not self._writer.has_file(name):
                    self._writer.put_file(name, archive.get(name))
                yield name

    def _pending(self) -> Iterator[str]:
        """Writes changes that the leader has not moved into the archive yet as further logs."""
        for prefix, table_id in _followed(self._snapshot).items():
            rows = self._snapshot.connection.execute(_PENDING, [stamp_row(prefix)], binary=True)
            commits = commits_of(rows)
            if commits:
                name = new_log_file(table_id, commits[0][0])
                self._writer.put_file(name, b"".join(pack_blocks(commits)))
                yield name


def _stamped(stamp: int, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Adds the stamp that a data folder has for all tables; its key is the first of its space."""
    yield STAMP_KEY, stamp.to_bytes(8, "big")
    yield from pairs


def _followed(snapshot: Snapshot) -> Mapping[bytes, str]:
    return followed_tables(TableCatalog(snapshot), RecoveryRecords(snapshot))
