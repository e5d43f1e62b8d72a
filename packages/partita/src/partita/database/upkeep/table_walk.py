"""A walk over all items of a table, in pieces that are short enough to run between requests.

The position is only in memory: after a restart, a walk starts again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import StoredItem
from partita.foundation.clock import Stopwatch

PIECE_KEYS = 200
PIECE_SECONDS = 0.02
"""A piece of work ends after this many keys or this long, whichever comes first."""


class TableWalk:
    """The positions of all walks, by table and job."""

    def __init__(self, snapshot: Snapshot, stopwatch: Stopwatch) -> None:
        self._snapshot = snapshot
        self._stopwatch = stopwatch
        self._positions: dict[tuple[int, str], bytes] = {}

    def restart(self) -> None:
        """Start all walks again, because a commit was lost, perhaps with pieces of work."""
        self._positions.clear()

    def has_visited_all(
        self,
        write_batch: WriteBatch,
        table: Table,
        job: str,
        visit: Callable[[bytes, StoredItem], None],
    ) -> bool:
        """Call `visit` for the next items of a table; True when there were no more items."""
        prefix = table_layout.items_prefix(table.number)
        last = self._positions.get((table.number, job))
        start = prefix if last is None else last + b"\x00"
        pairs = islice(self._snapshot.range(start, prefix_end(prefix)), PIECE_KEYS)
        deadline = self._stopwatch() + PIECE_SECONDS
        visited = None
        for key, _ in pairs:
            # Read from the write batch, which includes writes that the snapshot does not have yet.
            stored = load(write_batch, key)
            if stored:
                visit(key, stored)
            visited = key
            if self._stopwatch() > deadline:
                break
        write_batch.after_merge(partial(self._set_position, (table.number, job), visited))
        return visited is None

    def _set_position(self, walk: tuple[int, str], visited: bytes | None) -> None:
        if visited is None:
            self._positions.pop(walk, None)
        else:
            self._positions[walk] = visited
