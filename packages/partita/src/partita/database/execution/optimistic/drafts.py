"""Drafts: optimistic concurrency control. A write counts if what it was decided on is unchanged.

A draft is the result of one run: a read set and a write set. Two kinds of requests are run like
this. Large requests are decided by another process, which asks for one value after the other; their
drafts (`ValueDraft`) compare values, when they are applied to a write batch. Requests to a database
that several servers share are run over what was fetched for a whole round; their drafts
(`RoundDraft`) compare versions, in the transaction that commits them. For both, a conflict means
that the request is decided again, with the time and the charges of its first run.

Counts and the sequence numbers of change logs are in the read set, but are not compared: every
write to a table changes them, so that any two writes would conflict. What a draft does to them is a
difference, which is added to their current values.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from partita.database.logs.change_log import change_log_layout as change_layout
from partita.database.logs.change_log.change_records import logged_later
from partita.database.operations.operation_context import ReadContext, Request, WriteContext
from partita.database.storage.engine import ConflictDetected, Reader
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.table_statistics import moved_statistics
from partita.errors import DynamoDBError

Seen = TypeVar("Seen")

NOT_COMPARED: Final = (table_layout.STATISTICS, change_layout.SEQUENCES)


class Draft(Generic[Seen]):
    """The read set and the write set of one run of a request."""

    def __init__(self) -> None:
        self.checks: dict[bytes, Seen] = {}
        """The part of the read set that must be unchanged: the value or version of each key, or its
        absence."""
        self.figures: dict[bytes, bytes | None] = {}
        """The part that is not compared: counts and sequence numbers as this run saw them."""
        self.changes: dict[bytes, bytes | None] = {}
        """The write set; None deletes."""


class ValueDraft(Draft[bytes | None]):
    """A draft that another process decided, on values that it asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: bytes | DynamoDBError = b""
        self.is_read_only = False
        self.free: set[bytes] = set()
        """Items that were read and were not held by a transaction in progress."""
        self.holds: list[bytes] = []
        """Items that are held until the draft is committed, because it is a transaction."""

    def note(self, key: bytes, value: bytes | None) -> None:
        """Add a value to the read set."""
        if key.startswith(NOT_COMPARED):
            self.figures[key] = value
        else:
            self.checks[key] = value

    def run_read(self, context: ReadContext, request: Request) -> bytes:
        """The handler of a read: confirms the answer, or raises ConflictDetected."""
        self.check(context.snapshot)
        return self._answered()

    def run_write(self, context: WriteContext, request: Request) -> bytes:
        """The handler of a write: applies the draft, or raises ConflictDetected."""
        self.apply(context.write_batch)
        return self._answered()

    def _answered(self) -> bytes:
        if isinstance(self.answer, DynamoDBError):
            raise self.answer
        return self.answer

    def check(self, reader: Reader) -> None:
        """Raise ConflictDetected if anything that is compared has changed."""
        changed = {key for key, value in self.checks.items() if reader.get(key) != value}
        if changed:
            raise ConflictDetected(changed)

    def apply(self, write_batch: WriteBatch) -> None:
        """Record this draft in a write batch as if it had been decided now; raises
        ConflictDetected."""
        self.check(write_batch)
        held = {key for key in self.free if write_batch.is_held(key)}
        if held:
            raise ConflictDetected(held)
        advanced = self._sequences_advanced(write_batch)
        for key, value in self.changes.items():
            space = key[:1]
            if value is None:
                write_batch.delete(key)
            elif space == table_layout.STATISTICS:
                latest = write_batch.get(key)
                write_batch.put(key, moved_statistics(self.figures[key], value, latest))
            elif space == change_layout.SEQUENCES:
                sequence = _sequence(value) + advanced[change_layout.stream_of(key)]
                write_batch.put(key, change_layout.pack_sequence(sequence))
            elif space == change_layout.CHANGES:
                by = advanced[change_layout.stream_of(key)]
                write_batch.put(*logged_later(key, value, by, write_batch.now()))
            else:
                write_batch.put(key, value)
        for key in self.holds:
            write_batch.hold(key)

    def _sequences_advanced(self, write_batch: WriteBatch) -> dict[bytes, int]:
        """The advance of each stream's sequence number since this draft read it."""
        return {
            change_layout.stream_of(key): _sequence(write_batch.get(key))
            - _sequence(self.figures[key])
            for key in self.changes
            if key.startswith(change_layout.SEQUENCES)
        }


def _sequence(value: bytes | None) -> int:
    return int.from_bytes(value or b"", "big")
