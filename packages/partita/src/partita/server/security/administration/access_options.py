"""Options of the commands that read or change users: the data folder and its encryption key."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partita.errors import PartitaError
from partita.server.security.identities.access_file import FILE_NAME, AccessFile, begin_sealing

if TYPE_CHECKING:
    from partita.database.storage.sealing.keyring import Keyring

DATA = Path("partita-data")
KEYRING = "keyring"


def data_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--data",
        default=DATA,
        show_default=True,
        envvar="PARTITA_SERVE_DATA",
        type=click.Path(path_type=Path),
        help="Folder of the data and of its users.",
    )(command)


def key_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--encryption-key",
        metavar="SOURCE",
        envvar="PARTITA_SERVE_ENCRYPTION_KEY",
        help="The key of an encrypted folder: file:PATH, env:NAME or command:LINE.",
    )(command)


def access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command that reads or changes users. It gets their file as `access`."""

    @wraps(command)
    def run(data: Path, encryption_key: str | None, **given: Any) -> None:
        command(access=access_file(data, encryption_key), **given)

    return data_option(key_option(run))


def access_file(data: Path, encryption_key: str | None) -> AccessFile:
    """Returns the file of users in a data folder, which is encrypted if a key is given."""
    if encryption_key is not None:
        return AccessFile(data / FILE_NAME, lambda: keyring_of(data, encryption_key))
    if (data / KEYRING).exists():
        raise PartitaError(
            f"The data folder {data} is encrypted, and so are its users: give --encryption-key."
        )
    return AccessFile(data / FILE_NAME)


def keyring_of(data: Path, encryption_key: str) -> Keyring:
    """Reads the keyring of a folder, which a running server may have replaced."""
    from partita.database.storage.data_folder.lmdb_tree import folder_lock
    from partita.database.storage.sealing import encrypted_folders
    from partita.database.storage.sealing.master_keys import KeySource

    keyring = encrypted_folders.keyring_of(data, KeySource(encryption_key))
    if keyring.is_new:
        encrypted_folders.begin_encryption(data, keyring)
    if not keyring.seals_files:
        # Under the folder's lock: a running server would overwrite the keyring with its own state.
        with folder_lock(data):
            keyring.read_again()
            begin_sealing(data, keyring)
    return keyring
