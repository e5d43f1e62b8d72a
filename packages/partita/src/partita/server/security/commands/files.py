"""Which directory a command changes, and how it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partita.errors import PartitaError
from partita.server.security.identities.callers import Callers
from partita.server.security.identities.directory import (
    FILE_NAME,
    Directory,
    changing,
    load,
    sealed,
    with_session_key,
)

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
        help="Folder that keeps the data, and its users.",
    )(command)


def key_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--encryption-key",
        metavar="SOURCE",
        envvar="PARTITA_SERVE_ENCRYPTION_KEY",
        help="Of an encrypted folder: file:PATH, env:NAME or command:LINE.",
    )(command)


def opened(data: Path) -> Directory:
    return load(data / FILE_NAME)


class Change:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = load(path)


@contextmanager
def changed(data: Path, keyring: Keyring | None = None) -> Iterator[Change]:
    """`with changed(data) as change: change.directory = ...` keeps it, if all in it is right; with
    a keyring, secrets that are new are sealed."""
    path = data / FILE_NAME
    with changing(path) as save:
        change = Change(path)
        yield change
        # What a server could not read is not kept.
        Callers(change.directory)
        kept = with_session_key(change.directory)
        save(kept if keyring is None else sealed(kept, keyring))


def keyring_for(data: Path, encryption_key: str | None) -> Keyring | None:
    """What new secrets are sealed with, in a folder that is or will be encrypted."""
    if encryption_key is None:
        if (data / KEYRING).exists():
            raise PartitaError(
                f"The data folder {data} is encrypted, and so are its users' secrets: give "
                "--encryption-key."
            )
        return None
    from partita.database.storage.sealing import folders
    from partita.database.storage.sealing.master_keys import KeySource

    keyring = folders.keyring_of(data, KeySource(encryption_key))
    if keyring.is_new:
        folders.begin(data, keyring)
    return keyring
