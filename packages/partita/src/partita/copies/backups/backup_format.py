"""What a copy consists of, in a folder or a bucket that may have many of them.

    backups/NAME            one copy: its chunks, its patches, its files
    chunks/XX/DIGEST        neighbouring keys and their values, shared by all copies that have them
    files/...               the archive of the database: its backups, and the past of its tables

A copy is there when its name is: everything that it refers to is written first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from partita.database.recovery import recovery_stages
from partita.database.recovery.chunk_manifests import CHUNKS, Chunk, ChunkManifest
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.storage.archive import Archive
from partita.database.storage.recovery_log import damaged
from partita.errors import PartitaError, StorageError
from partita.foundation.checksum import crc32

COPIES: Final = "backups/"
FILES: Final = "files/"
FORMAT: Final = 1
CHECKSUM_BYTES: Final = 4
LATEST: Final = "latest"

_encode = msgspec.msgpack.encode


class DatabaseBackup(msgspec.Struct, frozen=True, kw_only=True):
    format: int = FORMAT
    created_at: float
    manifest: ChunkManifest
    """All keys and values of the engine, as they were at its stamp."""
    files: list[str] = []
    """The names of the archive. Logs among them may have later commits too."""
    keyring: bytes | None = None
    """Of an encrypted database: its keys, sealed by the operator's."""

    @property
    def keys(self) -> int:
        """How many keys it has, patches aside."""
        return sum(chunk.items for chunk in self.manifest.chunks)


_decode = msgspec.msgpack.Decoder(DatabaseBackup).decode


def put_backup(target: Archive, copy: DatabaseBackup) -> str:
    """The name of the copy, which is there from now on."""
    content = _encode(copy)
    moment = datetime.fromtimestamp(copy.created_at, UTC)
    name = moment.strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    target.sync()
    target.put(COPIES + name, crc32(content).to_bytes(CHECKSUM_BYTES, "little") + content)
    target.sync()
    return name


def get_backup(source: Archive, name: str) -> DatabaseBackup:
    content = source.get(COPIES + name)
    if (
        crc32(content[CHECKSUM_BYTES:]).to_bytes(CHECKSUM_BYTES, "little")
        != content[:CHECKSUM_BYTES]
    ):
        raise damaged(COPIES + name)
    try:
        copy = _decode(content[CHECKSUM_BYTES:])
    except msgspec.MsgspecError as error:
        raise StorageError(f"The backup {name} cannot be read: {error}.") from error
    if copy.format != FORMAT:
        raise StorageError(f"The backup {name} was written by another version of Partita.")
    return copy


def backup_names(source: Archive) -> list[str]:
    """The oldest first."""
    return [name.removeprefix(COPIES) for name in source.names(COPIES)]


def find_backup(source: Archive, asked: str, place: str) -> str:
    """The name of the copy that somebody asks for, or of the last one."""
    names = backup_names(source)
    if not names:
        raise PartitaError(f"There is no backup in {place}.")
    if asked == LATEST:
        return names[-1]
    if asked not in names:
        raise PartitaError(f"There is no backup {asked} in {place}; the last one is {names[-1]}.")
    return asked


def keep_newest(target: Archive, count: int) -> list[str]:
    """Remove all copies but so many, and what only they refer to; the names of those removed."""
    names = backup_names(target)
    gone = names[:-count]
    if not gone:
        return []
    kept = [get_backup(target, name) for name in names[-count:]]
    for name in gone:
        target.delete(COPIES + name)
        recovery_stages.reach_stage(RecoveryStage.WHOLE_BACKUP_REMOVED)
    target.sync()
    chunks = {one.digest for copy in kept for one in _chunks(copy.manifest)}
    files = {name for copy in kept for name in copy.files}
    for name in target.names(CHUNKS):
        if name.rpartition("/")[2] not in chunks:
            target.delete(name)
    for name in target.names(FILES):
        if name.removeprefix(FILES) not in files:
            target.delete(name)
    return gone


def _chunks(manifest: ChunkManifest) -> list[Chunk]:
    return [*manifest.chunks, *manifest.patches]
