"""`partita keys encrypt`: copies a plain data folder into a new, encrypted one.

The copy is not one of `copies/storage_copy`, because the storage keys change, too: partition keys
are replaced by keyed hashes. The new folder is checked before it can be served; the old one is only
read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_bytes
from typing import Final, NamedTuple

from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check
from partita.database.operations.operation_context import KEY_SECRET_BYTES
from partita.database.storage.data_folder.embedded_engine import (
    EmbeddedEngine,
    EmbeddedSnapshot,
    open_for_reading,
)
from partita.database.storage.data_folder.keyring_access import is_encrypted
from partita.database.storage.engine import Changes, Snapshot
from partita.database.storage.sealing.encrypted_folders import begin_encryption, keyring_of
from partita.database.storage.sealing.keyring import Keyring
from partita.database.storage.sealing.master_keys import KeySource
from partita.database.storage.sealing.sealed_engine import SealedEngine
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import (
    COPYING_FORMAT,
    FORMAT_VERSION,
    TableCatalog,
)
from partita.database.tables.plain_to_encrypted import Pair, check_rekeying, rekeyed
from partita.errors import StorageError
from partita.foundation.clock import system_clock
from partita.foundation.service_limits import MB

COMMIT_BYTES: Final = 8 * MB
FINISHED: Final[Changes] = {table_layout.FORMAT_KEY: str(FORMAT_VERSION).encode()}


class EncryptionSummary(NamedTuple):
    """The result of an encryption, with what the encrypted folder lacks."""

    items: int
    tables: list[str]
    without_recovery: list[str]
    """Tables whose point-in-time recovery is off now."""
    with_new_stream: list[str]
    """Tables whose stream has ended, and a new one begun."""


def encrypt_folder(
    source: Path, target: Path, keys: KeySource, copy_files: Callable[[Keyring], None]
) -> EncryptionSummary:
    """Copies a folder; `copy_files` copies what is beside its engine.

    The new folder can be served once all is copied and checked: after a crash it is either
    complete or refused.
    """
    if is_encrypted(source):
        raise StorageError(f"The data folder {source} is encrypted already.")
    if target.exists() and any(target.iterdir()):
        raise StorageError(f"The folder {target} is not empty: choose a new folder.")
    os.umask(0o077)
    with open_for_reading(source) as snapshot:
        check_rekeying(snapshot)
        tables = list(TableCatalog(snapshot))
        keyring = keyring_of(target, keys)
        begin_encryption(target, keyring)
        engine = SealedEngine(EmbeddedEngine(target), keyring)
        try:
            engine.commit({table_layout.FORMAT_KEY: COPYING_FORMAT})
            pairs = rekeyed(snapshot, lambda: token_bytes(KEY_SECRET_BYTES), system_clock)
            for piece in _pieces(pairs):
                engine.commit(piece)
                engine.refresh()
            folder = CheckedFolder(_as_finished(engine.snapshot()), is_encrypted=True)
            for finding in check(folder):
                raise StorageError(f"The copy in {target} is damaged: {finding}")
            copy_files(keyring)
            engine.commit(FINISHED)
        finally:
            engine.close()
    return EncryptionSummary(
        folder.items,
        [table.name for table in tables],
        [table.name for table in tables if table.recovery is not None],
        [table.name for table in tables if table.stream is not None],
    )


def _as_finished(snapshot: Snapshot) -> Snapshot:
    """The copy as it will be, because a check refuses an unfinished one."""
    finished = EmbeddedSnapshot(snapshot)
    finished.frozen.update(FINISHED)
    return finished


def _pieces(pairs: Iterator[Pair]) -> Iterator[dict[bytes, bytes | None]]:
    piece: dict[bytes, bytes | None] = {}
    size = 0
    for key, value in pairs:
        piece[key] = value
        size += len(key) + len(value)
        if size >= COMMIT_BYTES:
            yield piece
            piece, size = {}, 0
    yield piece
