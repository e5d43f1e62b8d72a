"""What a database gives of itself while it is being copied.

As with a base of a table, reading is fuzzy: all keys, a run at a time, each from the snapshot of
its turn, so that no reader pins pages and no writer waits. Meanwhile every commit has a stamp and
is kept. All runs, then the commits from the first stamp to the last, are the database at the last
stamp, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
)
from partita.database.recovery.recovery_bases import PATCH_BYTES_MAX, RecoveryContext
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.storage.archive import Archive, MemoryArchive
from partita.database.storage.recovery_log import (
    EVERYTHING,
    LOGS,
    STAMP_KEY,
    Change,
    log_prefix,
    read_log,
    stamp_of,
)

END: Final = b"\xff" * 8
"""Behind all keys."""

Seal = Callable[[Archive], Archive]
"""An archive whose contents are as the database's own are: sealed, or as they are."""


class PackedChunk(NamedTuple):
    """A chunk, and its bytes as they are archived."""

    chunk: Chunk
    content: bytes


def begin_online_backup(context: WriteContext, request: Request) -> bytes:
    """A commit: those behind it have stamps, and those before it are in the snapshot."""
    context.write_batch.put(STAMP_KEY, context.write_batch.get(STAMP_KEY) or bytes(8))
    return b""


class OnlineBackup:
    """One copy being taken, after the commit of `begin_online_backup`."""

    def __init__(self, work: RecoveryContext, files: Archive, seal: Seal) -> None:
        self._work = work
        self._files = files
        self._seal = seal
        self.start = stamp_of(work.snapshot)
        self.end: int | None = None
        """The stamp that the copy has, when all keys are read."""
        self._names: set[str] = set()
        self._patches: Iterator[list[Change]] | None = None
        recovery_stages.reach_stage(RecoveryStage.COPIED_BEGUN)

    def run_after(self, key: bytes) -> list[Change]:
        """The next keys and values; nothing behind the last one, whose reading fixes the end."""
        run = next_run(self._work.snapshot, key + b"\x00" if key else b"", END, 0)
        if not run:
            self.end = stamp_of(self._work.snapshot)
        recovery_stages.reach_stage(RecoveryStage.COPIED_RUN_READ)
        return run

    def pack(self, changes: list[Change]) -> PackedChunk:
        """On any thread."""
        archive = MemoryArchive()
        chunk = put_chunk(self._seal(archive), changes)
        return PackedChunk(chunk, archive.get(chunk_name(chunk.digest)))

    def next_patch(self) -> PackedChunk | None:
        """Commits between the beginning and the end, the oldest first; on a thread that may wait
        for the disk."""
        assert self.end is not None
        if self._patches is None:
            self._work.log.flush()
            self._patches = _patches(self._work.archive, self.start, self.end)
        changes = next(self._patches, None)
        recovery_stages.reach_stage(RecoveryStage.COPIED_COMMITS_READ)
        return None if changes is None else self.pack(changes)

    def list_files(self) -> list[str]:
        """The archive's own names; what a flush has put there is among them."""
        self._work.log.flush()
        names = [name for kind in (MANIFESTS, CHUNKS, LOGS) for name in self._files.names(kind)]
        own = log_prefix(EVERYTHING)
        self._names = {name for name in names if not name.startswith(own)}
        recovery_stages.reach_stage(RecoveryStage.COPIED_FILES_LISTED)
        return sorted(self._names)

    def read_file(self, name: str) -> bytes | None:
        """None for what is not in the list, or not there any more."""
        if name not in self._names or not self._files.has(name):
            return None
        return self._files.get(name)


def _patches(archive: Archive, after: int, until: int) -> Iterator[list[Change]]:
    changed: dict[bytes, bytes | None] = {}
    size = 0
    for commits in read_log(archive, EVERYTHING, after, until):
        for _, changes in commits:
            changed.update(changes)
            size += sum(len(key) + len(value or b"") for key, value in changes)
        if size > PATCH_BYTES_MAX:
            yield list(changed.items())
            changed, size = {}, 0
    if changed:
        yield list(changed.items())
