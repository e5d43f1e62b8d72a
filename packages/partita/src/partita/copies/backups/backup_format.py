"""The format of `partita backup`: what a folder or bucket with backups contains.

    backups/NAME            one backup: its chunks, its patches, its files
    chunks/XX/DIGEST        neighboring keys with their values, shared by all backups that have them
    files/...               the archive of the database: table backups, and the past of its tables

A backup exists when its name does: everything that it refers to is written before. Chunks have the
format of recovery bases (`database/recovery/chunk_manifests.py`); a backup is their manifest, with
the files of the archive and, for an encrypted database, its keyring.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from partita.database.recovery import crash_points
from partita.database.recovery.chunk_manifests import (
    ChunkManifest,
    add_checksum,
    remove_unused_chunks,
    verify_checksum,
)
from partita.database.recovery.crash_points import CrashPoint
from partita.database.storage.archive import Archive
from partita.errors import PartitaError, StorageError

BACKUPS: Final = "backups/"
FILES: Final = "files/"
FORMAT: Final = 1
LATEST: Final = "latest"

_encode = msgspec.msgpack.encode


class DatabaseBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup of a whole database."""

    format: int = FORMAT
    created_at: float
    manifest: ChunkManifest
    """All keys and values of the engine at the manifest's stamp."""
    files: list[str] = []
    """Names of files of the archive. Logs among them may contain later commits, too."""
    keyring: bytes | None = None
    """The keyring of an encrypted database, which the operator's key encrypts."""

    @property
    def keys(self) -> int:
        """The number of keys in its chunks, not counting the patches."""
        return sum(chunk.items for chunk in self.manifest.chunks)


_decode = msgspec.msgpack.Decoder(DatabaseBackup).decode


class BackupSummary(NamedTuple):
    """A finished backup, as `partita backup` reports it."""

    name: str
    keys: int
    bytes_written: int


class BackupWriter:
    """Writes one backup into a location; what earlier backups have there is not written again.

    The files of an interrupted backup have no name that refers to them; the next one uses them.
    """

    def __init__(self, location: Archive) -> None:
        self._location = location
        self._bytes_written = 0

    def has(self, name: str) -> bool:
        return self._location.has(name)

    def put(self, name: str, content: bytes) -> None:
        self._location.put(name, content)
        self._bytes_written += len(content)

    def has_file(self, name: str) -> bool:
        """True if a file already exists. A log may still have grown since."""
        return self.has(FILES + name)

    def put_file(self, name: str, content: bytes) -> None:
        # Logs are only appended to, so one of the same size is the same; other files never change.
        if not (self.has_file(name) and self._location.size(FILES + name) == len(content)):
            self.put(FILES + name, content)

    def finish(self, backup: DatabaseBackup) -> BackupSummary:
        """Gives the backup its name: from now on it exists."""
        moment = datetime.fromtimestamp(backup.created_at, UTC)
        name = moment.strftime("%Y-%m-%dT%H-%M-%S.%fZ")
        self._location.sync()
        self._location.put(BACKUPS + name, add_checksum(_encode(backup)))
        self._location.sync()
        return BackupSummary(name, backup.keys, self._bytes_written)


def get_backup(location: Archive, name: str) -> DatabaseBackup:
    content = verify_checksum(BACKUPS + name, location.get(BACKUPS + name))
    try:
        backup = _decode(content)
    except msgspec.MsgspecError as error:
        raise StorageError(f"The backup {name} cannot be read: {error}.") from error
    if backup.format != FORMAT:
        raise StorageError(
            f"The backup {name} was written by another version of Partita; restore it with that "
            "version."
        )
    return backup


def backup_names(location: Archive) -> list[str]:
    """The names of all backups, the oldest first."""
    return [name.removeprefix(BACKUPS) for name in location.names(BACKUPS)]


def find_backup(location: Archive, name: str, place: str) -> str:
    """Checks that a backup exists; `latest` stands for the last one. `place` is for messages."""
    names = backup_names(location)
    if not names:
        raise PartitaError(f"There are no backups in {place}.")
    if name == LATEST:
        return names[-1]
    if name not in names:
        raise PartitaError(
            f"{place} does not contain the backup {name}; the last one there is {names[-1]}."
        )
    return name


def keep_newest(location: Archive, count: int) -> list[str]:
    """Removes all but the last `count` backups, and whatever only they refer to.

    Returns the names of the removed backups.
    """
    names = backup_names(location)
    removed = names[:-count]
    if not removed:
        return []
    kept = [get_backup(location, name) for name in names[-count:]]
    # Names go first: a backup whose chunks are being removed must not look complete.
    for name in removed:
        location.delete(BACKUPS + name)
        crash_points.reach(CrashPoint.DATABASE_BACKUP_REMOVED)
    location.sync()
    remove_unused_chunks(location, (backup.manifest for backup in kept))
    files = {name for backup in kept for name in backup.files}
    for name in location.names(FILES):
        if name.removeprefix(FILES) not in files:
            location.delete(name)
    return removed
