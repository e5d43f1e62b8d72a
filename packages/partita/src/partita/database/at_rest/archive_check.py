"""Checks that every table backup and every recovery base can be read from the archive."""

from __future__ import annotations

from collections.abc import Iterator

from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding
from partita.database.recovery.chunk_manifests import get_chunk, get_manifest
from partita.database.recovery.recovery_records import BackupRecord, RecoveryBase, read_records
from partita.database.storage.archive import Archive
from partita.errors import StorageError


def backups_are_readable(folder: CheckedFolder, archive: Archive) -> Iterator[CheckFinding]:
    try:
        records = [record for _, record in read_records(folder.snapshot)]
    except StorageError as error:
        yield CheckFinding("recovery", "a record cannot be read", found=str(error))
        return
    read: set[str] = set()
    for record in records:
        if isinstance(record, BackupRecord) and record.is_available:
            where = f"backup {record.name} of table {record.table.name}"
            yield from _readable(where, record, archive, read)
        elif isinstance(record, RecoveryBase):
            yield from _readable(f"base {record.id}", record, archive, read)


def _readable(
    where: str, record: BackupRecord | RecoveryBase, archive: Archive, read: set[str]
) -> Iterator[CheckFinding]:
    try:
        manifest = get_manifest(archive, record.manifest)
        for chunk in (*manifest.chunks, *manifest.patches):
            if chunk.digest not in read:
                get_chunk(archive, chunk)
                read.add(chunk.digest)
    except StorageError as error:
        yield CheckFinding(where, "it cannot be restored", found=str(error))
