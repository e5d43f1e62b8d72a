"""`partita storage copy`: copies a database between a data folder and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from partita.copies.integrity_check import Say, check_folder, check_postgresql
from partita.copies.storage_copy import served_folder
from partita.copies.storage_copy.folder_target import folder_target
from partita.copies.storage_copy.postgresql_target import create_tables, postgresql_target
from partita.copies.storage_copy.snapshot_copy import (
    CopyTarget,
    copy_snapshot,
    copy_table_backups,
    verify_copy,
)
from partita.database.shared.stored_snapshot import stored_snapshot
from partita.database.storage.archive import Archive
from partita.database.storage.data_folder.embedded_engine import open_for_reading
from partita.database.storage.data_folder.keyring_access import (
    folder_archive,
    is_encrypted,
    open_keyring,
    unsealed_snapshot,
)
from partita.database.storage.engine import Snapshot
from partita.database.storage.postgresql.postgresql_pool import is_url
from partita.errors import PartitaError

if TYPE_CHECKING:
    from partita.database.storage.sealing.keyring import Keyring
    from partita.database.storage.sealing.master_keys import KeySource


class _Source(NamedTuple):
    snapshot: Snapshot
    archive: Archive


def copy_storage(source: str, target: str, say: Say, key: KeySource | None = None) -> bool:
    """Copies all data from one folder or URL to another, and checks the copy.

    Returns True without findings. A folder that is being served is followed until its server stops.
    """
    if not is_url(target) and is_encrypted(Path(target)):
        raise PartitaError(f"The data folder {target} is encrypted: copy into a new folder.")
    if is_url(target):
        create_tables(target, is_copied_into=True)
    keyring = None if is_url(source) else open_keyring(Path(source), key)
    with ExitStack() as stack:
        if is_url(source) or keyring is not None or not served_folder.is_served(Path(source)):
            opened = stack.enter_context(_open_source(source, keyring))
            copy_target = stack.enter_context(_open_target(target))
        else:
            # The source is locked while its server runs, so it is opened when `follow` returns.
            copy_target = stack.enter_context(_open_target(target))
            served_folder.follow(Path(source), copy_target, say)
            opened = stack.enter_context(_open_source(source, keyring))
        # Before the keys, which contain the records of these backups.
        copy_table_backups(opened.archive, copy_target.archive)
        summary = copy_snapshot(opened.snapshot, copy_target)
        say(f"{summary.pairs} keys, {summary.written} written.")
        if summary.written:
            verify_copy(opened.snapshot, copy_target)
        say("Source and copy are equal.")
        if is_url(target):
            return finish_postgresql(target, copy_target, say)
        copy_target.finish()
    return check_folder(Path(target), say)


def finish_postgresql(url: str, target: CopyTarget, say: Say) -> bool:
    """Checks a copy in PostgreSQL, and lets servers use it if there are no findings."""
    has_no_findings = check_postgresql(url, say)
    if has_no_findings:
        target.finish()
    else:
        say("Because of these findings, it cannot be served.")
    return has_no_findings


@contextmanager
def _open_source(source: str, keyring: Keyring | None) -> Iterator[_Source]:
    if is_url(source):
        with stored_snapshot(source) as stored:
            yield _Source(stored, stored.archive)
        return
    folder = Path(source)
    with open_for_reading(folder) as snapshot:
        yield _Source(unsealed_snapshot(snapshot, keyring), folder_archive(folder, keyring))


@contextmanager
def _open_target(target: str) -> Iterator[CopyTarget]:
    if is_url(target):
        with postgresql_target(target) as postgresql:
            yield postgresql
        return
    with folder_target(Path(target)) as folder:
        yield folder
