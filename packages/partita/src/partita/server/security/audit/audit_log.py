"""The audit log: JSON lines, each with the digest of the line before it.

Lines are written to `audit.jsonl`. When it is full, it is renamed after the numbers of its first
and last lines, and the oldest file is deleted. The head file says where the log begins and ends,
and the database notes a position, too. A log that ends before these positions has lost lines. Then
the server writes an event that says so, and continues after the missing numbers, so that the gap
stays visible.

The head is written after each line, so after a kill it may be one line behind. A reserve file keeps
some space on the disk. When the disk is full, it is deleted, so that requests under way can still
be recorded; new requests that change something are refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Final, NamedTuple

from partita.database.storage.archive import sync
from partita.database.storage.sealing.keyring import Keyring
from partita.errors import PartitaError
from partita.foundation.service_limits import KB, MB
from partita.server.security.audit.audit_files import (
    CURRENT,
    HEAD,
    NEXT,
    RESERVE,
    all_files,
    lines_from_end,
    rotated,
)
from partita.server.security.audit.audit_head import (
    NOTHING,
    AuditHeadRefused,
    AuditPosition,
    head_content,
    read_head,
)

logger = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 64 * MB
FILES_MAX: Final = 10
RESERVE_BYTES: Final = 256 * KB
RETRY_SECONDS: Final = 1.0
SEQUENCE_MAX: Final = 2**53
"""A line with a higher number is not an event: no log will have as many."""
NO_HEAD: Final = "The head of the audit log is missing."
NOT_AN_EVENT: Final = "The last line of the audit log is not an event."
DAMAGED: Final = "AuditLogDamaged"
"""The name of an event that reports damage of the log."""


class AuditLog:
    def __init__(
        self,
        folder: Path,
        file_bytes_max: int = FILE_BYTES_MAX,
        files_max: int = FILES_MAX,
        keyring: Keyring | None = None,
        noted: AuditPosition | None = None,
    ) -> None:
        """`noted` is a position that the log is known to have reached."""
        self._folder = folder
        self._file_bytes_max = file_bytes_max
        self._files_max = files_max
        self._keyring = keyring
        self._tried_at = 0.0
        self._replacing = Lock()
        """Held while the current file is synced or replaced."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._position, damages = _continued(folder, keyring, noted)
            self._head = _opened(folder / HEAD, 0)
            self.save_head()
            # The old head says that the server has stopped. A power failure must not bring it back.
            os.fsync(self._head)
            self._file = _opened(folder / CURRENT, os.O_APPEND)
            self._size = os.fstat(self._file).st_size
            self._end_with_newline()
            sync(folder)
        except OSError as error:
            raise PartitaError(f"Cannot write to {folder}: {error.strerror}.") from error
        self._has_reserve = self._take_reserve()
        if keyring is not None and not keyring.seals_heads:
            keyring.refuse_plain_heads()
        self.damages: Final = damages
        """The damages of the log when it was opened; the caller records them as events."""
        for damage in damages:
            logger.error("%s: %s", folder, damage)

    @property
    def position(self) -> AuditPosition:
        return self._position

    @property
    def is_writable(self) -> bool:
        """True if a request that begins now can be recorded when it is done."""
        if not self._has_reserve and monotonic() - self._tried_at > RETRY_SECONDS:
            self._has_reserve = self._take_reserve()
        return self._has_reserve

    def append(self, event: dict[str, Any]) -> None:
        first, last, digest, _ = self._position
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
        self._position = AuditPosition(first, last + 1, hashlib.sha256(line).hexdigest())
        if self._size > self._file_bytes_max:
            try:
                self._rotate()
            except OSError as error:
                # The next line tries again.
                logger.error("The audit log cannot be rotated: %s.", error.strerror)
        self.save_head()

    def close(self) -> None:
        """Closes the log. The head then says that nothing follows, so later lines are forged."""
        self._position = self._position._replace(is_closed=True)
        self.save_head()
        with suppress(OSError):
            self.synced()
        os.close(self._file)
        os.close(self._head)

    def synced(self) -> AuditPosition:
        """Syncs the log and returns the position that is on the disk. May run on any thread."""
        with self._replacing:
            position = self._position
            os.fsync(self._file)
        return position

    def save_head(self) -> None:
        try:
            os.pwrite(self._head, head_content(self._position, self._keyring), 0)
        except OSError as error:
            logger.error("The head of the audit log cannot be written: %s.", error.strerror)

    def _write(self, line: bytes) -> None:
        """Writes a line completely, or raises and leaves nothing of it."""
        written = os.write(self._file, line)
        if written < len(line):
            os.ftruncate(self._file, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += len(line)

    def _rotate(self) -> None:
        files = rotated(self._folder)
        first = files[-1][1] + 1 if files else self._position.first
        last = self._position.last
        with self._replacing:
            os.fsync(self._file)
            # The new file is created first, because the disk may have no space for it.
            new = _opened(self._folder / NEXT, os.O_APPEND | os.O_TRUNC)
            os.rename(self._folder / CURRENT, self._folder / f"audit-{first:012}-{last:012}.jsonl")
            os.rename(self._folder / NEXT, self._folder / CURRENT)
            os.close(self._file)
            self._file, self._size = new, 0
            sync(self._folder)
        kept = rotated(self._folder)
        for _, dropped, path in kept[: -self._files_max]:
            self._position = self._position._replace(first=dropped + 1)
            self.save_head()
            # The head must be on the disk before the file is deleted. With the old head after a
            # power failure, its lines would seem to be missing.
            os.fsync(self._head)
            path.unlink(missing_ok=True)

    def _end_with_newline(self) -> None:
        """Removes the incomplete line that a crash may have left at the end."""
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


class AuditLine(NamedTuple):
    """A line of the log that is an event."""

    sequence: int
    previous: str
    """The digest of the line before it, as this line states it."""
    digest: str
    damage: str
    """The damage that this event reports, or an empty text."""


def _parsed(line: bytes) -> AuditLine | None:
    try:
        event = json.loads(line)
        sequence, previous = int(event["sequence"]), str(event["previousDigest"])
        is_damage = event.get("eventName") == DAMAGED
        damage = str(event["serviceEventDetails"]["reason"]) if is_damage else ""
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    if not 0 < sequence <= SEQUENCE_MAX:
        return None
    return AuditLine(sequence, previous, hashlib.sha256(line).hexdigest(), damage)


def _events_from_end(folder: Path) -> Iterator[AuditLine | None]:
    """Yields the complete lines of all files, last first; None for a line that is not an event."""
    for path in reversed(all_files(folder)):
        with path.open("rb") as file:
            end = file.seek(0, 2)
            is_torn = end > 0 and os.pread(file.fileno(), 1, end - 1) != b"\n"
        for line in lines_from_end(path):
            if is_torn:
                is_torn = False
                continue
            yield _parsed(line + b"\n")


def _continued(
    folder: Path, keyring: Keyring | None, noted: AuditPosition | None
) -> tuple[AuditPosition, list[str]]:
    """Returns the position at which the log continues, and the damages of its end as sentences."""
    damages: list[str] = []
    head: AuditPosition | None = None
    try:
        head = read_head(folder, keyring)
        # A server that was killed while it created the log has written neither line nor head.
        if head is None and (noted is not None or any(_events_from_end(folder))):
            damages.append(NO_HEAD)
    except AuditHeadRefused as error:
        damages.append(str(error))
    positions = [position for position in (head, noted) if position]
    expected_end = max(positions, key=lambda position: position.last, default=None)
    last = line_at_end = None
    for line in _events_from_end(folder):
        if line is None:
            if last is None and NOT_AN_EVENT not in damages:
                damages.append(NOT_AN_EVENT)
            continue
        last, line_at_end = last or line, line
        if expected_end is None or line.sequence <= expected_end.last:
            break
    if expected_end is None:
        if last is None:
            return AuditPosition(1, 0, NOTHING), damages
        return AuditPosition(_first(folder), last.sequence, last.digest), damages
    first = expected_end.first if head is None else head.first
    if last is None or line_at_end is None or last.sequence < expected_end.last:
        missing = first if last is None else last.sequence + 1
        if missing <= expected_end.last:
            damages.append(f"Events {missing} to {expected_end.last} are missing.")
        return AuditPosition(first, expected_end.last, expected_end.digest), damages
    is_first = (
        expected_end.last == 0
        and line_at_end.sequence == 1
        and line_at_end.previous == expected_end.digest
    )
    if not is_first and (line_at_end.sequence, line_at_end.digest) != (
        expected_end.last,
        expected_end.digest,
    ):
        damages.append(f"Event {expected_end.last} was changed or removed.")
    if last.sequence == expected_end.last:
        return AuditPosition(first, expected_end.last, expected_end.digest), damages
    if expected_end is head and head.is_closed:
        damages.append(
            f"Events {expected_end.last + 1} to {last.sequence} were added after the server "
            "had stopped."
        )
    return AuditPosition(first, last.sequence, last.digest), damages


def _first(folder: Path) -> int:
    """Returns the number of the first event in the files."""
    for path in all_files(folder):
        with path.open("rb") as file:
            for line in map(_parsed, file):
                if line is not None:
                    return line.sequence
    return 1


def verify(folder: Path, keyring: Keyring | None = None) -> Iterator[str]:
    """Yields what is wrong with the log of a folder, as sentences; nothing for a complete log."""
    head: AuditPosition | None = None
    try:
        head = read_head(folder, keyring)
        if head is None:
            has_lines = any(path.stat().st_size for path in all_files(folder))
            yield NO_HEAD if has_lines else f"{folder} has no audit log."
            if not has_lines:
                return
    except AuditHeadRefused as error:
        yield str(error)
    # After a kill, there may still be a file that was about to be deleted.
    dropped = [path for _, last, path in rotated(folder) if head is not None and last < head.first]
    files = [path for path in all_files(folder) if path not in dropped]
    expected = _first(folder) if head is None else head.first
    digest = NOTHING if expected == 1 else ""
    for path in files:
        with path.open("rb") as file:
            for number, content in enumerate(file, 1):
                place = f"{path.name}, line {number}"
                line = _parsed(content)
                if line is None:
                    yield f"{place}: this is not an event."
                    digest = hashlib.sha256(content).hexdigest()
                    expected += 1
                    continue
                if line.sequence > expected:
                    missing = f"{expected} to {line.sequence - 1} are"
                    if line.sequence == expected + 1:
                        missing = f"{expected} is"
                    yield f"{place}: it is event {line.sequence}, and {missing} missing before it."
                elif line.sequence < expected:
                    yield f"{place}: it is event {line.sequence}, and {expected} is missing."
                elif digest and line.previous != digest:
                    yield f"{place}: the event before it, {expected - 1}, has been changed."
                if line.damage:
                    yield f"{place}: the server found, when it started: {line.damage}"
                expected, digest = line.sequence + 1, line.digest
                if head is not None and line.sequence == head.last and digest != head.digest:
                    yield f"Event {head.last} has been changed; it was the last when this began."
    if head is not None and expected <= head.last:
        yield f"Events {expected} to {head.last} are missing at the end."
