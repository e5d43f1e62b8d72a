"""Copies a database from a snapshot into a target: a data folder or PostgreSQL.

This is the only way in which whole databases are written: `partita restore` copies a backup's
snapshot, `partita storage copy` that of a folder or of PostgreSQL.

Source and target are read side by side, a piece at a time, and only differences are written. So an
interrupted copy continues where it was, and a second pass verifies that both are equal. Until
`finish`, the target is marked as incomplete, and no server opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from partita.database.recovery.chunk_manifests import CHUNKS, MANIFESTS
from partita.database.recovery.recovery_layout import record_key
from partita.database.storage.archive import Archive
from partita.database.storage.engine import Changes, Snapshot, prefix_end
from partita.database.storage.recovery_log import STAMP_KEY
from partita.database.tables import table_layout
from partita.errors import StorageError
from partita.foundation.service_limits import MB

Pair = tuple[bytes, bytes]

SPACES: Final = tuple(bytes([space]) for space in range(0x20))
"""The first bytes of all storage keys. A piece has keys of one space only, because PostgreSQL keeps
some spaces in tables of their own."""
PIECE_PAIRS: Final = 2000
PIECE_BYTES: Final = 8 * MB
NOT_COPIED: Final = (STAMP_KEY, record_key("base", ""), *table_layout.NOTES)
"""Prefixes of keys that `partita storage copy` leaves out. Logs are not copied, so a table with
point-in-time recovery loses its past and gets a new recovery base in the new place."""


class CopyTarget(Protocol):
    """A database that is being written by a copy."""

    @property
    def archive(self) -> Archive: ...

    def pairs(self, start: bytes, stop: bytes) -> list[Pair]:
        """The pairs that the target has already, with start <= key < stop."""
        ...

    def write(self, changes: Changes) -> None:
        """Writes a piece, whose keys are all of one space."""
        ...

    def finish(self) -> None:
        """Marks the target as complete: from now on servers may open it."""
        ...


class CopySummary(NamedTuple):
    """The number of pairs in the source, and of those that were written."""

    pairs: int
    written: int


def copy_snapshot(
    source: Snapshot,
    target: CopyTarget,
    after_piece: Callable[[int], None] = lambda pairs: None,
    not_copied: tuple[bytes, ...] = NOT_COPIED,
) -> CopySummary:
    """Makes the target equal to the source, except for keys with the prefixes `not_copied`."""
    pairs = written = 0
    for piece_pairs, changes in _differences(source, target, not_copied):
        pairs += piece_pairs
        if changes:
            target.write(changes)
            written += len(changes)
        after_piece(piece_pairs)
    return CopySummary(pairs, written)


def apply_commit(changes: Changes, target: CopyTarget) -> None:
    """Writes the changes of a later commit in the source."""
    by_space: dict[bytes, dict[bytes, bytes | None]] = {}
    for key, value in changes.items():
        if not _is_left_out(key, NOT_COPIED):
            by_space.setdefault(key[:1], {})[key] = value
    for piece in by_space.values():
        target.write(piece)


def copy_table_backups(source: Archive, target: Archive) -> None:
    """Copies the archive's chunks, then its manifests, which must not list missing chunks."""
    for prefix in (CHUNKS, MANIFESTS):
        for name in source.names(prefix):
            if not target.has(name):
                target.put(name, source.get(name))
    target.sync()


def verify_copy(
    source: Snapshot, target: CopyTarget, not_copied: tuple[bytes, ...] = NOT_COPIED
) -> None:
    """Raises StorageError unless the target is equal to the source."""
    for _, changes in _differences(source, target, not_copied):
        for key in changes:
            raise StorageError(f"The copy differs at {key[:40].hex()}: run it again.")


def _is_left_out(key: bytes, not_copied: tuple[bytes, ...]) -> bool:
    # The format is written by the target, when the copy is complete.
    return key == table_layout.FORMAT_KEY or key.startswith(not_copied)


def _differences(
    source: Snapshot, target: CopyTarget, not_copied: tuple[bytes, ...]
) -> Iterator[tuple[int, Changes]]:
    """Yields for each piece its number of pairs, and the changes that the target needs."""
    for space in SPACES:
        start, stop = space, prefix_end(space)
        while start < stop:
            piece = _piece(source.range(start, stop))
            end = piece[-1][0] + b"\x00" if _is_full(piece) else stop
            existing = dict(target.pairs(start, end))
            expected = {key: value for key, value in piece if not _is_left_out(key, not_copied)}
            existing.pop(table_layout.FORMAT_KEY, None)
            changes: dict[bytes, bytes | None] = {
                key: value for key, value in expected.items() if existing.get(key) != value
            }
            changes.update(dict.fromkeys(existing.keys() - expected.keys()))
            yield len(piece), changes
            start = end


def _piece(pairs: Iterator[Pair]) -> list[Pair]:
    piece: list[Pair] = []
    size = 0
    for key, value in pairs:
        piece.append((key, value))
        size += len(key) + len(value)
        if len(piece) == PIECE_PAIRS or size >= PIECE_BYTES:
            break
    return piece


def _is_full(piece: list[Pair]) -> bool:
    size = sum(len(key) + len(value) for key, value in piece)
    return len(piece) == PIECE_PAIRS or size >= PIECE_BYTES
