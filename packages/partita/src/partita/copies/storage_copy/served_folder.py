"""Following a data folder that is being served: its tree as it was, then its write-ahead log.

The tree is copied as a file, which LMDB leaves as it is until its next commit but one; what has
changed since comes from the logs. Whatever is missed here is found by the walk that ends a copy,
when the folder is no longer served: following only makes that walk short.
"""

from __future__ import annotations

import fcntl
import glob
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Final

from partita.copies.storage_copy.snapshot_copy import CopyTarget, apply, copy
from partita.database.storage.data_folder.embedded_engine import LOG_FILES
from partita.database.storage.data_folder.lmdb_pages import last_commit
from partita.database.storage.data_folder.lmdb_tree import DATA_FILE, LOCK_FILE, open_tree
from partita.database.storage.data_folder.write_ahead_log import LogContents, read_log
from partita.database.storage.engine import Changes, Snapshot
from partita.errors import StorageError

ATTEMPTS_MAX: Final = 20
"""To copy the file of a tree before it is another one."""
FOLLOW_SECONDS: Final = 0.2
COPY_LOCK_FILE: Final = "copying.lock"


def is_served(folder: Path) -> bool:
    """Whether a server has the folder at this moment."""
    return _is_locked(folder / LOCK_FILE)


def _is_locked(path: Path) -> bool:
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def tree_copy(folder: Path) -> Iterator[Snapshot]:
    """The tree of a folder that is being served, as of one of its last checkpoints."""
    with _private_folder(folder) as private:
        for _ in range(ATTEMPTS_MAX):
            before = last_commit(folder / DATA_FILE)
            shutil.copyfile(folder / DATA_FILE, private / DATA_FILE)
            if last_commit(folder / DATA_FILE) <= before + 1:
                break
        else:
            raise StorageError(
                f"The data folder {folder} changes faster than it can be copied: stop its server."
            )
        with open_tree(private) as tree:
            yield tree


@contextmanager
def _private_folder(folder: Path) -> Iterator[Path]:
    """Beside a data folder, without those that copies have left which were killed."""
    prefix = f"{folder.name}.copying-"
    for left in folder.parent.glob(f"{glob.escape(prefix)}*"):
        if not _is_locked(left / COPY_LOCK_FILE):
            shutil.rmtree(left, ignore_errors=True)
    with TemporaryDirectory(prefix=prefix, dir=folder.parent) as name:
        private = Path(name)
        with (private / COPY_LOCK_FILE).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield private


class LogFollower:
    """Commits from the logs of a folder, each once, in their order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[int, int] = {}
        """How many commits of a generation were read."""

    def read(self) -> list[Changes]:
        """Those that have come since the last time."""
        commits: list[Changes] = []
        for contents in sorted(self._contents()):
            done = self._read.get(contents.generation, 0)
            commits += contents.commits[done:]
            self._read[contents.generation] = max(done, len(contents.commits))
        return commits

    def _contents(self) -> Iterator[LogContents]:
        for name in LOG_FILES:
            try:
                yield read_log(self._folder / name)
            except StorageError:
                # It was being written: there will be a next time.
                continue


def follow(folder: Path, target: CopyTarget, say: Callable[[str], None]) -> None:
    """Copy a folder while it is being served, and what is written to it until its server stops."""
    say(f"{folder} is being served: it is followed until its server stops.")
    log = LogFollower(folder)
    written: dict[bytes, bytes | None] = {}

    def collect(_: int = 0) -> None:
        for changes in log.read():
            written.update(changes)

    collect()
    with tree_copy(folder) as tree:
        copied = copy(tree, target, collect)
    collect()
    apply(written, target)
    say(f"{copied.pairs} keys, and {len(written)} changes since. Stop the server when it suits.")
    while is_served(folder):
        sleep(FOLLOW_SECONDS)
        for changes in log.read():
            apply(changes, target)
