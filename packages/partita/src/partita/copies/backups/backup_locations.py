"""Where copies are: a folder, or a bucket of an S3."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Final

from partita.database.recovery.s3.object_buckets import ENDPOINTS, BucketError, S3Bucket
from partita.database.storage.archive import Archive, FolderArchive
from partita.errors import PartitaError, StorageError

S3: Final = "s3://"
LOCK_FILE: Final = ".lock"


class BucketArchive:
    """An archive in a bucket, below a prefix. What was put is safe at once."""

    def __init__(self, bucket: S3Bucket, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._sizes: dict[str, int] | None = None
        """What is there: listed once, as nobody else writes below the prefix."""

    def put(self, name: str, content: bytes) -> None:
        try:
            self._bucket.put(self._prefix + name, content)
        except BucketError as error:
            raise StorageError(str(error)) from None
        if self._sizes is not None:
            self._sizes[name] = len(content)

    def append(self, name: str, content: bytes) -> None:
        before = self.get(name) if self.has(name) else b""
        self.put(name, before + content)

    def get(self, name: str) -> bytes:
        try:
            return self._bucket.get(self._prefix + name)
        except BucketError as error:
            raise StorageError(str(error)) from None

    def size(self, name: str) -> int:
        return self._known().get(name, 0)

    def has(self, name: str) -> bool:
        return name in self._known()

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self._known() if name.startswith(prefix))

    def delete(self, name: str) -> None:
        try:
            self._bucket.delete(self._prefix + name)
        except BucketError as error:
            raise StorageError(str(error)) from None
        self._known().pop(name, None)

    def sync(self) -> None:
        pass

    def _known(self) -> dict[str, int]:
        if self._sizes is None:
            try:
                listed = self._bucket.sizes(self._prefix)
            except BucketError as error:
                raise StorageError(str(error)) from None
            self._sizes = {key.removeprefix(self._prefix): size for key, size in listed.items()}
        return self._sizes


def open_location(text: str, *, is_new: bool = False) -> Archive:
    """The archive at a folder, or at s3://BUCKET/PREFIX; unless it may be new, it must be there."""
    if not text.startswith(S3):
        folder = Path(text)
        if not is_new and not folder.is_dir():
            raise PartitaError(f"There is no folder {folder}.")
        return FolderArchive(folder)
    name, _, prefix = text.removeprefix(S3).partition("/")
    endpoint = next((os.environ[one] for one in ENDPOINTS if os.environ.get(one)), None)
    try:
        bucket = S3Bucket(name, endpoint, {})
    except BucketError as error:
        raise PartitaError(str(error)) from None
    return BucketArchive(bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else "")


@contextmanager
def only_writer(text: str) -> Iterator[None]:
    """While a copy is put into a folder, or old ones are removed, nobody else does either: what
    only an unfinished copy refers to would pass for what nobody needs. A bucket has no locks."""
    if text.startswith(S3):
        yield
        return
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK_FILE).open("wb")
    except OSError as error:
        raise PartitaError(f"{folder} cannot be written: {error.strerror or error}.") from error
    with lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise PartitaError(
                f"Another backup is being written to {folder}; try again when it is done."
            ) from None
        yield


def subfolder(archive: Archive, prefix: str) -> Archive:
    """What an archive has below a prefix."""
    return _Below(archive, prefix)


class _Below:
    def __init__(self, archive: Archive, prefix: str) -> None:
        self._archive = archive
        self._prefix = prefix

    def get(self, name: str) -> bytes:
        return self._archive.get(self._prefix + name)

    def size(self, name: str) -> int:
        return self._archive.size(self._prefix + name)

    def has(self, name: str) -> bool:
        return self._archive.has(self._prefix + name)

    def names(self, prefix: str) -> list[str]:
        found = self._archive.names(self._prefix + prefix)
        return [name.removeprefix(self._prefix) for name in found]

    def put(self, name: str, content: bytes) -> None:
        self._archive.put(self._prefix + name, content)

    def append(self, name: str, content: bytes) -> None:
        self._archive.append(self._prefix + name, content)

    def delete(self, name: str) -> None:
        self._archive.delete(self._prefix + name)

    def sync(self) -> None:
        self._archive.sync()
