"""Copies of what servers share in PostgreSQL: loaded only for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from partita.assembly import checks_at_rest
from partita.copies.backups.backup_format import get_backup, put_backup
from partita.copies.backups.postgresql_backup import PostgresqlBackup
from partita.copies.backups.postgresql_backup import restore as restore_into
from partita.copies.backups.server_backup import BackupSummary
from partita.copies.storage_copy.snapshot_copy import postgresql_target
from partita.database.shared.stored_snapshot import stored_snapshot
from partita.database.storage.archive import Archive
from partita.database.storage.postgresql import postgresql_schema
from partita.database.storage.postgresql.postgresql_pool import connected
from partita.errors import PartitaError

ENCRYPTED: Final = (
    "The backup {} is encrypted, and Partita does not encrypt in PostgreSQL: restore it into a "
    "folder, and copy that with partita storage copy."
)

Progress = Callable[[int], None]


def take(url: str, target: Archive, progress: Progress) -> BackupSummary:
    """As of one moment; servers go on meanwhile."""

    async def check() -> None:
        async with connected(url) as connection:
            await postgresql_schema.check(connection, oldest=postgresql_schema.ARCHIVE_VERSION)

    asyncio.run(check())
    with stored_snapshot(url) as snapshot:
        taking = PostgresqlBackup(snapshot, target, progress)
        copy = taking.take()
    return BackupSummary(put_backup(target, copy), copy.keys, taking.bytes_written)


def restore(
    source: Archive, name: str, url: str, progress: Progress, say: Callable[[str], None]
) -> bool:
    """Make the tables, and fill them; whether all is well with what is in them then."""
    copy = get_backup(source, name)
    if copy.keyring is not None:
        raise PartitaError(ENCRYPTED.format(name))
    checks_at_rest.create_tables(url, is_copied_into=True)
    with postgresql_target(url) as target:
        restore_into(source, copy, target, progress)
        return checks_at_rest.finish_copy(url, target, say)
