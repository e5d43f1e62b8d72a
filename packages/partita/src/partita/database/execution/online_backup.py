"""Online backup: reads the whole database for `partita backup` while it is in use.

As for a recovery base, the snapshot is fuzzy: all keys are read in runs, each from the snapshot of
its moment, so no reader pins old pages and no writer waits. Meanwhile every commit has a stamp and
is kept. All runs, with the commits from the first to the last stamp applied, are exactly the
database at the last stamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from partita.database.operations.operation_context import Request, WriteContext
from partita.database.recovery import recovery_stages
from partita.database.recovery.chunk_manifests import (
    CHUNKS,
    MANIFESTS,
    Chunk,
    chunk_name,
    next_run,
    put_chunk,
    read_patches,
)
from partita.database.recovery.recovery_context import RecoveryContext
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.storage.archive import Archive, MemoryArchive
from partita.database.storage.data_folder.keyring_access import Seal
from partita.database.storage.recovery_log import (
    EVERYTHING,
    LOGS,
    STAMP_KEY,
    Change,
    log_prefix,
    stamp_of,
)

END: Final = b"\xff" * 8
"""A key after all others."""


class PackedChunk(NamedTuple):
    """A chunk, and the content of its file."""

    chunk: Chunk
    content: bytes


def begin_online_backup(context: WriteContext, request: Request) -> bytes:
    """Makes a commit that separates earlier ones, which the snapshot shows, from later ones, which
    have stamps and are kept."""
    context.write_batch.put(STAMP_KEY, context.write_batch.get(STAMP_KEY) or bytes(8))
    return b""


class OnlineBackup:
    """One backup in progress, which starts after the commit of `begin_online_backup`."""

    def __init__(self, work: RecoveryContext, files: Archive, seal: Seal) -> None:
        self._work = work
        self._files = files
        self._seal = seal
        self.start = stamp_of(work.snapshot)
        self.end: int | None = None
        """The stamp of the backup, once all keys were read."""
        self._names: set[str] = set()
        self._patches: Iterator[list[Change]] | None = None
        recovery_stages.reach_stage(RecoveryStage.ONLINE_BACKUP_BEGUN)

    def run_after(self, key: bytes) -> list[Change]:
        """Reads the next keys and values; empty at the end, which fixes the stamp of the backup."""
        run = next_run(self._work.snapshot, key + b"\x00" if key else b"", END, 0)
        if not run:
            self.end = stamp_of(self._work.snapshot)
        recovery_stages.reach_stage(RecoveryStage.ONLINE_BACKUP_RUN_READ)
        return run

    def pack(self, changes: list[Change]) -> PackedChunk:
        """Packs pairs into a chunk, on any thread."""
        archive = MemoryArchive()
        chunk = put_chunk(self._seal(archive), changes)
        return PackedChunk(chunk, archive.get(chunk_name(chunk.digest)))

    def next_patch(self) -> PackedChunk | None:
        """Returns the next patch, the oldest first; None at the end.

        Called on another thread, since it reads files.
        """
        assert self.end is not None
        if self._patches is None:
            self._work.log.flush()
            patches = read_patches(self._work.archive, EVERYTHING, self.start, self.end)
            self._patches = filter(None, patches)
        changes = next(self._patches, None)
        recovery_stages.reach_stage(RecoveryStage.ONLINE_BACKUP_COMMITS_READ)
        return None if changes is None else self.pack(changes)

    def list_files(self) -> list[str]:
        """The names of all files of the archive, after flushing the recovery log to it."""
        self._work.log.flush()
        names = [name for kind in (MANIFESTS, CHUNKS, LOGS) for name in self._files.names(kind)]
        # The log of this backup itself is not part of it: its commits are the patches.
        own_log = log_prefix(EVERYTHING)
        self._names = {name for name in names if not name.startswith(own_log)}
        recovery_stages.reach_stage(RecoveryStage.ONLINE_BACKUP_FILES_LISTED)
        return sorted(self._names)

    def read_file(self, name: str) -> bytes | None:
        """Returns the content of a listed file; None if it is not listed or was removed."""
        if name not in self._names or not self._files.has(name):
            return None
        return self._files.get(name)
