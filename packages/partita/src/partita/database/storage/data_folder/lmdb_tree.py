"""The tree of a data folder: LMDB, a memory-mapped and crash-safe B+ tree.

LMDB's keys have at most 511 bytes, but DynamoDB's may have more than 3,000. A long key is stored as
its first bytes and a digest, with the whole key in front of the value. Long keys with the same
first bytes are neighbors, so a range read collects such a group and sorts it by the whole keys,
which makes the order exact.

A damaged file is refused before LMDB opens it; `lmdb_pages.py` says why.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final

import lmdb

from partita.database.storage.data_folder.lmdb_pages import check_pages
from partita.database.storage.engine import Changes, CommitArchive, Snapshot
from partita.errors import StorageError

MAP_BYTES: Final = 1 << 40
"""Reserved address space, which the file can never outgrow; it takes no memory or disk."""
DISK_FREE_BYTES_MIN: Final = 1 << 20
RAW_KEY_BYTES_MAX: Final = 511
DIGEST_BYTES: Final = 16
HEAD_BYTES: Final = RAW_KEY_BYTES_MAX - DIGEST_BYTES
DATA_FILE, LOCK_FILE = "data.mdb", "partita.lock"
PAGES_AT_START: Final = 256
"""How many pages are checked before a folder is served: the catalog, and all of a small folder."""

_LENGTH: Final = struct.Struct(">I")


class LmdbEngine:
    """The tree of one data folder. If `durable`, commits are on disk when `commit` returns.

    LMDB's own locks are off: the folder is locked as a whole, there is one writer, and the only
    snapshot is refreshed after each commit. LMDB reuses the pages that a commit freed in the next
    commit but one, so the snapshot never reads a page that is being overwritten.
    """

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._folder = folder
        self.waits_for_disk = durable
        self._lock = _lock_folder(folder)
        data_file = folder / DATA_FILE
        is_new = not data_file.exists()
        try:
            if not is_new:
                check_pages(data_file, PAGES_AT_START)
            self._environment = lmdb.open(
                str(folder),
                map_size=MAP_BYTES,
                sync=durable,
                metasync=durable,
                lock=False,
                readahead=False,
            )
            if durable:
                # A new file, or commits of a process that was not durable, may not be on disk yet.
                self._environment.sync(True)
        except (lmdb.Error, StorageError) as error:
            if is_new:
                # An unfinished new file would be taken for a damaged one at the next start.
                with suppress(OSError):
                    data_file.unlink()
            self._lock.close()
            raise cannot_open(folder, error) from error
        self._snapshot = LmdbSnapshot(self._environment)

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def refresh(self) -> None:
        self._snapshot.refresh()

    def commit(self, changes: Changes) -> None:
        commit = self.begin_commit()
        try:
            commit.put(changes.items())
        except StorageError:
            commit.abort()
            raise
        commit.finish()

    def begin_commit(self) -> LmdbCommit:
        return LmdbCommit(self._folder, self._environment)

    def archive_to(self, archive: CommitArchive) -> None:
        """Does nothing: LMDB has no log that commits would be replayed from."""

    def close(self) -> None:
        self._snapshot.close()
        if not self.waits_for_disk:
            self._environment.sync(True)
        self._environment.close()
        self._lock.close()


class LmdbCommit:
    """A write transaction; it may be finished on another thread than it was begun."""

    def __init__(self, folder: Path, environment: lmdb.Environment) -> None:
        self._folder = folder
        try:
            self._transaction = environment.begin(write=True)
        except lmdb.Error as error:
            raise cannot_write(folder, error) from error

    def put(self, pairs: Iterable[tuple[bytes, bytes | None]]) -> None:
        transaction = self._transaction
        try:
            for key, value in pairs:
                long = len(key) > HEAD_BYTES
                raw = _raw_key(key) if long else key
                if value is None:
                    transaction.delete(raw)
                else:
                    transaction.put(raw, _pack(key, value) if long else value)
        except lmdb.Error as error:
            raise cannot_write(self._folder, error) from error

    def put_many(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Puts many pairs, without deletions; faster than `put` if the keys are sorted."""
        if any(len(key) > HEAD_BYTES for key, _ in pairs):
            self.put(pairs)
            return
        try:
            with self._transaction.cursor() as cursor:
                cursor.putmulti(pairs)
        except lmdb.Error as error:
            raise cannot_write(self._folder, error) from error

    def finish(self) -> None:
        try:
            self._transaction.commit()
        except lmdb.Error as error:
            raise cannot_write(self._folder, error) from error

    def abort(self) -> None:
        self._transaction.abort()


def cannot_write(folder: Path, error: Exception) -> StorageError:
    """The error for a failed commit; names a full disk, which LMDB reports as an I/O error."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    if folder.exists() and disk_usage(folder).free < DISK_FREE_BYTES_MIN:
        reason = f"the disk that holds {folder} is full"
    return StorageError(f"The commit could not be written: {reason}.")


def cannot_open(folder: Path, error: Exception) -> StorageError:
    return StorageError(f"Cannot open the data folder {folder}: {error}.")


@contextmanager
def open_tree(folder: Path) -> Iterator[Snapshot]:
    """Opens the tree of a folder for reading only, after all of its pages were checked."""
    if not (folder / DATA_FILE).is_file():
        raise StorageError(
            f"The data folder {folder} does not exist."
            if not folder.is_dir()
            else f"{folder} is not a data folder of Partita: it has no {DATA_FILE}."
        )
    lock = _lock_for_reading(folder)
    try:
        check_pages(folder / DATA_FILE)
        environment = lmdb.open(str(folder), map_size=MAP_BYTES, readonly=True, lock=False)
    except (lmdb.Error, StorageError) as error:
        raise cannot_open(folder, error) from error
    else:
        snapshot = LmdbSnapshot(environment)
        try:
            yield snapshot
        finally:
            snapshot.close()
            environment.close()
    finally:
        if lock:
            lock.close()


class LmdbSnapshot:
    def __init__(self, environment: lmdb.Environment) -> None:
        self._environment = environment
        self._transaction = environment.begin()

    def get(self, key: bytes) -> bytes | None:
        try:
            if len(key) <= HEAD_BYTES:
                value: bytes | None = self._transaction.get(key)
                return value
            packed = self._transaction.get(_raw_key(key))
        except lmdb.Error as error:
            raise _cannot_read(error) from error
        return None if packed is None else _unpack(packed)[1]

    def range(
        self, start: bytes, stop: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        try:
            with self._transaction.cursor() as cursor:
                pairs = _backward(cursor, stop) if reverse else _forward(cursor, start)
                begins_at_start = not reverse and len(start) <= HEAD_BYTES
                for raw, value in pairs:
                    if len(raw) == RAW_KEY_BYTES_MAX:
                        rest = chain([(raw, value)], pairs)
                        yield from _with_long_keys(rest, start, stop, reverse=reverse)
                        return
                    if raw < start if reverse else raw >= stop:
                        return
                    if begins_at_start or start <= raw < stop:
                        yield raw, value
        except lmdb.Error as error:
            raise _cannot_read(error) from error

    def refresh(self) -> None:
        try:
            transaction = self._environment.begin()
        except lmdb.Error:
            # After a fatal error LMDB begins no more transactions. It also makes no more commits,
            # so the present one stays valid.
            return
        self._transaction.abort()
        self._transaction = transaction

    def close(self) -> None:
        self._transaction.abort()


def _cannot_read(error: lmdb.Error) -> StorageError:
    return StorageError(f"The data folder is damaged: {error}.")


def _forward(cursor: Any, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Raw pairs from `start` on, and possibly a few before it."""
    is_positioned = cursor.set_range(start[:HEAD_BYTES])
    pairs: Iterator[tuple[bytes, bytes]] = cursor.iternext() if is_positioned else iter(())
    return pairs


def _backward(cursor: Any, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Raw pairs in descending order, from just below `stop`."""
    if len(stop) > HEAD_BYTES:
        stop = stop[:HEAD_BYTES] + b"\xff" * (DIGEST_BYTES + 1)
    is_positioned = cursor.prev() if cursor.set_range(stop[:RAW_KEY_BYTES_MAX]) else cursor.last()
    pairs: Iterator[tuple[bytes, bytes]] = cursor.iterprev() if is_positioned else iter(())
    return pairs


def _with_long_keys(
    pairs: Iterable[tuple[bytes, bytes]], start: bytes, stop: bytes, *, reverse: bool
) -> Iterator[tuple[bytes, bytes]]:
    """The rest of a range that contains long keys."""
    for key, value in _whole_keys(pairs, start, stop, reverse=reverse):
        if key < start if reverse else key >= stop:
            return
        if start <= key < stop:
            yield key, value


def _whole_keys(
    pairs: Iterable[tuple[bytes, bytes]], start: bytes, stop: bytes, *, reverse: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Yields pairs with their whole keys; each group of long keys is sorted by the whole keys.

    Ends before a group that is completely outside of the range, since it may be large.
    """
    group: list[tuple[bytes, bytes]] = []
    head = b""
    for raw, value in pairs:
        is_long = len(raw) == RAW_KEY_BYTES_MAX
        if group and not (is_long and raw.startswith(head)):
            yield from sorted(group, reverse=reverse)
            group = []
        if is_long:
            if not group:
                head = raw[:HEAD_BYTES]
                if head < start[:HEAD_BYTES] if reverse else head >= stop:
                    return
            group.append(_unpack(value))
        else:
            yield raw, value
    yield from sorted(group, reverse=reverse)


def _raw_key(key: bytes) -> bytes:
    return key[:HEAD_BYTES] + blake2b(key, digest_size=DIGEST_BYTES).digest()


def _pack(key: bytes, value: bytes) -> bytes:
    return _LENGTH.pack(len(key)) + key + value


def _unpack(packed: bytes) -> tuple[bytes, bytes]:
    end = _LENGTH.size + int.from_bytes(packed[: _LENGTH.size], "big")
    if end > len(packed):
        raise StorageError("The data folder is damaged: a value lacks its long key.")
    return packed[_LENGTH.size : end], packed[end:]


def _lock_folder(folder: Path) -> _FolderLock:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _FolderLock(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT)
    except BlockingIOError:
        raise StorageError(
            f"The data folder {folder} is in use by another Partita; "
            "stop that one or choose another folder with --data."
        ) from None
    except OSError as error:
        raise StorageError(
            f"Cannot write to the data folder {folder} ({error.strerror}); "
            "make it writable or choose another with --data."
        ) from error


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Locks a folder, so that no server can open it meanwhile."""
    lock = _lock_folder(folder)
    try:
        yield
    finally:
        lock.close()


def _lock_for_reading(folder: Path) -> _FolderLock | None:
    """Locks a folder; None if it has no lock file: then it is a copy that was never served."""
    try:
        return _FolderLock(folder / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        raise StorageError(
            f"The data folder {folder} is in use by another Partita; stop that one first."
        ) from None
    except OSError as error:
        raise cannot_open(folder, StorageError(error.strerror)) from error


class _FolderLock:
    """A lock on a data folder. Only one process may use it, because catalog, counts and overlays
    are kept in that process's memory."""

    def __init__(self, path: Path, flags: int) -> None:
        self._file = os.open(path, flags, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise

    def close(self) -> None:
        os.close(self._file)
