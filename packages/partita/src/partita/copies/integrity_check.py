"""`partita check`: reports every violated invariant of a data folder or of shared storage."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from partita.database.at_rest.archive_check import backups_are_readable
from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check
from partita.database.storage.archive import Archive
from partita.database.storage.data_folder.embedded_engine import open_for_reading
from partita.database.storage.data_folder.keyring_access import (
    folder_archive,
    open_keyring,
    unsealed_snapshot,
)
from partita.database.storage.engine import Snapshot

if TYPE_CHECKING:
    from partita.database.storage.sealing.keyring import Keyring
    from partita.database.storage.sealing.master_keys import KeySource

Say = Callable[[str], None]
"""Called with each line for the user."""


def check_folder(data: Path, say: Say, key: KeySource | None = None) -> bool:
    """Checks a data folder that is not being served; returns True if it has no findings."""
    keyring = open_keyring(data, key) if data.is_dir() else None
    with open_for_reading(data) as snapshot:
        return check_snapshot(snapshot, say, keyring, folder_archive(data, keyring))


def check_postgresql(url: str, say: Say) -> bool:
    """Checks the data that servers share in PostgreSQL, also while they run."""
    from partita.database.shared.stored_snapshot import stored_snapshot

    with stored_snapshot(url) as snapshot:
        return check_snapshot(snapshot, say, archive=snapshot.archive)


def check_snapshot(
    snapshot: Snapshot,
    say: Say,
    keyring: Keyring | None = None,
    archive: Archive | None = None,
) -> bool:
    """Checks a snapshot, and the table backups of an archive; returns True without findings."""
    findings = 0
    damaged_keys: set[bytes] = set()

    def report(finding: object) -> None:
        nonlocal findings
        findings += 1
        say(str(finding))

    def report_damage(key: bytes, damage: Exception) -> None:
        # Several invariants read the same value.
        if key not in damaged_keys:
            damaged_keys.add(key)
            report(damage)

    checked = CheckedFolder(
        unsealed_snapshot(snapshot, keyring, report_damage), is_encrypted=keyring is not None
    )
    archive_findings = iter(()) if archive is None else backups_are_readable(checked, archive)
    for finding in chain(check(checked), archive_findings):
        report(finding)
    counts = f"{len(checked.tables)} tables, {checked.items} items, {checked.entries} index entries"
    if checked.changes:
        counts += f", {checked.changes} changes"
    if checked.records:
        counts += f", {checked.records} records"
    say(f"{counts} checked: {f'{findings} findings' if findings else 'no findings'}.")
    return not findings
