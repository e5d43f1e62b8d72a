"""Re-encryption after a key rotation: rewrites every value with the new keys, in small pieces.

Old keys are destroyed after two rounds that find no value under them. One is not enough: a commit
that began before the rotation may be missing from the snapshot of the first round, but not from
that of the second. A process that is killed before then starts over.
"""

from __future__ import annotations

from partita.database.logs.change_log.change_streams import all_streams
from partita.database.logs.event_log.event_streams import EventStreams
from partita.database.storage.engine import ReencryptableEngine, Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import LAST_KEY, TableCatalog

CLEAN_ROUNDS = 2


class Reencryption:
    """The job that rewrites values after a key rotation."""

    def __init__(
        self,
        sealed: ReencryptableEngine,
        catalog: TableCatalog,
        event_streams: EventStreams,
        snapshot: Snapshot,
    ) -> None:
        self._sealed = sealed
        self._catalog = catalog
        self._event_streams = event_streams
        self._snapshot = snapshot
        self._is_tidy = False
        self._position = b""
        self._generation = 0
        self._clean_rounds = 0
        """The rounds in a row that found no value under old keys."""
        self._is_clean = True

    def work(self, write_batch: WriteBatch) -> bool:
        """Rewrite the next values; True while a rotation is in progress."""
        if not self._is_tidy:
            self._is_tidy = True
            self._tidy()
        if not self._sealed.is_rotating:
            return False
        if self._generation != self._sealed.generation:
            self._generation = self._sealed.generation
            self._position, self._clean_rounds, self._is_clean = b"", 0, True
        keys, position = self._sealed.outdated(self._position, LAST_KEY)
        for key in keys:
            value = write_batch.get(key)
            if value is not None:
                write_batch.put(key, value)
        self._is_clean = self._is_clean and not keys
        self._position = position or b""
        if position is None:
            self._clean_rounds = self._clean_rounds + 1 if self._is_clean else 0
            self._is_clean = True
            if self._clean_rounds == CLEAN_ROUNDS:
                self._sealed.retire()
        return True

    def _tidy(self) -> None:
        """Destroy the keys of deleted tables: a process may have been killed before it did."""
        numbers = {owner.number for owner in (*self._catalog, *self._event_streams)}
        numbers.update(stream.number for stream in all_streams(self._snapshot))
        for table in self._catalog:
            numbers.update(destination.log for destination in table.destinations)
        for leftover, _ in self._snapshot.range(
            table_layout.LEFTOVERS, prefix_end(table_layout.LEFTOVERS)
        ):
            numbers.add(table_layout.leftover_owner(leftover))
        last = int.from_bytes(self._snapshot.get(table_layout.NUMBERS_KEY) or b"", "big")
        self._sealed.retain(numbers, last)
