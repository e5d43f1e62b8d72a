"""The keyring of a data folder, for code that handles both plain and encrypted folders.

The package `sealing` is imported only for encrypted folders, because `cryptography` takes long to
load. In all functions, None instead of a keyring stands for a plain folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.database.storage.archive import Archive, FolderArchive
from partita.database.storage.engine import Engine, Snapshot
from partita.errors import PartitaError

if TYPE_CHECKING:
    from partita.database.storage.sealing.cipher import DamagedValue
    from partita.database.storage.sealing.keyring import Keyring
    from partita.database.storage.sealing.master_keys import KeySource

KEYRING: Final = "keyring"
"""The file with the keys of an encrypted folder."""
RECOVERY: Final = "recovery"
"""The folder of the archive, in the data folder."""

Seal = Callable[[Archive], Archive]
"""Wraps an archive in one that encrypts, if the database is encrypted."""


def is_encrypted(folder: Path) -> bool:
    # Path.exists raises for a folder that cannot be read, which the engine reports in a sentence.
    return os.path.exists(folder / KEYRING)


def key_source(text: str | None) -> KeySource | None:
    """Parses `--encryption-key`: `file:PATH`, `env:NAME` or `command:LINE`."""
    if not text:
        return None
    from partita.database.storage.sealing.master_keys import KeySource

    return KeySource(text)


def open_keyring(data: Path | None, source: KeySource | None) -> Keyring | None:
    """Opens the keyring of a folder; with a key, a folder without data gets a new one.

    Raises when an encrypted folder is opened without a key, or a key is given without a folder.
    """
    if source is None:
        if data is not None and is_encrypted(data):
            raise PartitaError(
                f"The data folder {data} is encrypted: give --encryption-key file:PATH, env:NAME "
                "or command:LINE."
            )
        return None
    if data is None:
        raise PartitaError("--encryption-key encrypts a data folder: give --data too.")
    from partita.database.storage.sealing.encrypted_folders import keyring_of

    # From now on, this process creates files that only its user can read.
    os.umask(0o077)
    return keyring_of(data, source)


def sealed_engine(engine: Engine, keyring: Keyring | None) -> Engine:
    """Wraps an engine in one that encrypts."""
    if keyring is None:
        return engine
    from partita.database.storage.sealing.sealed_engine import SealedEngine

    return SealedEngine(engine, keyring)


def sealed_archive(archive: Archive, keyring: Keyring | None) -> Archive:
    """Wraps an archive in one that encrypts."""
    if keyring is None:
        return archive
    from partita.database.storage.sealing.sealed_archive import SealedArchive

    return SealedArchive(archive, keyring)


def sealing(keyring: Keyring | None) -> Seal:
    """A function that wraps archives as `sealed_archive` does."""
    return partial(sealed_archive, keyring=keyring)


def folder_archive(data: Path, keyring: Keyring | None) -> Archive:
    return sealed_archive(FolderArchive(data / RECOVERY), keyring)


def unsealed_snapshot(
    snapshot: Snapshot,
    keyring: Keyring | None,
    on_damage: Callable[[bytes, DamagedValue], None] | None = None,
) -> Snapshot:
    """The decrypted view of a folder's snapshot.

    A value that cannot be decrypted raises DamagedValue, or is reported to `on_damage` if given.
    """
    if keyring is None:
        return snapshot
    from partita.database.storage.sealing.sealed_engine import SealedSnapshot, ValueCipher

    return SealedSnapshot(snapshot, ValueCipher(keyring), on_damage)
