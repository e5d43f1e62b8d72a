"""Drafts: optimistic concurrency control for writes that another process decides.

A draft is a write set, together with the read set that it was decided on. It is applied only if
everything that was read is still the same, including what did not exist; otherwise it is decided
again. Counts and the sequence numbers of change logs are not compared, because every write to a
table changes them: a draft is rebased onto their current values.
"""

from __future__ import annotations

from partita.database.changes import layout as change_layout
from partita.database.changes.log import logged_later
from partita.database.operations.context import WriteContext
from partita.database.storage.engine import Reader
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import layout
from partita.database.tables.statistics import moved_statistics

CARRIED_OVER = (layout.STATISTICS, change_layout.SEQUENCES)


class Overtaken(Exception):
    """Something in a draft's read set has changed: it has to be decided again."""


class ReadSet:
    """What a draft was decided on."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes | None] = {}
        self.free: set[bytes] = set()
        """Items that no transaction held at that time."""

    def check(self, reader: Reader) -> None:
        for key, value in self.values.items():
            if not key.startswith(CARRIED_OVER) and reader.get(key) != value:
                raise Overtaken


class Draft:
    """The write set: the changes of a write batch."""

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self.holds: list[bytes] = []


def apply_draft(draft: Draft, read_set: ReadSet, context: WriteContext) -> None:
    """Record a draft in the write batch as if it had been decided now."""
    write_batch = context.write_batch
    read_set.check(write_batch)
    if any(context.is_held(key) for key in read_set.free):
        raise Overtaken
    later = _sequences_later(draft, read_set, write_batch)
    for key, value in draft.changes.items():
        space = key[:1]
        if value is None:
            write_batch.delete(key)
        elif space == layout.STATISTICS:
            read, latest = read_set.values[key], write_batch.get(key)
            write_batch.put(key, moved_statistics(read, value, latest))
        elif space == change_layout.SEQUENCES:
            sequence = _sequence(value) + later[change_layout.stream_of(key)]
            write_batch.put(key, change_layout.pack_sequence(sequence))
        elif space == change_layout.CHANGES:
            by = later[change_layout.stream_of(key)]
            write_batch.put(*logged_later(key, value, by, write_batch.now()))
        else:
            write_batch.put(key, value)
    for key in draft.holds:
        write_batch.hold(key)


def _sequences_later(draft: Draft, read_set: ReadSet, write_batch: WriteBatch) -> dict[bytes, int]:
    """How far the sequence numbers of each stream have advanced since they were read."""
    return {
        change_layout.stream_of(key): _sequence(write_batch.get(key))
        - _sequence(read_set.values[key])
        for key in draft.changes
        if key.startswith(change_layout.SEQUENCES)
    }


def _sequence(value: bytes | None) -> int:
    return int.from_bytes(value or b"", "big")
