"""Data folders and their keyrings: which may be opened with which key.

What cannot be opened is refused before anything in the folder is touched.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Callable
from pathlib import Path
from signal import SIGHUP
from typing import Final

from partita.database.storage.lmdb import DATA_FILE, folder_lock
from partita.database.storage.sealing.keyring import FILE_NAME, KeyFile, Keyring
from partita.database.storage.sealing.master_keys import COMMAND, ENVIRONMENT, FILE, KeySource
from partita.errors import PartitaError, StorageError

logger = logging.getLogger(__name__)

FILE_SECONDS: Final = 1.0
COMMAND_SECONDS: Final = 300.0


def keyring_of(folder: Path, source: KeySource) -> Keyring:
    """The keyring of a folder, a new one for a folder without data; nothing is written yet."""
    _check_folder(folder, source)
    keyring = Keyring(KeyFile(folder), source.read(), where=f"The data folder {folder}")
    if keyring.is_new and (folder / DATA_FILE).exists():
        raise StorageError(
            f"The data folder {folder} has data that is not encrypted: choose an empty folder with "
            "--data, and copy the tables to it."
        )
    return keyring


def begin(folder: Path, keyring: Keyring) -> None:
    """Write a new keyring, into a folder that only its owner can look into."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"Cannot write to the data folder {folder} ({error.strerror}); "
            "make it writable or choose another with --data."
        ) from error
    with folder_lock(folder):
        # Of two that make one at the same moment, the second would destroy what is sealed by then.
        if is_encrypted(folder):
            raise StorageError(
                f"The data folder {folder} was encrypted by another Partita just now: try again."
            )
        keyring.begin()


def _check_folder(folder: Path, source: KeySource) -> None:
    if source.path is not None and source.path.absolute().is_relative_to(folder.absolute()):
        raise PartitaError(
            f"The encryption key {source.path} is in the data folder, where it protects nothing: "
            "keep it elsewhere."
        )
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"Cannot read {folder}: {error.strerror}.") from error
    if mode & stat.S_IRWXO:
        raise PartitaError(
            f"The data folder {folder} is encrypted, and others can look into it: "
            f"run chmod 700 {folder}."
        )


class KeyWatch:
    """Looks for new keys: a new first key begins a rotation.

    A file is looked at every second. A command is run again every few minutes, beside the loop, and
    when the process gets SIGHUP. The environment of a process never changes.
    """

    def __init__(self, source: KeySource, keyring: Keyring) -> None:
        self._source = source
        self._keyring = keyring
        self._state = self._found()
        self._watching: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None

    def watch(self, rotated: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def look() -> None:
            state = self._found()
            if state is not None and state != self._state:
                self._state = state
                self._ask(rotated)
            self._watching = loop.call_later(FILE_SECONDS, look)

        def run_again() -> None:
            self._ask(rotated)
            self._watching = loop.call_later(COMMAND_SECONDS, run_again)

        if self._source.kind == FILE:
            look()
        elif self._source.kind == COMMAND:
            self._watching = loop.call_later(COMMAND_SECONDS, run_again)
        if self._source.kind != ENVIRONMENT:
            loop.add_signal_handler(SIGHUP, self._ask, rotated)

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._reading is not None:
            self._reading.cancel()

    def _ask(self, rotated: Callable[[], None]) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._take(rotated))

    async def _take(self, rotated: Callable[[], None]) -> None:
        try:
            key = (await asyncio.to_thread(self._source.read))[0]
            if self._keyring.is_under(key):
                return
            self._keyring.rotate(key)
        except PartitaError as error:
            logger.error("%s The encryption key stays as it was.", error)
            return
        logger.warning(
            "Data is encrypted under the key %s from now on; what was there before follows.",
            self._keyring.fingerprint,
        )
        rotated()

    def _found(self) -> tuple[int, int, int] | None:
        if self._source.path is None:
            return None
        try:
            found = self._source.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def is_encrypted(folder: Path) -> bool:
    return (folder / FILE_NAME).exists()
