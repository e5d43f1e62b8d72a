"""Copies a data folder while it is being served: its tree first, then its write-ahead log.

The file of the tree is copied: LMDB does not overwrite the pages of a commit before the next commit
but one. Later changes are read from the write-ahead log. When the server has stopped, a copy ends
with a comparison of everything, which finds whatever was missed here. Following the log only makes
that comparison short.
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

from partita.copies.storage_copy.snapshot_copy import CopyTarget, apply_commit, copy_snapshot
from partita.database.storage.data_folder.embedded_engine import LOG_FILES
from partita.database.storage.data_folder.lmdb_pages import last_commit
from partita.database.storage.data_folder.lmdb_tree import DATA_FILE, LOCK_FILE, open_tree
from partita.database.storage.data_folder.write_ahead_log import LogContents, read_log
from partita.database.storage.engine import Changes, Snapshot
from partita.errors import StorageError

ATTEMPTS_MAX: Final = 20
"""How often the file of the tree is copied until no two commits happened meanwhile."""
FOLLOW_SECONDS: Final = 0.2
COPY_LOCK_FILE: Final = "copying.lock"


def is_served(folder: Path) -> bool:
    """True if a server is using the folder."""
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
    """Copies the tree of a folder that is being served, as of one of its last checkpoints."""
    with _private_folder(folder) as private:
        for _ in range(ATTEMPTS_MAX):
            # One commit during the copy does no harm: it leaves the pages of the commit before it.
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
    """Creates a temporary folder beside a data folder, and removes those of killed copies."""
    prefix = f"{folder.name}.copying-"
    for existing in folder.parent.glob(f"{glob.escape(prefix)}*"):
        if not _is_locked(existing / COPY_LOCK_FILE):
            shutil.rmtree(existing, ignore_errors=True)
    with TemporaryDirectory(prefix=prefix, dir=folder.parent) as name:
        private = Path(name)
        with (private / COPY_LOCK_FILE).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield private


class LogFollower:
    """Reads the commits of a folder's write-ahead logs, each once and in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[int, int] = {}
        """The number of commits that were read, by generation of the log."""

    def read(self) -> list[Changes]:
        """Returns the commits since the last call."""
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
                # The server is writing the file; the next call reads it.
                continue


def follow(folder: Path, target: CopyTarget, say: Callable[[str], None]) -> None:
    """Copies a folder that is being served, and its later commits until its server stops."""
    say(f"{folder} is being served: it is followed until its server stops.")
    log = LogFollower(folder)
    written: dict[bytes, bytes | None] = {}

    def collect(_: int = 0) -> None:
        for changes in log.read():
            written.update(changes)

    # The logs are read before the tree is copied and again and again while it is read: the server
    # clears a log after each checkpoint, and its commits may be missing in the copied tree.
    collect()
    with tree_copy(folder) as tree:
        summary = copy_snapshot(tree, target, collect)
    collect()
    apply_commit(written, target)
    say(
        f"{summary.pairs} keys are copied, and {len(written)} changes since. Stop the server when "
        "it suits."
    )
    while is_served(folder):
        sleep(FOLLOW_SECONDS)
        for changes in log.read():
            apply_commit(changes, target)
