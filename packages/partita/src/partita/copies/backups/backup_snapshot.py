"""Reads a backup: its keys and values as a snapshot, and its files.

Everything that uses a backup reads it here: `partita restore` copies the snapshot into a folder or
into PostgreSQL, and a check looks at it without restoring anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

from partita.copies.backups.backup_format import FILES, DatabaseBackup
from partita.database.recovery.chunk_manifests import Chunk, get_chunk
from partita.database.storage.archive import Archive, MemoryArchive
from partita.database.storage.data_folder.embedded_engine import EmbeddedSnapshot
from partita.database.storage.engine import Snapshot
from partita.database.storage.recovery_log import LOGS, cut_log, renamed_log_file

CHUNKS_IN_MEMORY: Final = 64

Seal = Callable[[Archive], Archive]
"""Wraps an archive in one that decrypts and encrypts, if the backup is encrypted."""


class ChunkedPairs:
    """The pairs of a list of chunks; the chunks that were read last are kept in memory."""

    def __init__(self, location: Archive, chunks: list[Chunk]) -> None:
        self._location = location
        self._chunks = chunks
        self._firsts = [chunk.first for chunk in chunks]
        self._read: OrderedDict[int, dict[bytes, bytes]] = OrderedDict()

    def get(self, key: bytes) -> bytes | None:
        number = bisect_right(self._firsts, key) - 1
        return None if number < 0 else self._pairs(number).get(key)

    def range(
        self, start: bytes, stop: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        first = max(bisect_right(self._firsts, start) - 1, 0)
        last = bisect_right(self._firsts, stop)
        numbers = range(first, last)
        for number in reversed(numbers) if reverse else numbers:
            pairs = list(self._pairs(number).items())
            for key, value in reversed(pairs) if reverse else pairs:
                if start <= key < stop:
                    yield key, value

    def _pairs(self, number: int) -> dict[bytes, bytes]:
        pairs = self._read.pop(number, None)
        if pairs is None:
            chunk = get_chunk(self._location, self._chunks[number])
            pairs = {key: value for key, value in chunk if value is not None}
            if len(self._read) >= CHUNKS_IN_MEMORY:
                self._read.popitem(last=False)
        self._read[number] = pairs
        return pairs


def backup_snapshot(location: Archive, backup: DatabaseBackup) -> Snapshot:
    """The database at the stamp of a backup; `location` decrypts, if the backup is encrypted."""
    snapshot = EmbeddedSnapshot(ChunkedPairs(location, backup.manifest.chunks))
    for patch in backup.manifest.patches:
        snapshot.frozen.update(dict(get_chunk(location, patch)))
    return snapshot


def restore_files(target: Archive, location: Archive, backup: DatabaseBackup, seal: Seal) -> None:
    """Copies the files of a backup into the archive of a new database, if they are not there yet.

    Logs are cut at the backup's stamp: later commits have not happened in the new database. They
    get new names, because the new database may be backed up into the same location as the old one,
    and the log of one must not be taken for that of the other.
    """
    sealed = seal(target)
    for name in target.names(LOGS):
        # The names of logs are random, so those of an interrupted restore would stay.
        target.delete(name)
    for name in backup.files:
        if target.has(name):
            continue
        content = location.get(FILES + name)
        if not name.startswith(LOGS):
            target.put(name, content)
            continue
        read = MemoryArchive()
        read.put(name, content)
        kept = cut_log(seal(read).get(name), backup.manifest.stamp)
        if kept:
            sealed.append(renamed_log_file(name), kept)
    target.sync()
