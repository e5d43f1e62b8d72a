"""Whether every backup and every base can be read: its manifest, and all of its chunks."""

from __future__ import annotations

from collections.abc import Iterator

from partita.database.check.findings import Finding, Folder
from partita.database.recovery.manifests import get_chunk, get_manifest
from partita.database.recovery.records import Backup, Base, read_records
from partita.database.storage.archive import Archive
from partita.errors import StorageError


def backups_are_readable(folder: Folder, archive: Archive) -> Iterator[Finding]:
    try:
        records = [record for _, record in read_records(folder.snapshot)]
    except StorageError as error:
        yield Finding("recovery", "a record cannot be read", found=str(error))
        return
    read: set[str] = set()
    for record in records:
        if isinstance(record, Backup) and record.is_available:
            where = f"backup {record.name} of table {record.table.name}"
            yield from _readable(where, record, archive, read)
        elif isinstance(record, Base):
            yield from _readable(f"base {record.id}", record, archive, read)


def _readable(
    where: str, record: Backup | Base, archive: Archive, read: set[str]
) -> Iterator[Finding]:
    try:
        manifest = get_manifest(archive, record.manifest)
        for chunk in (*manifest.chunks, *manifest.patches):
            if chunk.digest not in read:
                get_chunk(archive, chunk)
                read.add(chunk.digest)
    except StorageError as error:
        yield Finding(where, "it cannot be restored", found=str(error))
