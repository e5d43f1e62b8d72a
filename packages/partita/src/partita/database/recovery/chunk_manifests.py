"""Chunks and manifests: the format of recovery bases, of table backups and of `partita backup`.

A chunk is a run of neighboring items (content-defined chunking): it ends at a key whose checksum is
a multiple of `CHUNK_ITEMS`, not after a fixed number of items, so an insert changes one chunk and
leaves all others as they were. A chunk is named after the digest of its content, so chunks that
have not changed since the last base or backup are not written again.

A manifest lists the chunks, and patches with the changes that were committed while these were read.
It names the stamp at which chunks and patches together are the exact state.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, Protocol

import msgspec
from zlib_ng import zlib_ng

from partita.database.storage.archive import Archive
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.recovery_log import COMPRESSION, Change, damaged, read_log
from partita.errors import StorageError
from partita.foundation.checksum import crc32

logger = logging.getLogger(__name__)

CHUNKS: Final = "chunks/"
MANIFESTS: Final = "manifests/"
CHUNK_ITEMS: Final = 512
"""The average number of items in a chunk."""
CHUNK_ITEMS_MAX: Final = 2048
CHUNK_BYTES_MAX: Final = 512 << 10
DIGEST_BYTES: Final = 20
PATCH_BYTES_MAX: Final = 4 << 20
CHECKSUM_BYTES: Final = 4

_encode = msgspec.msgpack.encode
_decode_changes = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]]).decode


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk as a manifest lists it."""

    digest: str
    first: bytes
    """The place of the first item."""
    items: int
    size_bytes: int


class ChunkManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The chunks and patches of a recovery base, of a table backup or of a whole database."""

    stamp: int
    chunks: list[Chunk]
    """In key order."""
    patches: list[Chunk] = []
    """Changes that were committed while the chunks were read, the oldest first; an item without a
    value was deleted."""


_decode_manifest = msgspec.msgpack.Decoder(ChunkManifest).decode


def put_manifest(archive: Archive, name: str, manifest: ChunkManifest) -> None:
    archive.put(MANIFESTS + name, add_checksum(_encode(manifest)))


def get_manifest(archive: Archive, name: str) -> ChunkManifest:
    return _decode_manifest(verify_checksum(MANIFESTS + name, archive.get(MANIFESTS + name)))


def add_checksum(content: bytes) -> bytes:
    """Puts a CRC-32 in front of the content of a manifest file."""
    return crc32(content).to_bytes(CHECKSUM_BYTES, "little") + content


def verify_checksum(name: str, content: bytes) -> bytes:
    """Returns the content after its checksum; raises StorageError if they do not match."""
    if add_checksum(content[CHECKSUM_BYTES:]) != content:
        raise damaged(name)
    return content[CHECKSUM_BYTES:]


def chunk_name(digest: str) -> str:
    return f"{CHUNKS}{digest[:2]}/{digest}"


class ChunkStore(Protocol):
    """The part of an archive that writing chunks needs."""

    def has(self, name: str) -> bool: ...

    def put(self, name: str, content: bytes) -> None: ...


def put_chunk(archive: ChunkStore, changes: Sequence[Change]) -> Chunk:
    """Writes a chunk, unless it exists already."""
    content = _encode(changes)
    digest = blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
    name = chunk_name(digest)
    if not archive.has(name):
        archive.put(name, zlib_ng.compress(content, COMPRESSION))
    return Chunk(digest, changes[0][0], len(changes), len(content))


def get_chunk(archive: Archive, chunk: Chunk) -> list[Change]:
    name = chunk_name(chunk.digest)
    try:
        content = zlib.decompress(archive.get(name))
    except zlib.error:
        raise damaged(name) from None
    if blake2b(content, digest_size=DIGEST_BYTES).hexdigest() != chunk.digest:
        raise damaged(name)
    try:
        return _decode_changes(content)
    except msgspec.MsgspecError as error:
        raise StorageError(f"{name} in the archive cannot be read: {error}.") from error


def read_chunks(snapshot: Snapshot, archive: Archive, prefix: bytes) -> Iterator[Chunk]:
    """Archives all items under a prefix, one chunk at a time."""
    position, stop = prefix, prefix_end(prefix)
    while run := next_run(snapshot, position, stop, len(prefix)):
        position = prefix + run[-1][0] + b"\x00"
        yield put_chunk(archive, run)


def next_run(snapshot: Snapshot, position: bytes, stop: bytes, prefix_bytes: int) -> list[Change]:
    return run_of(snapshot.range(position, stop), prefix_bytes)


def run_of(pairs: Iterator[tuple[bytes, bytes]], prefix_bytes: int) -> list[Change]:
    """Takes the pairs of the next chunk; empty after the last pair."""
    run: list[Change] = []
    size = 0
    for key, value in pairs:
        place = key[prefix_bytes:]
        run.append((place, value))
        size += len(place) + len(value)
        is_end = not crc32(place) % CHUNK_ITEMS
        if is_end or size > CHUNK_BYTES_MAX or len(run) == CHUNK_ITEMS_MAX:
            break
    return run


def read_patches(archive: Archive, table_id: str, after: int, until: int) -> Iterator[list[Change]]:
    """Yields the changes of the commits between two stamps, merged into patches.

    A patch has the last value of each key that its commits have changed. An empty list means that
    some of the log was read without completing a patch, so that the caller can pause.
    """
    changed: dict[bytes, bytes | None] = {}
    size = 0
    for commits in read_log(archive, table_id, after, until):
        for _, changes in commits:
            changed.update(changes)
            size += sum(len(place) + len(value or b"") for place, value in changes)
        if size > PATCH_BYTES_MAX:
            yield list(changed.items())
            changed, size = {}, 0
        else:
            yield []
    if changed:
        yield list(changed.items())


def collect_garbage(archive: Archive, kept: set[str]) -> None:
    """Removes all manifests except `kept`, and every chunk that no kept manifest lists."""
    manifests: list[ChunkManifest] = []
    try:
        for path in archive.names(MANIFESTS):
            name = path.removeprefix(MANIFESTS)
            if name in kept:
                manifests.append(get_manifest(archive, name))
            else:
                archive.delete(path)
        remove_unused_chunks(archive, manifests)
    except StorageError as error:
        logger.error("Unused files of the archive cannot be removed: %s", error)


def remove_unused_chunks(archive: Archive, manifests: Iterable[ChunkManifest]) -> None:
    """Removes every chunk that none of these manifests lists."""
    used = {
        chunk.digest for manifest in manifests for chunk in (*manifest.chunks, *manifest.patches)
    }
    for path in archive.names(CHUNKS):
        if path.rpartition("/")[2] not in used:
            archive.delete(path)
