"""Drafts of a round: writes decided on fetched data, each on top of the drafts before it.

A draft notes the versions of the rows that it read, absence included, and which earlier drafts it
depends on. Counts and the sequence numbers of change logs are not compared; a commit adds by how
much its drafts change them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Set

from partita.database.execution.optimistic.drafts import Draft
from partita.database.logs.change_log import change_log_layout as change_layout
from partita.database.recovery.recovery_layout import PROGRESS
from partita.database.shared.rounds.fetched_view import (
    CATALOG_SPACES,
    COUNTED,
    UNSHARED,
    FetchedView,
)
from partita.database.storage.engine import prefix_end
from partita.database.storage.postgresql.trip_plans import CommitPlan, LogEntry
from partita.database.storage.recovery_log import PREFIX_BYTES
from partita.database.storage.write_batch import LatestState, WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.table_statistics import collection_size_in, statistics_delta
from partita.foundation.clock import Clock


class RoundDraft(Draft[int]):
    """A draft of a round, decided on versions that were fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.rests_on: set[RoundDraft] = set()
        """The drafts of the same round whose changes this one has seen."""

    @property
    def changes_catalog(self) -> bool:
        return any(key.startswith(CATALOG_SPACES) for key in self.changes)

    @property
    def only_shows_progress(self) -> bool:
        """True if the only catalog rows in it show the progress of a backup or an import. Such rows
        are not kept in memory, so that the catalog keeps its version."""
        catalog = [key for key in self.changes if key.startswith(CATALOG_SPACES)]
        return all(key.startswith(PROGRESS) for key in catalog)

    def touches(self, keys: set[bytes]) -> bool:
        return not (keys.isdisjoint(self.checks) and keys.isdisjoint(self.changes))


class RoundState(LatestState):
    """The state after all drafts of a round so far, over fetched data."""

    def __init__(self, clock: Clock, view: FetchedView, *, reads_sequences: bool = False) -> None:
        super().__init__(clock)
        self._view = view
        self._reads_sequences = reads_sequences
        self._changes: dict[bytes, bytes | None] = {}
        self._authors: dict[bytes, RoundDraft] = {}
        self._draft = RoundDraft()
        self._conflicting_items: Set[bytes] = frozenset()

    def begin(self, conflicting_items: Set[bytes] = frozenset()) -> WriteBatch:
        """Begin a draft. `conflicting_items` are those of its `SharedRequest`."""
        self._draft = RoundDraft()
        self._conflicting_items = conflicting_items
        return WriteBatch(self)

    def end(self, write_batch: WriteBatch | None) -> RoundDraft:
        """End a draft. The changes of its write batch are seen by the drafts after it; a write that
        was refused has no write batch, and changes nothing."""
        draft = self._draft
        if write_batch is not None:
            draft.changes = write_batch.changes
            for key, value in draft.changes.items():
                if not key.startswith(UNSHARED):
                    self._changes[key] = value
                    self._authors[key] = draft
        return draft

    def get(self, key: bytes) -> bytes | None:
        draft = self._draft
        if key.startswith(COUNTED):
            draft.figures[key] = value = self._view.figure(key)
            return value
        if key.startswith(change_layout.SEQUENCES):
            value = self._view.figure(key) if self._reads_sequences else None
            draft.figures[key] = value
            return value
        if key in self._changes:
            draft.rests_on.add(self._authors[key])
            return self._changes[key]
        row = self._view.row(key)
        draft.checks[key] = self._view.version(key)
        return None if row is None else row.value

    def is_held(self, key: bytes) -> bool:
        return key in self._conflicting_items


def conflicting_drafts(drafts: Iterable[RoundDraft], keys: set[bytes]) -> set[RoundDraft]:
    """The drafts that touch changed keys, and those that depend on such drafts."""
    lost: set[RoundDraft] = set()
    for draft in drafts:
        if draft.touches(keys) or not lost.isdisjoint(draft.rests_on):
            lost.add(draft)
    return lost


def add_draft(
    plan: CommitPlan, draft: RoundDraft, followed: Container[bytes], *, is_exclusive: bool = False
) -> None:
    """Add a draft to a commit, after the drafts that were decided before it.

    `followed` are the prefixes of items whose changes are logged for recovery.
    """
    plan.checks.update(draft.checks)
    logged = _logged_so_far(plan)
    for key, value in draft.changes.items():
        space = key[:1]
        if space == table_layout.STATISTICS:
            _add_counts(plan, key, draft.figures.get(key), value)
        elif space == table_layout.COLLECTIONS:
            _add_collection_size(plan, key, draft.figures.get(key), value)
        elif space == change_layout.SEQUENCES and is_exclusive:
            plan.sequences[key] = None if value is None else int.from_bytes(value, "big")
        elif space == change_layout.SEQUENCES:
            continue
        elif space == change_layout.CHANGES and not is_exclusive and value is not None:
            plan.log_entries.append(_log_entry(key, value, draft, logged))
        else:
            plan.changes[key] = value
            if key[:PREFIX_BYTES] in followed:
                plan.followed[key] = value
            if space == table_layout.LEFTOVERS and value is None:
                _add_leftover(plan, table_layout.leftover_prefix(key))


def _add_counts(plan: CommitPlan, key: bytes, seen: bytes | None, value: bytes | None) -> None:
    if value is not None:
        items, size = plan.counts.get(key, (0, 0))
        more_items, more_bytes = statistics_delta(seen, value)
        plan.counts[key] = items + more_items, size + more_bytes


def _add_collection_size(
    plan: CommitPlan, key: bytes, seen: bytes | None, value: bytes | None
) -> None:
    items, size = plan.counts.get(key, (0, 0))
    plan.counts[key] = items, size + collection_size_in(value) - collection_size_in(seen)


def _add_leftover(plan: CommitPlan, prefix: bytes) -> None:
    """Counts and sequence numbers under a prefix are removed with the last of its rows."""
    if prefix.startswith(COUNTED):
        plan.removed_counts.append((prefix, prefix_end(prefix)))
    elif prefix.startswith(change_layout.SEQUENCES):
        plan.sequences[prefix] = None


def _logged_so_far(plan: CommitPlan) -> dict[bytes, int]:
    last: dict[bytes, int] = {}
    for entry in plan.log_entries:
        last[entry.log] = max(last.get(entry.log, 0), entry.number)
    return last


def _log_entry(key: bytes, value: bytes, draft: RoundDraft, logged: dict[bytes, int]) -> LogEntry:
    log = change_layout.SEQUENCES + change_layout.stream_of(key)
    base = int.from_bytes(draft.figures.get(log) or b"", "big")
    number = change_layout.change_sequence(key) - base + logged.get(log, 0)
    return LogEntry(log, change_layout.shard_prefix_of(key), number, value)
