"""Copies of what servers share in PostgreSQL: loaded only for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from partita.assembly import checking
from partita.backups.taking import Taken
from partita.database.copies.copies import get_copy, put_copy
from partita.database.shared.at_rest.backups import Taking
from partita.database.shared.at_rest.backups import restore as restore_into
from partita.database.shared.at_rest.copying import postgresql_target
from partita.database.shared.at_rest.stored_snapshot import stored_snapshot
from partita.database.storage.archive import Archive
from partita.database.storage.postgresql import schema
from partita.database.storage.postgresql.connections import connected
from partita.errors import PartitaError

ENCRYPTED: Final = (
    "The backup {} is encrypted, and Partita does not encrypt in PostgreSQL: restore it into a "
    "folder, and copy that with partita storage copy."
)

Progress = Callable[[int], None]


def take(url: str, target: Archive, progress: Progress) -> Taken:
    """As of one moment; servers go on meanwhile."""

    async def check() -> None:
        async with connected(url) as connection:
            await schema.check(connection, oldest=schema.ARCHIVE_VERSION)

    asyncio.run(check())
    with stored_snapshot(url) as snapshot:
        taking = Taking(snapshot, target, progress)
        copy = taking.take()
    return Taken(put_copy(target, copy), copy.keys, taking.bytes_written)


def restore(
    source: Archive, name: str, url: str, progress: Progress, say: Callable[[str], None]
) -> bool:
    """Make the tables, and fill them; whether all is well with what is in them then."""
    copy = get_copy(source, name)
    if copy.keyring is not None:
        raise PartitaError(ENCRYPTED.format(name))
    checking.create_tables(url, is_copied_into=True)
    with postgresql_target(url) as target:
        restore_into(source, copy, target, progress)
        return checking.finish_copy(url, target, say)
