"""`partita restore`: restores a backup into a data folder or into PostgreSQL, or only checks it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from partita.copies.backups.backup_format import FILES, DatabaseBackup, backup_names, get_backup
from partita.copies.backups.backup_locations import subfolder
from partita.copies.backups.backup_snapshot import backup_snapshot, restore_files
from partita.copies.backups.server_backup import Progress
from partita.copies.integrity_check import Say, check_folder, check_snapshot
from partita.copies.storage_copy.folder_target import FolderTarget
from partita.copies.storage_copy.snapshot_copy import copy_snapshot
from partita.database.recovery import recovery_stages
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.storage.archive import Archive, FolderArchive, sync
from partita.database.storage.data_folder.keyring_access import (
    KEYRING,
    RECOVERY,
    open_keyring,
    sealed_engine,
    sealing,
)
from partita.database.storage.data_folder.lmdb_tree import LmdbEngine
from partita.database.tables.table_layout import NOTES
from partita.errors import PartitaError

if TYPE_CHECKING:
    from partita.database.storage.sealing.master_keys import KeySource


def restore_folder(
    location: Archive,
    name: str,
    folder: Path,
    key: KeySource | None,
    progress: Progress,
    say: Say,
) -> bool:
    """Restores a backup into a new data folder; returns True if the folder has no findings.

    The folder gets its name after it was checked, so an interrupted or bad restore is never served.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PartitaError(f"{folder} exists already: restore into a new folder.")
    backup = get_backup(location, name)
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        _restore(location, backup, part, key, progress)
        has_no_findings = check_folder(part, say, key)
    except OSError as error:
        raise PartitaError(f"{part} cannot be written: {error.strerror or error}.") from error
    if has_no_findings:
        recovery_stages.reach_stage(RecoveryStage.DATABASE_RESTORE_CHECKED)
        if folder.is_dir():
            folder.rmdir()
        os.replace(part, folder)
        recovery_stages.reach_stage(RecoveryStage.DATABASE_RESTORE_NAMED)
        sync(folder.parent)
    return has_no_findings


def _restore(
    location: Archive,
    backup: DatabaseBackup,
    folder: Path,
    key: KeySource | None,
    progress: Progress,
) -> None:
    folder.mkdir(parents=True, mode=0o777 if backup.keyring is None else 0o700)
    if backup.keyring is not None:
        (folder / KEYRING).write_bytes(backup.keyring)
    recovery_stages.reach_stage(RecoveryStage.DATABASE_RESTORE_BEGUN)
    keyring = open_keyring(folder, key)
    seal = sealing(keyring)

    def after_piece(pairs: int) -> None:
        progress(pairs)
        if pairs:
            recovery_stages.reach_stage(RecoveryStage.DATABASE_RESTORE_KEYS_PUT)

    # The tree is written without a log and synced when it is closed: an interrupted restore begins
    # again anyway.
    engine = sealed_engine(LmdbEngine(folder, durable=False), keyring)
    try:
        target = FolderTarget(engine, FolderArchive(folder / RECOVERY), folder)
        # Users and the audit log are not part of a backup, so neither are the notes about them.
        copy_snapshot(backup_snapshot(seal(location), backup), target, after_piece, NOTES)
        target.finish()
        if keyring is not None:
            keyring.begin_files(None)
    finally:
        engine.close()
    recovery_stages.reach_stage(RecoveryStage.DATABASE_RESTORE_LOADED)
    restore_files(target.archive, location, backup, seal)
    recovery_stages.reach_stage(RecoveryStage.DATABASE_RESTORE_FILES_WRITTEN)


def restore_postgresql(
    location: Archive, name: str, url: str, progress: Progress, say: Say
) -> bool:
    """Restores a backup into PostgreSQL; returns True if the database has no findings."""
    from partita.copies.backups.postgresql_backup import restore_into
    from partita.copies.storage_copy.postgresql_target import create_tables, postgresql_target
    from partita.copies.storage_copy.storage_transfer import finish_postgresql

    backup = get_backup(location, name)
    if backup.keyring is not None:
        raise PartitaError(
            f"The backup {name} is encrypted, and Partita does not encrypt in PostgreSQL: restore "
            "it into a folder, and copy that with partita storage copy."
        )
    create_tables(url, is_copied_into=True)
    with postgresql_target(url) as target:
        restore_into(target, location, backup, progress)
        return finish_postgresql(url, target, say)


def check_backup(location: Archive, name: str, key: KeySource | None, say: Say) -> bool:
    """Checks every invariant of a backup without restoring it; returns True without findings."""
    backup = get_backup(location, name)
    with TemporaryDirectory(prefix="partita-") as scratch:
        folder = Path(scratch)
        if backup.keyring is not None:
            (folder / KEYRING).write_bytes(backup.keyring)
        keyring = open_keyring(folder, key if backup.keyring is not None else None)
        seal = sealing(keyring)
        snapshot = backup_snapshot(seal(location), backup)
        return check_snapshot(snapshot, say, archive=seal(subfolder(location, FILES)))


def check_all_backups(folder: Path, key: KeySource | None, say: Say) -> bool:
    """Checks all backups of a folder; returns True without findings."""
    location = FolderArchive(folder)
    has_no_findings = True
    for name in backup_names(location):
        say(f"{name}:")
        has_no_findings = check_backup(location, name, key, say) and has_no_findings
    return has_no_findings
