"""The location of backups: a folder, or a prefix in an S3 bucket."""

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
    """An archive in a bucket, below a prefix. Objects are durable as soon as they are put."""

    def __init__(self, bucket: S3Bucket, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._sizes: dict[str, int] | None = None
        """The sizes of all objects, listed once, since nobody else writes below the prefix."""

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
        return self._listed().get(name, 0)

    def has(self, name: str) -> bool:
        return name in self._listed()

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self._listed() if name.startswith(prefix))

    def delete(self, name: str) -> None:
        try:
            self._bucket.delete(self._prefix + name)
        except BucketError as error:
            raise StorageError(str(error)) from None
        self._listed().pop(name, None)

    def sync(self) -> None:
        pass

    def _listed(self) -> dict[str, int]:
        if self._sizes is None:
            try:
                sizes = self._bucket.sizes(self._prefix)
            except BucketError as error:
                raise StorageError(str(error)) from None
            self._sizes = {key.removeprefix(self._prefix): size for key, size in sizes.items()}
        return self._sizes


def open_location(text: str, *, is_new: bool = False) -> Archive:
    """Opens a folder or s3://BUCKET/PREFIX; a folder must exist unless `is_new`."""
    if not text.startswith(S3):
        folder = Path(text)
        if not is_new and not folder.is_dir():
            raise PartitaError(f"The folder {folder} does not exist.")
        return FolderArchive(folder)
    name, _, prefix = text.removeprefix(S3).partition("/")
    endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)
    try:
        bucket = S3Bucket(name, endpoint, {})
    except BucketError as error:
        raise PartitaError(str(error)) from None
    return BucketArchive(bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else "")


@contextmanager
def only_writer(text: str) -> Iterator[None]:
    """Locks a location while a backup is written or old ones are removed.

    Another process that removes old backups would also remove the chunks of an unfinished one, to
    which no backup refers yet. Buckets have no locks.
    """
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
    """The part of an archive below a prefix, as an archive."""
    return _Subfolder(archive, prefix)


class _Subfolder:
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
        names = self._archive.names(self._prefix + prefix)
        return [name.removeprefix(self._prefix) for name in names]

    def put(self, name: str, content: bytes) -> None:
        self._archive.put(self._prefix + name, content)

    def append(self, name: str, content: bytes) -> None:
        self._archive.append(self._prefix + name, content)

    def delete(self, name: str) -> None:
        self._archive.delete(self._prefix + name)

    def sync(self) -> None:
        self._archive.sync()
