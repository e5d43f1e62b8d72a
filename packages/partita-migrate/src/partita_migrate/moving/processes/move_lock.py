"""The lock of a move's folder: one command at a time, with the worker processes that it starts."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from partita.errors import PartitaError
from partita_migrate.row_store.state_store import MOVE
from partita_migrate.workspace.migration_folder import Folder

LOCK = "lock"
LOCK_SECONDS = 3.0
"""How long the lock is waited for: worker processes of a killed command end a moment after it."""


@contextmanager
def locked(folder: Folder) -> Iterator[int]:
    """Holds the lock of the folder for this process and for the processes that inherit it."""
    home = folder.path / MOVE
    try:
        home.mkdir(exist_ok=True)
        handle = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise PartitaError(f"Cannot write in {home}: {error.strerror}.") from error
    try:
        if not _lock(handle):
            holder = os.pread(handle, 100, 0).decode(errors="replace").strip()
            raise PartitaError(
                f"Another command is working on {folder.path}: {holder}; wait for it or stop it."
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}\n".encode(), 0)
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            # The kernel frees this lock when the last process that inherited it has ended, also
            # after a kill.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
