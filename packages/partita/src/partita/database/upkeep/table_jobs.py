"""The background jobs of tables: index backfill, TTL, shard roll-over, removing old data.

Each job does a piece of its work in one write batch, and returns True if there was any. Jobs store
no position: after a restart they find the index that is being backfilled, or the data that is to
be removed, and doing a piece twice does no harm. A job over a whole table starts once the change
that requires it is committed: by then the snapshot has every item that was decided before that
change, and the write path takes care of all later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from msgspec.structs import replace

from partita.database.logs.change_log.change_retention import trim_stream
from partita.database.logs.change_log.change_streams import all_streams, roll_over
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import DELETING
from partita.database.tables.definition.table_throughput import partition_count
from partita.database.upkeep import table_walk
from partita.database.upkeep.index_backfill import change_indexes
from partita.database.upkeep.table_walk import TableWalk
from partita.database.upkeep.ttl_expiry import expire_items, index_expiries
from partita.foundation.clock import Clock, Stopwatch
from partita.foundation.service_limits import CLIENT_TOKEN_SECONDS


class TableJobs:
    """The jobs of tables, of which each call of `work` does a piece."""

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
        self._other_jobs = other_jobs
        self._is_kept = is_kept
        self._walk = TableWalk(snapshot, stopwatch)

    def restart(self) -> None:
        """Start table scans again, because a commit was lost, perhaps with pieces of work."""
        self._walk.restart()

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
        pairs = islice(self._snapshot.range(prefix, prefix_end(prefix)), table_walk.PIECE_KEYS)
        keys = [key for key, _ in pairs]
        for key in keys:
            write_batch.delete(key)
        if len(keys) < table_walk.PIECE_KEYS:
            write_batch.delete(leftover[0])
        return True

    def _change_indexes(self, write_batch: WriteBatch) -> bool:
        return change_indexes(write_batch, self._catalog, self._walk, self._clock())

    def _index_expiries(self, write_batch: WriteBatch) -> bool:
        return index_expiries(write_batch, self._catalog, self._walk)

    def _expire_items(self, write_batch: WriteBatch) -> bool:
        return expire_items(
            write_batch, self._catalog, self._snapshot, self._clock(), table_walk.PIECE_KEYS
        )

    def _forget_tokens(self, write_batch: WriteBatch) -> bool:
        """Remove the client request tokens that are older than ten minutes."""
        oldest = table_layout.token_time_key(self._clock() - CLIENT_TOKEN_SECONDS)
        old = list(
            islice(self._snapshot.range(table_layout.TOKEN_TIMES, oldest), table_walk.PIECE_KEYS)
        )
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
            trim_stream(write_batch, self._snapshot, stream, table_walk.PIECE_KEYS)
            for stream in all_streams(self._snapshot)
        )
