"""The archive: named files beside the tree, for data that has to outlive a table or a log.

Names are paths with slashes. `put` is atomic: a file is complete or missing. What was put or
appended is durable after the next `sync`. Any thread may call these functions.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from time import time
from typing import Final, Protocol

from partita.errors import StorageError

PART = ".part"
SYNCED_SECONDS: Final = 600.0
"""Files that are older than this are on disk: systems write back within a minute without a sync."""


class Archive(Protocol):
    """A store of named files."""

    def put(self, name: str, content: bytes) -> None: ...

    def append(self, name: str, content: bytes) -> None: ...

    def get(self, name: str) -> bytes:
        """Returns the content; raises StorageError if it is missing or cannot be read."""
        ...

    def size(self, name: str) -> int:
        """The size in bytes; 0 if the file is missing."""
        ...

    def has(self, name: str) -> bool: ...

    def names(self, prefix: str) -> list[str]:
        """All names below a prefix, sorted; the prefix is a folder and ends with a slash."""
        ...

    def delete(self, name: str) -> None: ...

    def sync(self) -> None: ...


class FolderArchive:
    """An archive in a folder. A full or failing disk raises StorageError.

    Without `durable`, writes survive the end of the process but not a crash of the machine.
    """

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._folder = folder
        self._durable = durable
        self._unsynced: set[Path] = set()
        self._grown: set[Path] = set()
        """Folders with a new file, whose entry has to be synced too."""
        self._lock = Lock()

    def put(self, name: str, content: bytes) -> None:
        path = self._folder / name
        part = path.with_name(path.name + PART)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Renaming is atomic, so nobody ever reads a part of the content.
            part.write_bytes(content)
            os.replace(part, path)
        except OSError as error:
            raise _failed("written", path, error) from error
        self._note(path, is_new=True)

    def append(self, name: str, content: bytes) -> None:
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                is_new = not file.tell()
                file.write(content)
        except OSError as error:
            raise _failed("written", path, error) from error
        self._note(path, is_new=is_new)

    def get(self, name: str) -> bytes:
        path = self._folder / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise _failed("read", path, error) from error

    def size(self, name: str) -> int:
        try:
            return (self._folder / name).stat().st_size
        except OSError:
            return 0

    def has(self, name: str) -> bool:
        path = self._folder / name
        try:
            written_at = path.stat().st_mtime
        except OSError:
            return False
        if time() - written_at < SYNCED_SECONDS:
            # Its writer may have died before the sync. The caller relies on the file instead of
            # writing it again, so it has to be part of the caller's sync.
            self._note(path, is_new=True)
        return True

    def names(self, prefix: str) -> list[str]:
        files = (self._folder / prefix).rglob("*")
        complete = [path for path in files if path.is_file() and path.suffix != PART]
        return sorted(path.relative_to(self._folder).as_posix() for path in complete)

    def delete(self, name: str) -> None:
        path = self._folder / name
        with self._lock:
            self._unsynced.discard(path)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _failed("removed", path, error) from error

    def sync(self) -> None:
        with self._lock:
            unsynced, self._unsynced = self._unsynced, set()
            grown, self._grown = self._grown, set()
        if not self._durable:
            return
        # A new folder is itself a new entry in its parent.
        folders = {*grown, *(folder.parent for folder in grown)}
        try:
            for path in [*unsynced, *folders, *([self._folder] if grown else [])]:
                sync(path)
        except OSError as error:
            with self._lock:
                self._unsynced |= unsynced
                self._grown |= grown
            raise _failed("written", self._folder, error) from error

    def _note(self, path: Path, *, is_new: bool) -> None:
        with self._lock:
            self._unsynced.add(path)
            if is_new:
                self._grown.add(path.parent)


class MemoryArchive:
    """An archive in memory, lost when the process ends."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def copy(self) -> MemoryArchive:
        copied = MemoryArchive()
        copied._contents = dict(self._contents)
        return copied

    def put(self, name: str, content: bytes) -> None:
        self._contents[name] = content

    def append(self, name: str, content: bytes) -> None:
        self._contents[name] = self._contents.get(name, b"") + content

    def get(self, name: str) -> bytes:
        try:
            return self._contents[name]
        except KeyError:
            raise StorageError(f"{name} is not in the archive.") from None

    def size(self, name: str) -> int:
        return len(self._contents.get(name, b""))

    def has(self, name: str) -> bool:
        return name in self._contents

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self._contents if name.startswith(prefix))

    def delete(self, name: str) -> None:
        self._contents.pop(name, None)

    def sync(self) -> None:
        pass


def sync(path: Path) -> None:
    """Syncs a file or folder to disk, unless it was removed meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(done: str, path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be {done}: {error.strerror or error}.")
