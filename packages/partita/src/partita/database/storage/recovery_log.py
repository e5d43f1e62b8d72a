"""The recovery log: commits of followed tables, kept beyond the write-ahead log.

Each commit gets a *stamp*, microseconds since the epoch, higher than that of every commit before
it. After the commit its changes are kept here by reference; before a write-ahead log is cleared,
`flush` sorts them by table and appends them to the archive. What a crash leaves in the write-ahead
log is kept and flushed once more: readers skip stamps that they have seen.

A log file has blocks, each with a checksum: (stamp, changes) of some commits, compressed. A block
that is torn at the end of a file was never counted as flushed, so its commits are in a later file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Final, NamedTuple

import msgspec
from zlib_ng import zlib_ng

from partita.checksum import crc32
from partita.clock import Clock
from partita.database.storage.archive import Archive
from partita.database.storage.engine import Changes, Reader
from partita.errors import StorageError

STAMP_KEY: Final = b"\x0e\x00"
LOGS: Final = "log/"
EVERYTHING: Final = "everything"
"""Instead of the id of a table: the log of all keys, while the database is being copied."""
PREFIX_BYTES: Final = 5
"""What the keys of a table's items begin with: their space, and the table's number."""
MICROSECONDS: Final = 1_000_000
BLOCK_BYTES: Final = 256 << 10
FILE_BYTES: Final = 8 << 20
FILE_MICROSECONDS: Final = 24 * 3600 * MICROSECONDS
"""A log file that has grown beyond this, or is older, is not appended to: it can be dropped as a
whole when nobody needs it any more."""
COMPRESSION: Final = 1

_HEADER: Final = struct.Struct("<IIQQ")
"""How many bytes follow, their checksum, the first and the last stamp in them."""

Place = bytes
Change = tuple[Place, bytes | None]
"""Where an item lies behind its table's number, and its stored value; None if it was deleted."""
Commit = tuple[int, list[Change]]

_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(list[tuple[int, list[tuple[bytes, bytes | None]]]])


class Block(NamedTuple):
    first: int
    last: int
    content: bytes

    def commits(self) -> list[Commit]:
        return _decoder.decode(zlib_ng.decompress(self.content))


class RecoveryLog:
    """What follows tables. `stamp` and `keep` are called by whoever commits, in turn; `flush` by
    any thread."""

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
        """Which tables are followed from now on: the prefixes of their items, and their ids."""
        self._followed = dict(tables)

    def follow_everything(self, is_on: bool) -> None:
        """Keep all keys of all commits from now on, or no longer."""
        self._follows_everything = is_on

    def latest(self) -> int:
        """The moment up to which everything is decided: no later commit gets this stamp."""
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
        """Returns when all that is kept so far is safe in the archive."""
        with self._flushing:
            with self._lock:
                pending = self._pending[:]
            if not pending:
                return
            for table_id, commits in _by_table(pending, dict(self._followed)).items():
                self._append(table_id, commits)
            if self._follows_everything and (commits := list(_whole(pending))):
                self._append(EVERYTHING, commits)
            self._archive.sync()
            with self._lock:
                del self._pending[: len(pending)]

    def _append(self, table_id: str, commits: Sequence[Commit]) -> None:
        file = self._files.get(table_id)
        if file is None or self._is_full(file, commits[0][0]):
            # Never a file of an earlier process, whose end may be torn.
            file = new_log_file(table_id, commits[0][0])
        self._files.pop(table_id, None)
        self._archive.append(file, b"".join(pack_blocks(commits)))
        self._files[table_id] = file

    def _is_full(self, file: str, stamp: int) -> bool:
        is_old = stamp - first_stamp(file) > FILE_MICROSECONDS
        return is_old or self._archive.size(file) > FILE_BYTES


def stamp_of(reader: Reader) -> int:
    """The stamp of the last commit that a reader sees, if any had one."""
    return int.from_bytes(reader.get(STAMP_KEY) or b"", "big")


def log_prefix(table_id: str) -> str:
    return f"{LOGS}{table_id}/"


def new_log_file(table_id: str, first: int) -> str:
    """A name that no file has, for commits from a stamp on."""
    return f"{log_prefix(table_id)}{first:016x}-{os.urandom(4).hex()}"


def renamed_log_file(name: str) -> str:
    """Of the same table and the same first commit, with an end that nobody else has."""
    folder, _, file = name.rpartition("/")
    return f"{folder}/{file.partition('-')[0]}-{os.urandom(4).hex()}"


def commits_of(rows: Iterable[tuple[int, Place, bytes | None]]) -> list[Commit]:
    """Changes with their stamps, in any order, as commits in theirs."""
    commits: dict[int, Commit] = {}
    for stamp, place, value in rows:
        commit = commits.setdefault(stamp, (stamp, []))
        commit[1].append((bytes(place), None if value is None else bytes(value)))
    return [commits[stamp] for stamp in sorted(commits)]


def log_files(archive: Archive, table_id: str) -> list[tuple[int, str]]:
    """The log files of a table with their first stamps, in order."""
    return [(first_stamp(name), name) for name in archive.names(log_prefix(table_id))]


def first_stamp(file: str) -> int:
    """Of the commits in a log file."""
    return int(file.rpartition("/")[2].partition("-")[0], 16)


def read_log(archive: Archive, table_id: str, after: int, until: int) -> Iterator[list[Commit]]:
    """The commits of a table with after < stamp <= until, in order, those of a block at a time.

    A block from which nothing is wanted gives an empty list: whoever reads may pause there.
    """
    files = log_files(archive, table_id)
    seen = after
    for number, (first, name) in enumerate(files):
        following = files[number + 1][0] if number + 1 < len(files) else None
        if first > until:
            break
        if following is not None and following <= after and _ends_before(archive, name, after):
            continue
        for block in unpack_blocks(archive.get(name)):
            if block.last <= seen or block.first > until:
                yield []
                continue
            commits = [one for one in block.commits() if seen < one[0] <= until]
            if commits:
                seen = commits[-1][0]
            yield commits


def _ends_before(archive: Archive, name: str, stamp: int) -> bool:
    return all(block.last <= stamp for block in unpack_blocks(archive.get(name)))


def pack_blocks(commits: Sequence[Commit]) -> Iterator[bytes]:
    """Commits in blocks of a bounded size; one commit is never divided."""
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


def unpack_blocks(content: bytes) -> Iterator[Block]:
    """The blocks of a file, up to one that is torn."""
    offset = 0
    while offset + _HEADER.size <= len(content):
        length, checksum, first, last = _HEADER.unpack_from(content, offset)
        offset += _HEADER.size
        block = content[offset : offset + length]
        if len(block) < length or crc32(block) != checksum:
            return
        yield Block(first, last, block)
        offset += length


def cut_log(content: bytes, until: int) -> bytes:
    """A log file without the commits after a stamp."""
    pieces: list[bytes] = []
    for block in unpack_blocks(content):
        if block.first > until:
            continue
        kept = [commit for commit in block.commits() if commit[0] <= until]
        pieces.append(_pack_block(kept))
    return b"".join(pieces)


def _by_table(pending: Sequence[Changes], followed: Mapping[bytes, str]) -> dict[str, list[Commit]]:
    found: dict[str, list[Commit]] = {}
    for changes in pending:
        stamped = changes.get(STAMP_KEY)
        if stamped is None:
            continue
        stamp = int.from_bytes(stamped, "big")
        for key, value in changes.items():
            table_id = followed.get(key[:PREFIX_BYTES])
            if table_id is None:
                continue
            commits = found.setdefault(table_id, [])
            if not commits or commits[-1][0] != stamp:
                commits.append((stamp, []))
            commits[-1][1].append((key[PREFIX_BYTES:], value))
    return found


def _whole(pending: Sequence[Changes]) -> Iterator[Commit]:
    for changes in pending:
        stamped = changes.get(STAMP_KEY)
        if stamped is not None:
            yield int.from_bytes(stamped, "big"), list(changes.items())


def damaged(name: str) -> StorageError:
    return StorageError(f"{name} in the archive is damaged: its contents do not have its digest.")
