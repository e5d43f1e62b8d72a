"""The folder in which a companion unpacks code: its own, closed to other users, and removed with
it.

Where the server's data is encrypted, the folder is in memory (a tmpfs), so that neither code nor
the temporary files of functions are on a disk in the clear. A companion holds a lock on its folder.
A folder without a lock was left behind by a kill, and the next companion removes it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from threading import Thread

from partita_services.functions.runtime.function_supervisor import remove

PREFIX = "partita-code-"
MOUNTS = Path("/proc/self/mounts")
IN_MEMORY = ("tmpfs", "ramfs")
USUAL = ("/dev/shm", "/run/shm")
"""The usual places of a tmpfs on Linux."""
NO_MEMORY = (
    "This server's data is encrypted, so it unpacks code into memory only, and it found no tmpfs "
    "that it may write to: set TMPDIR to a folder in one, or mount /dev/shm."
)


class CodeFolderUnavailable(Exception):
    """Raised when there is no folder for code; its text is the reason."""


class CodeFolder:
    """The folder is created on first use."""

    def __init__(self, *, is_in_memory: bool) -> None:
        self._is_in_memory = is_in_memory
        self._path: Path | None = None
        self._lock: int | None = None
        Thread(target=sweep, args=(_places(),), name="partita-sweeping", daemon=True).start()

    @property
    def path(self) -> Path:
        if self._path is None:
            place = _in_memory() if self._is_in_memory else Path(tempfile.gettempdir())
            if place is None:
                raise CodeFolderUnavailable(NO_MEMORY)
            self._path, self._lock = _locked(place)
        return self._path

    def close(self) -> None:
        if self._path is not None and self._lock is not None:
            remove(self._path)
            os.close(self._lock)
        self._path = self._lock = None


def _locked(place: Path) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        lock = _lock_of(path)
        # Another companion may have removed it already, before it was locked.
        if lock is not None and path.exists():
            return path, lock


def _lock_of(path: Path) -> int | None:
    """Lock a folder; returns the descriptor that holds the lock, or None when somebody else has
    it."""
    descriptor = None
    try:
        # The temporary folder is open to all users: a link that somebody has put there must not be
        # followed.
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor


def sweep(places: Iterable[Path]) -> None:
    """Remove the folders that killed companions of this user left behind."""
    for place in places:
        with suppress(OSError):
            for path in place.glob(f"{PREFIX}*"):
                # `lstat`, because a link may lead to a folder of ours.
                lock = _lock_of(path) if path.lstat().st_uid == os.getuid() else None
                if lock is not None:
                    remove(path)
                    os.close(lock)


def _places() -> set[Path]:
    return {Path(tempfile.gettempdir()), *_candidates()}


def _candidates() -> list[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return [*map(Path, USUAL), *([Path(runtime)] if runtime else [])]


def _in_memory() -> Path | None:
    """A folder in memory: TMPDIR if it is a tmpfs, then the usual ones. Folders without `noexec`
    come first, because compiled modules cannot be imported from the others. (Containers mount
    /dev/shm that way.)"""
    places = [place for place in (Path(tempfile.gettempdir()), *_candidates()) if _is_tmpfs(place)]
    return next(filter(_allows_programs, places), places[0] if places else None)


def _is_tmpfs(place: Path) -> bool:
    return _file_system(place) in IN_MEMORY and os.access(place, os.W_OK | os.X_OK)


def _allows_programs(place: Path) -> bool:
    return not os.statvfs(place).f_flag & os.ST_NOEXEC


def _file_system(place: Path) -> str:
    """The type of the file system that a folder is on."""
    place, deepest, kind = place.resolve(), Path("/"), ""
    with suppress(OSError):
        for line in MOUNTS.read_text().splitlines():
            _, mounted, mounted_kind, *_ = line.split(" ")
            path = Path(mounted.encode().decode("unicode_escape"))
            # A later mount at the same place hides the earlier one.
            if place.is_relative_to(path) and len(path.parts) >= len(deepest.parts):
                deepest, kind = path, mounted_kind
    return kind
