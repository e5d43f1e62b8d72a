"""`partita check` and `partita storage`: what is at rest, looked at and copied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.assembly.database_engines import RECOVERY
from partita.assembly.server_protection import is_encrypted, open_keyring, sealed_archive
from partita.database.storage.archive import Archive, FolderArchive
from partita.database.storage.data_folder.embedded_engine import open_for_reading
from partita.database.storage.engine import Snapshot
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import FORMAT_VERSION
from partita.errors import PartitaError

if TYPE_CHECKING:
    from partita.copies.storage_copy.snapshot_copy import CopyTarget
    from partita.database.storage.sealing.keyring import Keyring
    from partita.database.storage.sealing.master_keys import KeySource

FIRST_ROWS: Final = {table_layout.FORMAT_KEY: str(FORMAT_VERSION).encode()}


def check(data: Path, say: Callable[[str], None], encryption_key: KeySource | None = None) -> bool:
    """Say what is wrong with a data folder, and how much was looked at; whether all is well."""
    keyring = open_keyring(data, encryption_key) if data.is_dir() else None
    archive = _folder_archive(data, keyring)
    with open_for_reading(data) as snapshot:
        return check_snapshot(snapshot, say, keyring, archive)


def check_storage(url: str, say: Callable[[str], None]) -> bool:
    """The same for what servers share in PostgreSQL."""
    from partita.database.shared.stored_snapshot import stored_snapshot

    with stored_snapshot(url) as snapshot:
        return check_snapshot(snapshot, say, archive=snapshot.archive)


def create_tables(url: str, *, is_copied_into: bool = False) -> bool:
    """Of shared storage, or those of them that are missing; whether any was."""
    from partita.database.storage.postgresql import postgresql_schema
    from partita.database.storage.postgresql.postgresql_pool import connected

    async def run() -> bool:
        async with connected(url) as connection:
            return await postgresql_schema.init(
                connection, FIRST_ROWS, is_copied_into=is_copied_into
            )

    return asyncio.run(run())


def copy_storage(
    source: str, target: str, say: Callable[[str], None], encryption_key: KeySource | None = None
) -> bool:
    """Copy all data from one folder or URL to another, and check it there; whether all is well.

    A folder that is being served is followed until its server stops.
    """
    from partita.copies.storage_copy import served_folder, snapshot_copy
    from partita.database.shared.stored_snapshot import stored_snapshot
    from partita.database.storage.postgresql.postgresql_pool import is_url

    if not is_url(target) and is_encrypted(Path(target)):
        raise PartitaError(f"The data folder {target} is encrypted: copy into a new one.")
    if is_url(target):
        create_tables(target, is_copied_into=True)
    keyring = None if is_url(source) else open_keyring(Path(source), encryption_key)
    is_followed = keyring is None and not is_url(source) and served_folder.is_served(Path(source))
    read = stored_snapshot(source) if is_url(source) else open_for_reading(Path(source))
    write: AbstractContextManager[snapshot_copy.CopyTarget] = (
        snapshot_copy.postgresql_target(target)
        if is_url(target)
        else snapshot_copy.folder_target(Path(target))
    )
    with ExitStack() as stack:
        stored = None if is_followed else stack.enter_context(read)
        copy = stack.enter_context(write)
        if stored is None:
            served_folder.follow(Path(source), copy, say)
            stored = stack.enter_context(read)
        snapshot = stored if keyring is None else _opened(stored, keyring, None)
        snapshot_copy.copy_backups(_archive(source, stored, keyring), _archive(target, copy, None))
        copied = snapshot_copy.copy(snapshot, copy)
        say(f"{copied.pairs} keys, {copied.written} written.")
        if copied.written:
            snapshot_copy.verify(snapshot, copy)
        say("Both are the same.")
        if is_url(target):
            return finish_copy(target, copy, say)
        copy.finish()
    return check(Path(target), say)


def finish_copy(url: str, copy: CopyTarget, say: Callable[[str], None]) -> bool:
    """Let servers use what was copied into PostgreSQL, if all is well with it."""
    is_well = check_storage(url, say)
    if is_well:
        copy.finish()
    else:
        say("Because of these findings, it cannot be served.")
    return is_well


def _archive(place: str, opened: object, keyring: Keyring | None) -> Archive:
    """Where the backups of a storage are: PostgreSQL has them besides its rows."""
    archive: Archive | None = getattr(opened, "archive", None)
    return _folder_archive(Path(place), keyring) if archive is None else archive


def _folder_archive(data: Path, keyring: Keyring | None) -> Archive:
    archive = FolderArchive(data / RECOVERY)
    return archive if keyring is None else sealed_archive(archive, keyring)


def check_snapshot(
    snapshot: Snapshot,
    say: Callable[[str], None],
    keyring: Keyring | None = None,
    archive: Archive | None = None,
) -> bool:
    from partita.database.at_rest.archive_check import backups_are_readable
    from partita.database.at_rest.check_findings import CheckedFolder
    from partita.database.at_rest.invariants import check as check_folder

    findings = 0

    def tell(finding: object) -> None:
        nonlocal findings
        findings += 1
        say(str(finding))

    if keyring is not None:
        snapshot = _opened(snapshot, keyring, tell)
    folder = CheckedFolder(snapshot, is_encrypted=keyring is not None)
    archived = iter(()) if archive is None else backups_are_readable(folder, archive)
    for finding in chain(check_folder(folder), archived):
        tell(finding)
    tables = len(folder.tables)
    looked_at = f"{tables} tables, {folder.items} items, {folder.entries} index entries"
    if folder.changes:
        looked_at += f", {folder.changes} changes"
    if folder.records:
        looked_at += f", {folder.records} records"
    say(f"{looked_at} checked: {f'{findings} findings' if findings else 'no findings'}.")
    return not findings


def _opened(
    snapshot: Snapshot, keyring: Keyring, tell: Callable[[object], None] | None
) -> Snapshot:
    """What an encrypted folder has; each value that does not open is told of once, or raised."""
    from partita.database.storage.sealing.sealed_engine import SealedSnapshot, ValueCipher

    if tell is None:
        return SealedSnapshot(snapshot, ValueCipher(keyring))
    told: set[bytes] = set()

    def tell_once(key: bytes, damage: Exception) -> None:
        if key not in told:
            told.add(key)
            tell(damage)

    return SealedSnapshot(snapshot, ValueCipher(keyring), tell_once)
