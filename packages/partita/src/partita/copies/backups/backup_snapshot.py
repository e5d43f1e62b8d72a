"""A copy as a snapshot: what `partita check` looks at, without restoring anything."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from partita.copies.backups.backup_format import DatabaseBackup
from partita.database.recovery.chunk_manifests import Chunk, get_chunk
from partita.database.storage.archive import Archive
from partita.database.storage.data_folder.embedded_engine import EmbeddedSnapshot
from partita.database.storage.engine import Snapshot

CHUNKS_IN_MEMORY: Final = 64


class ChunkedPairs:
    """Pairs in chunks, of which the last ones read are kept in memory."""

    def __init__(self, archive: Archive, chunks: list[Chunk]) -> None:
        self._archive = archive
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
        found = self._read.pop(number, None)
        if found is None:
            chunk = get_chunk(self._archive, self._chunks[number])
            found = {key: value for key, value in chunk if value is not None}
            if len(self._read) >= CHUNKS_IN_MEMORY:
                self._read.popitem(last=False)
        self._read[number] = found
        return found


def snapshot_of(archive: Archive, copy: DatabaseBackup) -> Snapshot:
    """What a database was when a copy of it was taken; values that were sealed are open."""
    snapshot = EmbeddedSnapshot(ChunkedPairs(archive, copy.manifest.chunks))
    for patch in copy.manifest.patches:
        snapshot.frozen.update(dict(get_chunk(archive, patch)))
    return snapshot
