"""The write-ahead log: each commit goes to disk in one small write before the tree has it.

The file begins with a generation number and a random salt, which is repeated in every record. The
file is reused from its beginning; the salt tells new records from old ones. A record is one commit
with a checksum, and is synced before the next one is written. So a crash can only tear the last
record, which was never acknowledged. A bad record in front of a good one means damage.
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

from partita.database.storage.engine import Changes
from partita.errors import StorageError
from partita.foundation.checksum import crc32

MAGIC: Final = b"partita1"
_HEADER: Final = struct.Struct("<8sQ8sI")
"""Magic, generation, salt, 1 if there are records; a checksum of these follows."""
HEADER_BYTES: Final = _HEADER.size + 4
_RECORD: Final = struct.Struct("<8sQI")
"""Salt, length of the content that follows, its checksum."""
SALT_BYTES: Final = 8
_LENGTHS: Final = struct.Struct("<II")
"""The lengths of a key and its value."""
DELETED: Final = 0xFFFFFFFF
"""The length of a value that stands for a deletion."""

PREALLOCATED_BYTES = 1 << 20
"""The file grows by this many zeros at once: a sync that does not change the file's length takes
half the time."""
CLEARED_BYTES_MAX = 16 << 20
"""A file that has grown larger is truncated to this when it is cleared."""


class LogContents(NamedTuple):
    """The contents of a log file."""

    generation: int = 0
    salt: bytes = bytes(SALT_BYTES)
    commits: tuple[Changes, ...] = ()
    end: int = HEADER_BYTES
    """The offset of the next record."""
    is_new: bool = False
    """True when the file has no header yet."""


class WriteAheadLog:
    """One log file, used for one generation after the other. A failing disk raises OSError.

    Without `durable`, writes survive the end of the process but not a crash of the machine.
    """

    def __init__(self, path: Path, contents: LogContents, *, durable: bool = True) -> None:
        self._durable = durable
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._file_bytes = max(HEADER_BYTES, os.fstat(self._file).st_size)
        self._generation = contents.generation
        self._salt = contents.salt
        self._end = contents.end
        self.is_in_doubt = False
        """True after a failed sync: a refused commit may be on disk."""
        if contents.is_new:
            _write(self._file, _header(contents.generation, contents.salt, has_records=False), 0)
        # The records that were read are used from now on, so they have to be durable, even if the
        # process that wrote them died before its sync.
        self._sync()

    def begin(self, generation: int) -> None:
        """Starts a new generation; the sync of its first record also syncs the header."""
        self._generation = generation
        self._salt = os.urandom(SALT_BYTES)
        self._end = HEADER_BYTES

    def append(self, changes: Changes) -> None:
        """Appends a commit; returns when it is on disk (if not durable, in the system's cache)."""
        record = _record(self._salt, changes)
        end = self._end + len(record)
        if end > self._file_bytes:
            self._preallocate(end)
        if self._end == HEADER_BYTES:
            # Header and first record share a sync. If only one of them reaches the disk, the salts
            # differ, and the log counts as empty.
            _write(self._file, _header(self._generation, self._salt, has_records=True), 0)
        _write(self._file, record, self._end)
        try:
            self._sync()
        except OSError:
            self.is_in_doubt = True
            # Erases the record, so that the next process does not replay a refused commit. Only a
            # crash of the machine could bring it back, until `clear` is synced.
            _write(self._file, bytes(_RECORD.size), self._end)
            raise
        self._end = end

    def clear(self) -> None:
        """Removes the records once the tree has them."""
        _write(self._file, _header(self._generation, self._salt, has_records=False), 0)
        self._sync()
        self.is_in_doubt = False
        if self._file_bytes > CLEARED_BYTES_MAX:
            # Only after the sync of the header: a file that lost its last records but is replayed
            # would put older values over newer ones in the tree.
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
        """Extends the file with zeros, in multiples of `PREALLOCATED_BYTES`, to at least `end`."""
        piece_bytes = PREALLOCATED_BYTES
        file_bytes = -(-end // piece_bytes) * piece_bytes
        zeros = bytes(piece_bytes)
        for piece in range(self._file_bytes // piece_bytes * piece_bytes, file_bytes, piece_bytes):
            start = max(piece, self._file_bytes)
            _write(self._file, zeros[: piece + piece_bytes - start], start)
        self._file_bytes = file_bytes


def read_log(path: Path) -> LogContents:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return LogContents(is_new=True)
    except OSError as error:
        raise StorageError(f"{path.name} cannot be read ({error.strerror})") from error
    header = content[:HEADER_BYTES]
    if len(content) <= HEADER_BYTES and not any(content):
        return LogContents(is_new=True)
    if len(header) < HEADER_BYTES or header != _with_checksum(header[:-4]):
        raise StorageError(f"{path.name} is damaged at its beginning")
    magic, generation, salt, has_records = _HEADER.unpack_from(header)
    if magic != MAGIC:
        raise StorageError(f"{path.name} was written by another version of Partita")
    if not has_records:
        # `clear` only rewrites the header, so the old records are still in the file.
        return LogContents(generation, salt)
    commits = []
    end = HEADER_BYTES
    while (payload := _payload(content, end, salt)) is not None:
        commits.append(dict(_pairs(payload)))
        end += _RECORD.size + len(payload)
    # A crash tears the last record only. With a valid record behind it, this is damage.
    if _has_record_after(content, end, salt):
        raise StorageError(f"{path.name} is damaged at byte {end}")
    return LogContents(generation, salt, tuple(commits), end)


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
    """Returns the content of the record at an offset; None if there is no valid record."""
    start = offset + _RECORD.size
    if start > len(content):
        return None
    record_salt, length, checksum = _RECORD.unpack_from(content, offset)
    if record_salt != salt or length == 0 or start + length > len(content):
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
        # On macOS, fsync leaves the data in the drive's cache.
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(file)


def _write(file: int, content: bytes, offset: int) -> None:
    written = os.pwrite(file, content, offset)
    while written < len(content):
        written += os.pwrite(file, content[written:], offset + written)
