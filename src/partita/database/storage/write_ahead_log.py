"""A journal: commits on disk in one small write each, before the tree has them.

The file begins with its generation and a random mark, which every record carries: the file is used
again from its beginning, and what was there before is told from what is new. A record is one
commit, with a checksum; only when it is synced does the next one follow. So the only record that a
crash can spoil is the last one, whose write was never acknowledged. One that is spoiled before
another is damage.
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
from zlib import crc32

from partita.database.storage.engine import Changes
from partita.errors import StorageError

MAGIC: Final = b"partita1"
_HEADER: Final = struct.Struct("<8sQ8sI")
"""Magic, generation, mark, whether there are records; a checksum of all follows."""
HEADER_BYTES: Final = _HEADER.size + 4
_RECORD: Final = struct.Struct("<8sQI")
"""Mark, how many bytes follow, their checksum."""
MARK_BYTES: Final = 8
_LENGTHS: Final = struct.Struct("<II")
"""Of a key and its value."""
DELETED: Final = 0xFFFFFFFF
"""Instead of the length of a value."""

CHUNK_BYTES = 1 << 20
"""Room is made in pieces of zeros: a sync takes half as long when it need not note a new length."""
KEPT_BYTES = 16 << 20
"""A journal that has grown beyond this is cut when it is cleared."""


class Contents(NamedTuple):
    """What a journal has on disk."""

    generation: int = 0
    mark: bytes = bytes(MARK_BYTES)
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
        self._room = max(HEADER_BYTES, os.fstat(self._file).st_size)
        self._generation = contents.generation
        self._mark = contents.mark
        self._end = contents.end
        self.is_in_doubt = False
        """Whether a sync has failed: there may be a commit on disk that was refused."""
        if contents.is_new:
            _write(self._file, _header(contents.generation, contents.mark, has_records=False), 0)
        # What is read back shall stay, also where the process that wrote it died before its sync.
        self._sync()

    def begin(self, generation: int) -> None:
        """Take records of a new generation; the sync of the first one syncs the header too."""
        self._generation = generation
        self._mark = os.urandom(MARK_BYTES)
        self._end = HEADER_BYTES

    def append(self, changes: Changes) -> None:
        """Returns when the commit is as safe as it is to be."""
        record = _record(self._mark, changes)
        end = self._end + len(record)
        if end > self._room:
            self._make_room(end)
        if self._end == HEADER_BYTES:
            _write(self._file, _header(self._generation, self._mark, has_records=True), 0)
        _write(self._file, record, self._end)
        try:
            self._sync()
        except OSError:
            self.is_in_doubt = True
            # The next process shall not see it either, unless the whole machine fails.
            _write(self._file, bytes(_RECORD.size), self._end)
            raise
        self._end = end

    def clear(self) -> None:
        """Forget the records."""
        _write(self._file, _header(self._generation, self._mark, has_records=False), 0)
        self._sync()
        self.is_in_doubt = False
        if self._room > KEPT_BYTES:
            # Not before the sync: the first records without the last ones would undo those.
            os.ftruncate(self._file, KEPT_BYTES)
            self._room = KEPT_BYTES

    def close(self) -> None:
        if not self._durable:
            with suppress(OSError):
                _sync(self._file)
        os.close(self._file)

    def _sync(self) -> None:
        if self._durable:
            _sync(self._file)

    def _make_room(self, end: int) -> None:
        room = -(-end // CHUNK_BYTES) * CHUNK_BYTES
        zeros = bytes(CHUNK_BYTES)
        for place in range(self._room // CHUNK_BYTES * CHUNK_BYTES, room, CHUNK_BYTES):
            start = max(place, self._room)
            _write(self._file, zeros[: place + CHUNK_BYTES - start], start)
        self._room = room


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
    magic, generation, mark, has_records = _HEADER.unpack_from(header)
    if magic != MAGIC:
        raise StorageError(f"{path.name} was written by another version of Partita")
    if not has_records:
        return Contents(generation, mark)
    commits = []
    end = HEADER_BYTES
    while (payload := _payload(content, end, mark)) is not None:
        commits.append(dict(_pairs(payload)))
        end += _RECORD.size + len(payload)
    if _has_record_after(content, end, mark):
        raise StorageError(f"{path.name} is damaged at byte {end}")
    return Contents(generation, mark, tuple(commits), end)


def _header(generation: int, mark: bytes, *, has_records: bool) -> bytes:
    return _with_checksum(_HEADER.pack(MAGIC, generation, mark, has_records))


def _with_checksum(content: bytes) -> bytes:
    return content + crc32(content).to_bytes(4, "little")


def _record(mark: bytes, changes: Changes) -> bytes:
    parts: list[bytes] = []
    for key, value in changes.items():
        if value is None:
            parts += (_LENGTHS.pack(len(key), DELETED), key)
        else:
            parts += (_LENGTHS.pack(len(key), len(value)), key, value)
    payload = b"".join(parts)
    return _RECORD.pack(mark, len(payload), crc32(payload)) + payload


def _payload(content: bytes, place: int, mark: bytes) -> bytes | None:
    """What the record at a place holds, if there is one with that mark."""
    start = place + _RECORD.size
    if start > len(content):
        return None
    found, length, checksum = _RECORD.unpack_from(content, place)
    if found != mark or length == 0 or start + length > len(content):
        return None
    payload = content[start : start + length]
    return payload if crc32(payload) == checksum else None


def _has_record_after(content: bytes, place: int, mark: bytes) -> bool:
    while (place := content.find(mark, place + 1)) >= 0:
        if _payload(content, place, mark) is not None:
            return True
    return False


def _pairs(payload: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    place = 0
    while place < len(payload):
        key_length, value_length = _LENGTHS.unpack_from(payload, place)
        place += _LENGTHS.size
        key = payload[place : place + key_length]
        place += key_length
        if value_length == DELETED:
            yield key, None
        else:
            yield key, payload[place : place + value_length]
            place += value_length


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        # There a sync leaves it to the drive when it writes; this does not.
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(file)


def _write(file: int, content: bytes, place: int) -> None:
    written = os.pwrite(file, content, place)
    while written < len(content):
        written += os.pwrite(file, content[written:], place + written)
