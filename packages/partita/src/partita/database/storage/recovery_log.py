"""The recovery log: keeps the commits of followed tables after the write-ahead log is cleared.

Each commit gets a *stamp*: microseconds since the epoch, higher than the stamp of every earlier
commit. After a commit its changes are kept in memory. Before a write-ahead log is cleared, `flush`
sorts them by table and appends them to the archive. After a crash, the commits that are replayed
from the write-ahead log are flushed once more; readers skip stamps that they have seen.

A log file consists of blocks, each with a checksum and the compressed (stamp, changes) of some
commits. A torn block at the end of a file was never reported as flushed, so its commits are in a
later file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Final, NamedTuple

import msgspec
from zlib_ng import zlib_ng

from partita.database.storage.archive import Archive
from partita.database.storage.engine import Changes, Reader
from partita.errors import StorageError
from partita.foundation.checksum import crc32
from partita.foundation.clock import Clock

STAMP_KEY: Final = b"\x0e\x00"
LOGS: Final = "log/"
EVERYTHING: Final = "everything"
"""Stands for a table id: the log of all keys, which is kept while a backup runs."""
PREFIX_BYTES: Final = 5
"""The length of the prefix of a table's items: the key space and the table's number."""
MICROSECONDS: Final = 1_000_000
BLOCK_BYTES: Final = 256 << 10
FILE_BYTES: Final = 8 << 20
FILE_MICROSECONDS: Final = 24 * 3600 * MICROSECONDS
"""A log file that is larger than `FILE_BYTES` or older than this gets no more commits. Files are
removed as a whole, so a file must not reach over too long a time."""
COMPRESSION: Final = 1

_HEADER: Final = struct.Struct("<IIQQ")
"""The length of the content that follows, its checksum, its first and its last stamp."""

Place = bytes
Change = tuple[Place, bytes | None]
"""An item's place, which is its storage key after the table's prefix, and its stored value; None
if it was deleted."""
Commit = tuple[int, list[Change]]
"""A stamp and the changes of its commit."""

_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(list[tuple[int, list[tuple[bytes, bytes | None]]]])


class LogBlock(NamedTuple):
    first: int
    last: int
    content: bytes

    def commits(self) -> list[Commit]:
        return _decoder.decode(zlib_ng.decompress(self.content))


class RecoveryLog:
    """Keeps the commits of the followed tables.

    The committing thread calls `stamp` before and `keep` after each commit; any thread may call
    `flush`.
    """

    def __init__(self, archive: Archive, clock: Clock, committed: Reader) -> None:
        self._archive = archive
        self._clock = clock
        self._last = stamp_of(committed)
        self._promised = 0
        self._followed: dict[bytes, str] = {}
        self._follows_everything = False
        self._pending: list[Changes] = []
        self._files: dict[str, str] = {}
        """The files that this process appends to, by table."""
        self._lock = Lock()
        self._flushing = Lock()

    @property
    def is_following(self) -> bool:
        return bool(self._followed) or self._follows_everything

    @property
    def follows_everything(self) -> bool:
        return self._follows_everything

    @property
    def pending_commits(self) -> int:
        return len(self._pending)

    def follow(self, tables: Mapping[bytes, str]) -> None:
        """Sets the tables that are followed from now on: table ids by the prefix of their items."""
        self._followed = dict(tables)

    def follow_everything(self, is_on: bool) -> None:
        """Starts or stops keeping the changes of all keys, for a backup of the database."""
        self._follows_everything = is_on

    def latest(self) -> int:
        """Returns the present as a stamp, and promises that later commits get higher ones."""
        with self._lock:
            self._promised = max(self._last, self._promised, int(self._clock() * MICROSECONDS))
            return self._promised

    def stamp(self, changes: dict[bytes, bytes | None]) -> None:
        now = int(self._clock() * MICROSECONDS)
        with self._lock:
            self._last = max(now, self._last + 1, self._promised + 1)
        changes[STAMP_KEY] = self._last.to_bytes(8, "big")

    def keep(self, changes: Changes) -> None:
        with self._lock:
            self._pending.append(changes)

    def flush(self) -> None:
        """Returns when everything that was kept so far is durable in the archive."""
        with self._flushing:
            with self._lock:
                pending = self._pending[:]
            if not pending:
                return
            for table_id, commits in _by_table(pending, dict(self._followed)).items():
                self._append(table_id, commits)
            if self._follows_everything and (commits := list(_all_commits(pending))):
                self._append(EVERYTHING, commits)
            self._archive.sync()
            # Only now: if the archive fails, the commits are flushed again. Others may have been
            # added meanwhile.
            with self._lock:
                del self._pending[: len(pending)]

    def _append(self, table_id: str, commits: Sequence[Commit]) -> None:
        file = self._files.get(table_id)
        if file is None or self._is_full(file, commits[0][0]):
            # A file of an earlier process may end with a torn block, which would hide whatever
            # is appended behind it.
            file = new_log_file(table_id, commits[0][0])
        self._files.pop(table_id, None)
        self._archive.append(file, b"".join(pack_blocks(commits)))
        self._files[table_id] = file

    def _is_full(self, file: str, stamp: int) -> bool:
        is_old = stamp - first_stamp(file) > FILE_MICROSECONDS
        return is_old or self._archive.size(file) > FILE_BYTES


def stamp_of(reader: Reader) -> int:
    """The stamp of the last commit that a reader sees; 0 if no commit had a stamp."""
    return int.from_bytes(reader.get(STAMP_KEY) or b"", "big")


def log_prefix(table_id: str) -> str:
    return f"{LOGS}{table_id}/"


def new_log_file(table_id: str, first: int) -> str:
    """A new file name, for commits from a stamp on."""
    return f"{log_prefix(table_id)}{first:016x}-{os.urandom(4).hex()}"


def renamed_log_file(name: str) -> str:
    """A new file name for a copy of a log file, with the same table and first stamp."""
    folder, _, file = name.rpartition("/")
    return f"{folder}/{file.partition('-')[0]}-{os.urandom(4).hex()}"


def commits_of(rows: Iterable[tuple[int, Place, bytes | None]]) -> list[Commit]:
    """Groups rows of (stamp, place, value), in any order, into commits in the order of stamps."""
    commits: dict[int, Commit] = {}
    for stamp, place, value in rows:
        commit = commits.setdefault(stamp, (stamp, []))
        commit[1].append((bytes(place), None if value is None else bytes(value)))
    return [commits[stamp] for stamp in sorted(commits)]


def log_files(archive: Archive, table_id: str) -> list[tuple[int, str]]:
    """The log files of a table with their first stamps, in order."""
    return [(first_stamp(name), name) for name in archive.names(log_prefix(table_id))]


def first_stamp(file: str) -> int:
    """The first stamp of a log file, which is part of its name."""
    return int(file.rpartition("/")[2].partition("-")[0], 16)


def read_log(archive: Archive, table_id: str, after: int, until: int) -> Iterator[list[Commit]]:
    """Yields the commits of a table with after < stamp <= until, in order, block by block.

    A block without such commits yields an empty list, so that the caller can pause there.
    """
    files = log_files(archive, table_id)
    last_stamp = after
    for number, (first, name) in enumerate(files):
        following = files[number + 1][0] if number + 1 < len(files) else None
        if first > until:
            break
        # After a crash the files of two processes may overlap: a file can have commits that are
        # later than the first one of the next file.
        if following is not None and following <= after and _ends_before(archive, name, after):
            continue
        for block in unpack_blocks(archive.get(name)):
            if block.last <= last_stamp or block.first > until:
                yield []
                continue
            commits = [commit for commit in block.commits() if last_stamp < commit[0] <= until]
            if commits:
                last_stamp = commits[-1][0]
            yield commits


def _ends_before(archive: Archive, name: str, stamp: int) -> bool:
    return all(block.last <= stamp for block in unpack_blocks(archive.get(name)))


def pack_blocks(commits: Sequence[Commit]) -> Iterator[bytes]:
    """Packs commits into blocks of limited size; a commit is never divided."""
    block: list[Commit] = []
    size = 0
    for commit in commits:
        block.append(commit)
        size += sum(len(place) + len(value or b"") for place, value in commit[1])
        if size > BLOCK_BYTES:
            yield _pack_block(block)
            block, size = [], 0
    if block:
        yield _pack_block(block)


def _pack_block(commits: Sequence[Commit]) -> bytes:
    content = zlib_ng.compress(_encode(commits), COMPRESSION)
    header = _HEADER.pack(len(content), crc32(content), commits[0][0], commits[-1][0])
    return header + content


def unpack_blocks(content: bytes) -> Iterator[LogBlock]:
    """Yields the blocks of a file up to the first torn one."""
    offset = 0
    while offset + _HEADER.size <= len(content):
        length, checksum, first, last = _HEADER.unpack_from(content, offset)
        offset += _HEADER.size
        block = content[offset : offset + length]
        if len(block) < length or crc32(block) != checksum:
            return
        yield LogBlock(first, last, block)
        offset += length


def cut_log(content: bytes, until: int) -> bytes:
    """Returns the content of a log file without the commits after a stamp."""
    pieces: list[bytes] = []
    for block in unpack_blocks(content):
        if block.first > until:
            continue
        kept = [commit for commit in block.commits() if commit[0] <= until]
        pieces.append(_pack_block(kept))
    return b"".join(pieces)


def _by_table(pending: Sequence[Changes], followed: Mapping[bytes, str]) -> dict[str, list[Commit]]:
    commits_by_table: dict[str, list[Commit]] = {}
    for changes in pending:
        stamped = changes.get(STAMP_KEY)
        if stamped is None:
            continue
        stamp = int.from_bytes(stamped, "big")
        for key, value in changes.items():
            table_id = followed.get(key[:PREFIX_BYTES])
            if table_id is None:
                continue
            commits = commits_by_table.setdefault(table_id, [])
            if not commits or commits[-1][0] != stamp:
                commits.append((stamp, []))
            commits[-1][1].append((key[PREFIX_BYTES:], value))
    return commits_by_table


def _all_commits(pending: Sequence[Changes]) -> Iterator[Commit]:
    for changes in pending:
        stamped = changes.get(STAMP_KEY)
        if stamped is not None:
            yield int.from_bytes(stamped, "big"), list(changes.items())


def damaged(name: str) -> StorageError:
    return StorageError(f"{name} in the archive is damaged: its content does not match its digest.")
