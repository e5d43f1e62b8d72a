"""Encrypted data folders: opens and creates their keyrings, and watches for new keys.

A folder that cannot be opened with the given key is refused before anything in it is changed.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Callable
from pathlib import Path
from signal import SIGHUP
from typing import Final

from partita.database.storage.data_folder.keyring_access import is_encrypted
from partita.database.storage.data_folder.lmdb_tree import DATA_FILE, folder_lock
from partita.database.storage.sealing.keyring import KeyFile, Keyring
from partita.database.storage.sealing.master_keys import COMMAND, ENVIRONMENT, FILE, KeySource
from partita.errors import PartitaError, StorageError

logger = logging.getLogger(__name__)

FILE_SECONDS: Final = 1.0
COMMAND_SECONDS: Final = 300.0


def keyring_of(folder: Path, source: KeySource) -> Keyring:
    """Returns the keyring of a folder; for a folder without data a new one, not written yet."""
    _check_folder(folder, source)
    keyring = Keyring(KeyFile(folder), source.read(), where=f"The data folder {folder}")
    if keyring.is_new and (folder / DATA_FILE).exists():
        raise StorageError(
            f"The data folder {folder} has data that is not encrypted: choose an empty folder with "
            "--data, and copy the tables to it."
        )
    return keyring


def begin_encryption(folder: Path, keyring: Keyring) -> None:
    """Writes a new keyring into a folder that only its owner can read."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"Cannot write to the data folder {folder} ({error.strerror}); "
            "make it writable or choose another with --data."
        ) from error
    with folder_lock(folder):
        # If two processes created a keyring at the same time, the second one would replace the
        # keys that the first one has encrypted data with.
        if is_encrypted(folder):
            raise StorageError(
                f"The data folder {folder} was encrypted by another Partita just now: try again."
            )
        keyring.begin()


def _check_folder(folder: Path, source: KeySource) -> None:
    if source.path is not None and source.path.absolute().is_relative_to(folder.absolute()):
        raise PartitaError(
            f"The encryption key {source.path} is in the data folder, where it does not protect "
            "the data: keep it elsewhere."
        )
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"Cannot read {folder}: {error.strerror}.") from error
    if mode & stat.S_IRWXO:
        raise PartitaError(
            f"The data folder {folder} is encrypted, but other users can read it: "
            f"run chmod 700 {folder}."
        )


class KeyWatch:
    """Watches a key source for new keys: a new first key begins a rotation.

    A file is checked every second. A command is run again every few minutes, on another thread, and
    when the process gets SIGHUP. Keys in the environment cannot change.
    """

    def __init__(self, source: KeySource, keyring: Keyring) -> None:
        self._source = source
        self._keyring = keyring
        self._state = self._file_state()
        self._watching: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None

    def watch(self, rotated: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def check_file() -> None:
            state = self._file_state()
            if state is not None and state != self._state:
                self._state = state
                self._start_reading(rotated)
            self._watching = loop.call_later(FILE_SECONDS, check_file)

        def run_command() -> None:
            self._start_reading(rotated)
            self._watching = loop.call_later(COMMAND_SECONDS, run_command)

        if self._source.kind == FILE:
            check_file()
        elif self._source.kind == COMMAND:
            self._watching = loop.call_later(COMMAND_SECONDS, run_command)
        if self._source.kind != ENVIRONMENT:
            loop.add_signal_handler(SIGHUP, self._start_reading, rotated)

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._reading is not None:
            self._reading.cancel()

    def _start_reading(self, rotated: Callable[[], None]) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_key(rotated))

    async def _read_key(self, rotated: Callable[[], None]) -> None:
        try:
            key = (await asyncio.to_thread(self._source.read))[0]
            if self._keyring.is_under(key):
                return
            self._keyring.rotate(key)
        except PartitaError as error:
            logger.error("%s The encryption key is not changed.", error)
            return
        logger.warning(
            "New data is encrypted with the key %s from now on; existing data is re-encrypted.",
            self._keyring.fingerprint,
        )
        rotated()

    def _file_state(self) -> tuple[int, int, int] | None:
        if self._source.path is None:
            return None
        try:
            status = self._source.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
