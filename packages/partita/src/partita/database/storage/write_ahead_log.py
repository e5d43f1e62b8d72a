"""A write-ahead log: commits on disk in one small write each, before the tree has them.

The file begins with its generation and a random salt, which every record carries: the file is used
again from its beginning, and the salt tells new records from those that were there before. A record
is one commit, with a checksum; only when it is synced does the next one follow. So the only record
that a crash can spoil is the last one, whose write was never acknowledged. One that is spoiled
before another is damage.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from partita.checksum import crc32
from partita.database.storage.engine import Changes
from partita.errors import StorageError

MAGIC: Final = b"partita1"
_HEADER: Final = struct.Struct("<8sQ8sI")
"""Magic, generation, salt, whether there are records; a checksum of all follows."""
HEADER_BYTES: Final = _HEADER.size + 4
_RECORD: Final = struct.Struct("<8sQI")
"""Salt, how many bytes follow, their checksum."""
SALT_BYTES: Final = 8
_LENGTHS: Final = struct.Struct("<II")
"""Of a key and its value."""
DELETED: Final = 0xFFFFFFFF
"""Instead of the length of a value."""

PREALLOCATED_BYTES = 1 << 20
"""The file grows by so many zeros: a sync takes half as long when it need not note a new length."""
CLEARED_BYTES_MAX = 16 << 20
"""A file that has grown beyond this is truncated to it when it is cleared."""


class Contents(NamedTuple):
    """What a log has on disk."""

    generation: int = 0
    salt: bytes = bytes(SALT_BYTES)
    commits: tuple[Changes, ...] = ()
    end: int = HEADER_BYTES
    """Where the next record goes."""
    is_new: bool = False
    """Whether there is no header yet."""


class WriteAheadLog:
    """One file, for one generation after the other. Full disks and failures raise OSError.

    Without `durable`, what is written outlives the process but not a crash of the machine.
    """

    def __init__(self, path: Path, contents: Contents, *, durable: bool = True) -> None:
        self._durable = durable
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._file_bytes = max(HEADER_BYTES, os.fstat(self._file).st_size)
        self._generation = contents.generation
        self._salt = contents.salt
        self._end = contents.end
        self.is_in_doubt = False
        """Whether a sync has failed: there may be a commit on disk that was refused."""
        if contents.is_new:
            _write(self._file, _header(contents.generation, contents.salt, has_records=False), 0)
        # What was read back must stay, also where the process that wrote it died before its sync.
        self._sync()

    def begin(self, generation: int) -> None:
        """Start over with a new generation; the sync of its first record syncs the header too."""
        self._generation = generation
        self._salt = os.urandom(SALT_BYTES)
        self._end = HEADER_BYTES

    def append(self, changes: Changes) -> None:
        """Returns when the commit is on disk, or without `durable` with the operating system."""
        record = _record(self._salt, changes)
        end = self._end + len(record)
        if end > self._file_bytes:
            self._preallocate(end)
        if self._end == HEADER_BYTES:
            _write(self._file, _header(self._generation, self._salt, has_records=True), 0)
        _write(self._file, record, self._end)
        try:
            self._sync()
        except OSError:
            self.is_in_doubt = True
            # The next process must not see it either; only a crash of the machine brings it back.
            _write(self._file, bytes(_RECORD.size), self._end)
            raise
        self._end = end

    def clear(self) -> None:
        """Remove the records: the tree has them."""
        _write(self._file, _header(self._generation, self._salt, has_records=False), 0)
        self._sync()
        self.is_in_doubt = False
        if self._file_bytes > CLEARED_BYTES_MAX:
            # Not before the sync: the first records without the last ones would undo those.
            os.ftruncate(self._file, CLEARED_BYTES_MAX)
            self._file_bytes = CLEARED_BYTES_MAX

    def close(self) -> None:
        if not self._durable:
            with suppress(OSError):
                _sync(self._file)
        os.close(self._file)

    def _sync(self) -> None:
        if self._durable:
            _sync(self._file)

    def _preallocate(self, end: int) -> None:
        """Let the file grow to `end` at least, up to a multiple of what it grows by."""
        piece_bytes = PREALLOCATED_BYTES
        file_bytes = -(-end // piece_bytes) * piece_bytes
        zeros = bytes(piece_bytes)
        for piece in range(self._file_bytes // piece_bytes * piece_bytes, file_bytes, piece_bytes):
            start = max(piece, self._file_bytes)
            _write(self._file, zeros[: piece + piece_bytes - start], start)
        self._file_bytes = file_bytes


def read_log(path: Path) -> Contents:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Contents(is_new=True)
    except OSError as error:
        raise StorageError(f"{path.name} cannot be read ({error.strerror})") from error
    header = content[:HEADER_BYTES]
    if len(content) <= HEADER_BYTES and not any(content):
        return Contents(is_new=True)
    if len(header) < HEADER_BYTES or header != _with_checksum(header[:-4]):
        raise StorageError(f"{path.name} is damaged at its beginning")
    magic, generation, salt, has_records = _HEADER.unpack_from(header)
    if magic != MAGIC:
        raise StorageError(f"{path.name} was written by another version of Partita")
    if not has_records:
        return Contents(generation, salt)
    commits = []
    end = HEADER_BYTES
    while (payload := _payload(content, end, salt)) is not None:
        commits.append(dict(_pairs(payload)))
        end += _RECORD.size + len(payload)
    if _has_record_after(content, end, salt):
        raise StorageError(f"{path.name} is damaged at byte {end}")
    return Contents(generation, salt, tuple(commits), end)


def _header(generation: int, salt: bytes, *, has_records: bool) -> bytes:
    return _with_checksum(_HEADER.pack(MAGIC, generation, salt, has_records))


def _with_checksum(content: bytes) -> bytes:
    return content + crc32(content).to_bytes(4, "little")


def _record(salt: bytes, changes: Changes) -> bytes:
    pieces: list[bytes] = []
    for key, value in changes.items():
        if value is None:
            pieces += (_LENGTHS.pack(len(key), DELETED), key)
        else:
            pieces += (_LENGTHS.pack(len(key), len(value)), key, value)
    payload = b"".join(pieces)
    return _RECORD.pack(salt, len(payload), crc32(payload)) + payload


def _payload(content: bytes, offset: int, salt: bytes) -> bytes | None:
    """What the record at an offset holds, if there is one with that salt."""
    start = offset + _RECORD.size
    if start > len(content):
        return None
    found, length, checksum = _RECORD.unpack_from(content, offset)
    if found != salt or length == 0 or start + length > len(content):
        return None
    payload = content[start : start + length]
    return payload if crc32(payload) == checksum else None


def _has_record_after(content: bytes, offset: int, salt: bytes) -> bool:
    while (offset := content.find(salt, offset + 1)) >= 0:
        if _payload(content, offset, salt) is not None:
            return True
    return False


def _pairs(payload: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    offset = 0
    while offset < len(payload):
        key_length, value_length = _LENGTHS.unpack_from(payload, offset)
        offset += _LENGTHS.size
        key = payload[offset : offset + key_length]
        offset += key_length
        if value_length == DELETED:
            yield key, None
        else:
            yield key, payload[offset : offset + value_length]
            offset += value_length


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        # There a sync leaves it to the drive when it writes; this does not.
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(file)


def _write(file: int, content: bytes, offset: int) -> None:
    written = os.pwrite(file, content, offset)
    while written < len(content):
        written += os.pwrite(file, content[written:], offset + written)
