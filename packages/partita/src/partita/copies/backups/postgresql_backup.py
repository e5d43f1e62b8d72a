"""Copies of a whole database in PostgreSQL: `partita backup --storage`, and out of them again.

One snapshot shows all rows, the archive, and the changes on their way into it, as of one moment.
Servers go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from partita.copies.backups.backup_contents import write_files
from partita.copies.backups.backup_format import FILES, DatabaseBackup
from partita.copies.backups.backup_snapshot import snapshot_of
from partita.copies.storage_copy.snapshot_copy import SPACES, PostgresqlTarget, copy, verify
from partita.database.recovery.chunk_manifests import (
    CHUNKS,
    MANIFESTS,
    Chunk,
    ChunkManifest,
    chunk_name,
    put_chunk,
    run_of,
)
from partita.database.recovery.recovery_bases import followed_tables
from partita.database.recovery.recovery_records import RecoveryRecords
from partita.database.shared.rounds.fetched_view import Pair
from partita.database.shared.stored_snapshot import StoredSnapshot
from partita.database.storage.archive import Archive, MemoryArchive
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.postgresql.optimistic_commit import stamp_row
from partita.database.storage.recovery_log import (
    LOGS,
    MICROSECONDS,
    STAMP_KEY,
    commits_of,
    new_log_file,
    pack_blocks,
)
from partita.database.tables.definition.table_catalog import TableCatalog

LEFT: Final = (STAMP_KEY,)
"""In PostgreSQL, each table has a stamp of its own, beside the rows."""

_STAMP: Final = """
    SELECT greatest((extract(epoch FROM now()) * 1000000)::bigint,
        (SELECT max(last) FROM partita_sequences WHERE key >= %b AND key < %b))"""
_PENDING: Final = "SELECT stamp, place, value FROM partita_recovery WHERE key = %b"
Progress = Callable[[int], None]


class PostgresqlBackup:
    """One copy, into a place that may have earlier ones: what they have is not written again."""

    def __init__(self, snapshot: StoredSnapshot, target: Archive, progress: Progress) -> None:
        self._snapshot = snapshot
        self._target = target
        self._progress = progress
        self.bytes_written = 0

    def take(self) -> DatabaseBackup:
        stamp = self._stamp()
        return DatabaseBackup(
            created_at=stamp / MICROSECONDS,
            manifest=ChunkManifest(stamp=stamp, chunks=list(self._chunks(stamp))),
            files=sorted((*self._archived(), *self._pending())),
        )

    def _stamp(self) -> int:
        """The present, and not before any commit."""
        bounds = [STAMP_KEY, prefix_end(STAMP_KEY)]
        found = self._snapshot.connection.execute(_STAMP, bounds).fetchone()
        assert found is not None
        stamp: int = found[0]
        return stamp

    def _chunks(self, stamp: int) -> Iterator[Chunk]:
        for space in SPACES:
            pairs = self._snapshot.range(space, prefix_end(space))
            if STAMP_KEY.startswith(space):
                pairs = _stamped(stamp, pairs)
            while run := run_of(pairs, 0):
                packed = MemoryArchive()
                chunk = put_chunk(packed, run)
                name = chunk_name(chunk.digest)
                if not self._target.has(name):
                    self._put(name, packed.get(name))
                self._progress(len(run))
                yield chunk

    def _archived(self) -> Iterator[str]:
        """Backups of tables, and their past."""
        archive = self._snapshot.archive
        for kind in (CHUNKS, MANIFESTS, LOGS):
            for name in archive.names(kind):
                if not self._target.has(FILES + name):
                    self._put(FILES + name, archive.get(name))
                yield name

    def _pending(self) -> Iterator[str]:
        """Changes that the leader has not moved into the archive yet."""
        for prefix, table_id in _followed(self._snapshot).items():
            rows = self._snapshot.connection.execute(_PENDING, [stamp_row(prefix)], binary=True)
            commits = commits_of(rows)
            if commits:
                name = new_log_file(table_id, commits[0][0])
                self._put(FILES + name, b"".join(pack_blocks(commits)))
                yield name

    def _put(self, name: str, content: bytes) -> None:
        self._target.put(name, content)
        self.bytes_written += len(content)


def _stamped(stamp: int, pairs: Iterator[Pair]) -> Iterator[Pair]:
    """A data folder has one stamp for all tables, before all other keys of its space."""
    yield STAMP_KEY, stamp.to_bytes(8, "big")
    yield from pairs


def _followed(snapshot: Snapshot) -> Mapping[bytes, str]:
    return followed_tables(TableCatalog(snapshot), RecoveryRecords(snapshot))


def restore(
    source: Archive, copied: DatabaseBackup, target: PostgresqlTarget, progress: Progress
) -> None:
    """Make a database of a copy, all but its end: it may not be served yet. What was interrupted
    goes on when it is run again."""
    write_files(target.archive, source, copied, lambda archive: archive)
    snapshot = snapshot_of(source, copied)
    copy(snapshot, target, progress, LEFT)
    verify(snapshot, target, LEFT)
    target.promise_stamps(copied.manifest.stamp, _followed(snapshot))
