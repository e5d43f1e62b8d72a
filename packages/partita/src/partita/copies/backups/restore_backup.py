"""Out of a copy: a data folder, or only its verdict."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from partita.assembly import checks_at_rest, server_protection
from partita.assembly.database_engines import RECOVERY
from partita.copies.backups.backup_contents import Progress, Seal, write_files, write_pairs
from partita.copies.backups.backup_format import FILES, DatabaseBackup, backup_names, get_backup
from partita.copies.backups.backup_locations import subfolder
from partita.copies.backups.backup_snapshot import snapshot_of
from partita.database.recovery import recovery_stages
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.storage.archive import Archive, FolderArchive, sync
from partita.database.storage.data_folder.lmdb_tree import LmdbEngine
from partita.database.storage.engine import Engine
from partita.database.tables.table_layout import NOTES
from partita.errors import PartitaError

if TYPE_CHECKING:
    from partita.database.storage.sealing.keyring import Keyring
    from partita.database.storage.sealing.master_keys import KeySource

Say = Callable[[str], None]


def restore(
    source: Archive,
    name: str,
    folder: Path,
    key: KeySource | None,
    progress: Progress,
    say: Say,
) -> bool:
    """Make a data folder of a copy; it has its name when it was found to be well."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PartitaError(f"{folder} is there already: restore into a folder that is new.")
    copy = get_backup(source, name)
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        _restore(source, copy, part, key, progress)
        is_well = checks_at_rest.check(part, say, key)
    except OSError as error:
        raise PartitaError(f"{part} cannot be written: {error.strerror or error}.") from error
    if is_well:
        recovery_stages.reach_stage(RecoveryStage.WHOLE_RESTORE_CHECKED)
        if folder.is_dir():
            folder.rmdir()
        os.replace(part, folder)
        recovery_stages.reach_stage(RecoveryStage.WHOLE_RESTORE_NAMED)
        sync(folder.parent)
    return is_well


def _restore(
    source: Archive, copy: DatabaseBackup, folder: Path, key: KeySource | None, progress: Progress
) -> None:
    folder.mkdir(parents=True, mode=0o777 if copy.keyring is None else 0o700)
    if copy.keyring is not None:
        (folder / server_protection.KEYRING).write_bytes(copy.keyring)
    recovery_stages.reach_stage(RecoveryStage.WHOLE_RESTORE_BEGUN)
    # Whoever has no key for it is told so.
    keyring = server_protection.open_keyring(folder, key)
    seal = sealing(keyring)
    engine: Engine = LmdbEngine(folder, durable=False)
    try:
        if keyring is not None:
            engine = server_protection.sealed_engine(engine, keyring)
        write_pairs(engine, seal(source), copy, progress)
        # Users and the audit log are not in a copy.
        engine.commit(dict.fromkeys(NOTES))
        if keyring is not None:
            keyring.begin_files(None)
    finally:
        engine.close()
    recovery_stages.reach_stage(RecoveryStage.WHOLE_RESTORE_LOADED)
    write_files(FolderArchive(folder / RECOVERY), source, copy, seal)
    recovery_stages.reach_stage(RecoveryStage.WHOLE_RESTORE_FILES_WRITTEN)


def check(source: Archive, name: str, key: KeySource | None, say: Say, scratch: Path) -> bool:
    """Verify every invariant of a copy where it lies; whether all is well."""
    copy = get_backup(source, name)
    if copy.keyring is not None:
        (scratch / server_protection.KEYRING).write_bytes(copy.keyring)
    seal = sealing(
        server_protection.open_keyring(scratch, key if copy.keyring is not None else None)
    )
    snapshot = snapshot_of(seal(source), copy)
    return checks_at_rest.check_snapshot(snapshot, say, archive=seal(subfolder(source, FILES)))


def sealing(keyring: Keyring | None) -> Seal:
    if keyring is None:
        return lambda archive: archive
    return lambda archive: server_protection.sealed_archive(archive, keyring)


def check_all(folder: Path, say: Say, key: KeySource | None) -> bool:
    """The same for all copies of a folder."""
    source = FolderArchive(folder)
    is_well = True
    for name in backup_names(source):
        say(f"{name}:")
        with TemporaryDirectory(prefix="partita-") as scratch:
            is_well = check(source, name, key, say, Path(scratch)) and is_well
    return is_well
