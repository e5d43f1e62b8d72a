"""The files of the audit log: JSON lines, each with the digest of the one before it.

`audit.jsonl` is written; when it is full it is renamed after the numbers of its first and last
line, and the oldest goes. `head` says where the log begins and ends, so that lines missing at
either end show too. A small reserve on the disk is given up when the disk is full: what is under
way can still be written down, and nothing more is begun.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from partita.errors import PartitaError
from partita.limits import KB, MB

logger = logging.getLogger(__name__)

CURRENT, HEAD, RESERVE = "audit.jsonl", "head", "reserve"
FILE_BYTES_MAX: Final = 64 * MB
FILES_MAX: Final = 10
RESERVE_BYTES: Final = 256 * KB
RETRY_SECONDS: Final = 1.0
NOTHING: Final = "0" * 64
"""The digest before the first line."""


class Position(NamedTuple):
    first: int
    """The number of the first line that is kept."""
    last: int
    digest: str
    """Of the last line."""


class AuditLog:
    def __init__(
        self, folder: Path, file_bytes_max: int = FILE_BYTES_MAX, files_max: int = FILES_MAX
    ) -> None:
        self._folder = folder
        self._file_bytes_max = file_bytes_max
        self._files_max = files_max
        self._tried_at = 0.0
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._position = _last_position(folder)
            self._file = _opened(folder / CURRENT, os.O_APPEND)
            self._head = _opened(folder / HEAD, 0)
            self._size = os.fstat(self._file).st_size
            self._end_with_newline()
        except OSError as error:
            raise PartitaError(f"Cannot write to {folder}: {error.strerror}.") from error
        self._has_reserve = self._take_reserve()

    @property
    def is_writable(self) -> bool:
        """Whether what is begun now can be written down when it is done."""
        if not self._has_reserve and monotonic() - self._tried_at > RETRY_SECONDS:
            self._has_reserve = self._take_reserve()
        return self._has_reserve

    def append(self, event: dict[str, Any]) -> None:
        first, last, digest = self._position
        numbered = {**event, "sequence": last + 1, "previousDigest": digest}
        line = json.dumps(numbered, separators=(",", ":")).encode() + b"\n"
        try:
            self._write(line)
        except OSError as error:
            logger.error("The audit log cannot be written: %s.", error.strerror)
            self._give_up_reserve()
            try:
                self._write(line)
            except OSError:
                logger.error("An event is lost: %s", line.decode())
                return
        self._position = Position(first, last + 1, hashlib.sha256(line).hexdigest())
        if self._size > self._file_bytes_max:
            self._rotate()
        self._save_head()

    def close(self) -> None:
        os.close(self._file)
        os.close(self._head)

    def _write(self, line: bytes) -> None:
        """A line, whole or not at all."""
        written = os.write(self._file, line)
        if written < len(line):
            os.ftruncate(self._file, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += len(line)

    def _save_head(self) -> None:
        try:
            os.pwrite(self._head, json.dumps(self._position).ljust(128).encode(), 0)
        except OSError as error:
            logger.error("The head of the audit log cannot be written: %s.", error.strerror)

    def _rotate(self) -> None:
        files = rotated(self._folder)
        first = files[-1][1] + 1 if files else self._position.first
        last = self._position.last
        os.rename(self._folder / CURRENT, self._folder / f"audit-{first:012}-{last:012}.jsonl")
        os.close(self._file)
        self._file = _opened(self._folder / CURRENT, os.O_APPEND)
        self._size = 0
        kept = rotated(self._folder)
        for _, dropped, path in kept[: -self._files_max]:
            self._position = self._position._replace(first=dropped + 1)
            self._save_head()
            path.unlink(missing_ok=True)

    def _end_with_newline(self) -> None:
        """A crash in the middle of a line leaves a part, which is no event: it is cut off."""
        end = os.lseek(self._file, 0, os.SEEK_END)
        content = os.pread(self._file, min(end, MB), max(0, end - MB))
        if content and not content.endswith(b"\n"):
            whole = end - len(content) + content.rfind(b"\n") + 1
            os.ftruncate(self._file, whole)
            self._size = whole

    def _take_reserve(self) -> bool:
        self._tried_at = monotonic()
        path = self._folder / RESERVE
        try:
            if path.exists() and path.stat().st_size == RESERVE_BYTES:
                return True
            with path.open("wb") as file:
                file.write(os.urandom(RESERVE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            return False
        return True

    def _give_up_reserve(self) -> None:
        self._has_reserve = False
        self._tried_at = monotonic()
        (self._folder / RESERVE).unlink(missing_ok=True)


def _opened(path: Path, flags: int) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | flags, 0o600)


def rotated(folder: Path) -> list[tuple[int, int, Path]]:
    """Full files, the oldest first, with the numbers of their first and last lines."""
    found = []
    for path in folder.glob("audit-*-*.jsonl"):
        parts = path.stem.split("-")
        if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
            found.append((int(parts[1]), int(parts[2]), path))
    return sorted(found)


def _last_position(folder: Path) -> Position:
    """Where the log ends: what its last line says, for the head may be a line behind."""
    head = read_head(folder) or Position(1, 0, NOTHING)
    for path in (folder / CURRENT, *(path for _, _, path in reversed(rotated(folder)))):
        last = _last_line(path)
        if last is not None:
            number = json.loads(last)["sequence"]
            return Position(head.first, number, hashlib.sha256(last).hexdigest())
    return head


def _last_line(path: Path) -> bytes | None:
    last = None
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    last = line
    return last


def read_head(folder: Path) -> Position | None:
    try:
        return Position(*json.loads((folder / HEAD).read_bytes() or b'[1, 0, ""]'))
    except (OSError, ValueError, TypeError):
        return None


def verify(folder: Path) -> Iterator[str]:
    """What is wrong with the log of a folder, in sentences; nothing when all lines are there."""
    head = read_head(folder)
    if head is None:
        yield f"{folder} has no audit log."
        return
    expected, digest = head.first, NOTHING if head.first == 1 else ""
    for path in (*(path for _, _, path in rotated(folder)), folder / CURRENT):
        if not path.exists():
            continue
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                place = f"{path.name}, line {number}"
                try:
                    event = json.loads(line)
                    sequence, previous = event["sequence"], event["previousDigest"]
                except (ValueError, KeyError, TypeError):
                    yield f"{place}: this is not an event."
                    digest = hashlib.sha256(line).hexdigest()
                    expected += 1
                    continue
                if sequence != expected:
                    yield f"{place}: it is event {sequence}, and {expected} is missing before it."
                elif digest and previous != digest:
                    yield f"{place}: the event before it, {expected - 1}, has been changed."
                expected, digest = sequence + 1, hashlib.sha256(line).hexdigest()
    if expected <= head.last:
        yield f"Events {expected} to {head.last} are missing at the end."
    elif expected == head.last + 1 and digest != head.digest:
        yield f"The last event, {head.last}, has been changed."
