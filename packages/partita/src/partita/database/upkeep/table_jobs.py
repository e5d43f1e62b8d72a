"""The background jobs of tables: index backfill, TTL, shard roll-over, removing old data.

Each job does a piece of its work in one write batch, and returns True if there was any. Jobs store
no position: after a restart they find the index that is being backfilled, or the data that is to
be removed, and doing a piece twice does no harm. A job over a whole table starts once the change
that requires it is committed: by then the snapshot has every item that was decided before that
change, and the write path takes care of all later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from partita.database.logs.change_log.change_retention import trim_stream
from partita.database.logs.change_log.change_streams import all_streams, roll_over
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import ACTIVE, CREATING, DELETING, Index, Table
from partita.database.tables.definition.table_throughput import partition_count
from partita.database.tables.expiry_time import expires_at
from partita.database.tables.index_entries import entry_of
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import StoredItem
from partita.database.tables.write_path import replace_entry
from partita.database.upkeep.ttl_expiry import expire_items
from partita.foundation.clock import Clock, Stopwatch
from partita.foundation.service_limits import CLIENT_TOKEN_SECONDS

PIECE_KEYS = 200
PIECE_SECONDS = 0.02
"""A piece of work ends after this many keys or this long, whichever comes first."""


class TableJobs:
    def __init__(
        self,
        catalog: TableCatalog,
        snapshot: Snapshot,
        clock: Clock,
        stopwatch: Stopwatch,
        other_jobs: Sequence[Callable[[WriteBatch], bool]] = (),
        is_kept: Callable[[bytes], bool] = lambda prefix: False,
    ) -> None:
        """`is_kept` is True for prefixes of deleted tables whose data is still being read."""
        self._catalog = catalog
        self._snapshot = snapshot
        self._clock = clock
        self._stopwatch = stopwatch
        self._other_jobs = other_jobs
        self._is_kept = is_kept
        self._visited: dict[tuple[int, str], bytes] = {}

    def restart(self) -> None:
        """Start table scans again, because a commit was lost, perhaps with pieces of work."""
        self._visited.clear()

    def work(self, write_batch: WriteBatch) -> bool:
        """Do one piece of the first job that has work; True if there was any."""
        jobs = (
            self._settle_deletions,
            self._remove_leftovers,
            self._change_indexes,
            self._index_expiries,
            self._expire_items,
            self._forget_tokens,
            self._roll_shards,
            self._trim_streams,
            *self._other_jobs,
        )
        return any(job(write_batch) for job in jobs)

    def _settle_deletions(self, write_batch: WriteBatch) -> bool:
        """Remove the tables whose DELETING phase is over."""
        deleted = [
            table
            for table in self._catalog
            if table.transition == DELETING and table.settles_at <= self._clock()
        ]
        for table in deleted:
            self._catalog.remove(write_batch, table)
        return bool(deleted)

    def _remove_leftovers(self, write_batch: WriteBatch) -> bool:
        """Remove some data of deleted tables and indexes."""
        leftovers = self._snapshot.range(table_layout.LEFTOVERS, prefix_end(table_layout.LEFTOVERS))
        for leftover in leftovers:
            prefix = table_layout.leftover_prefix(leftover[0])
            if not self._is_kept(prefix):
                break
        else:
            return False
        pairs = islice(self._snapshot.range(prefix, prefix_end(prefix)), PIECE_KEYS)
        keys = [key for key, _ in pairs]
        for key in keys:
            write_batch.delete(key)
        if len(keys) < PIECE_KEYS:
            write_batch.delete(leftover[0])
        return True

    def _change_indexes(self, write_batch: WriteBatch) -> bool:
        now = self._clock()
        for table in self._catalog:
            if table.status(now) != ACTIVE:
                continue
            for index in table.indexes:
                if index.status == CREATING:
                    committed = self._catalog.committed(table)
                    if committed and committed.index(index.name) == index:
                        self._fill(write_batch, table, index)
                    return True
                if index.status == DELETING:
                    self._drop(write_batch, table, index)
                    return True
        return False

    def _fill(self, write_batch: WriteBatch, table: Table, index: Index) -> None:
        """Backfill a new index: add the entries of the table's next items.

        The index becomes ACTIVE one piece after the last: by then all of its entries are committed.
        """

        def fill(key: bytes, stored: StoredItem) -> None:
            entry = entry_of(table, index, stored, table_layout.place_of(key))
            if entry and write_batch.get(entry.key) is None:
                replace_entry(write_batch, table, index, None, entry)

        if self._has_visited_all(write_batch, table, f"index {index.number}", fill):
            self._catalog.save(write_batch, table.with_index(replace(index, status=ACTIVE)))

    def _drop(self, write_batch: WriteBatch, table: Table, index: Index) -> None:
        for prefix in table_layout.index_prefixes(table.number, index.number):
            write_batch.put(table_layout.leftover_key(prefix), b"")
        kept = tuple(other for other in table.indexes if other.number != index.number)
        used = {name for other in kept for name, _ in other.key_attributes}
        used.update(table.key_names)
        types = {name: kind for name, kind in table.attribute_types.items() if name in used}
        self._catalog.save(write_batch, replace(table, indexes=kept, attribute_types=types))

    def _index_expiries(self, write_batch: WriteBatch) -> bool:
        """Add the existing items of a table to its expiry index, after TTL was enabled."""
        for table in self._catalog:
            if table.ttl_attribute is not None and not table.ttl_is_indexed:
                committed = self._catalog.committed(table)
                if committed and committed.ttl_changes == table.ttl_changes:
                    self._note_expiries(write_batch, table, table.ttl_attribute)
                return True
        return False

    def _note_expiries(self, write_batch: WriteBatch, table: Table, attribute: str) -> None:
        def note(key: bytes, stored: StoredItem) -> None:
            when = expires_at(attribute, stored.item)
            if when is not None:
                write_batch.put(
                    table_layout.expiry_key(table, when, table_layout.place_of(key)), b""
                )

        if self._has_visited_all(write_batch, table, f"expiries {table.ttl_changes}", note):
            self._catalog.save(write_batch, replace(table, ttl_is_indexed=True))

    def _expire_items(self, write_batch: WriteBatch) -> bool:
        return expire_items(write_batch, self._catalog, self._snapshot, self._clock(), PIECE_KEYS)

    def _forget_tokens(self, write_batch: WriteBatch) -> bool:
        """Remove the client request tokens that are older than ten minutes."""
        oldest = table_layout.token_time_key(self._clock() - CLIENT_TOKEN_SECONDS)
        old = list(islice(self._snapshot.range(table_layout.TOKEN_TIMES, oldest), PIECE_KEYS))
        for key, token in old:
            write_batch.delete(key)
            write_batch.delete(table_layout.token_key(token.decode()))
        return bool(old)

    def _roll_shards(self, write_batch: WriteBatch) -> bool:
        """Replace the shards of the next stream whose shards are too old, too full or too few."""
        for table in self._catalog:
            if table.stream is None:
                continue
            partitions = partition_count(write_batch, table)
            if rolled := roll_over(write_batch, table.name, table.stream, partitions):
                self._catalog.save(write_batch, replace(table, stream=rolled))
                return True
        return False

    def _trim_streams(self, write_batch: WriteBatch) -> bool:
        """Remove the changes of streams that are older than a day."""
        return any(
            trim_stream(write_batch, self._snapshot, stream, PIECE_KEYS)
            for stream in all_streams(self._snapshot)
        )

    def _has_visited_all(
        self,
        write_batch: WriteBatch,
        table: Table,
        job: str,
        visit: Callable[[bytes, StoredItem], None],
    ) -> bool:
        """Call `visit` for the next items of a table; True when there were no more items."""
        prefix = table_layout.items_prefix(table.number)
        last = self._visited.get((table.number, job))
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
        write_batch.after_merge(partial(self._note_visit, (table.number, job), visited))
        return visited is None

    def _note_visit(self, job: tuple[int, str], visited: bytes | None) -> None:
        if visited is None:
            self._visited.pop(job, None)
        else:
            self._visited[job] = visited
