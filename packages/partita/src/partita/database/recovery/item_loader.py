"""Bulk loading of a table that nobody reads yet, for restores and imports.

If the engine allows it, pairs go straight into the tree in large commits, past the write-ahead log,
which would only write them a second time. A crash loses the pairs of the last commit; the restore
or import then continues behind the last pair that was stored, or begins again.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from typing import Any, Final

from partita.database.recovery.recovery_context import COMMITTED, RecoveryContext
from partita.database.storage.engine import BulkLoadable, BulkTreeLoad, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.bulk_load import Pair
from partita.database.tables.definition.table_schema import Table

COMMIT_BYTES: Final = 8 << 20

Steps = Generator["Future[Any] | None", Any, None]


class ItemLoader:
    """Loads pairs into one table. Callers call `stop` in a `finally`."""

    def __init__(self, work: RecoveryContext, table: Table) -> None:
        self._work = work
        prefix = table_layout.items_prefix(table.number)
        is_new = next(work.snapshot.range(prefix, prefix_end(prefix)), None) is None
        self._loads = work.loads if is_new else None
        """None once a pair went through the log, and for a table that has items already.

        A later pair for the same key that went straight into the tree would be overwritten when
        the log is checkpointed.
        """
        self._load: BulkTreeLoad | None = None
        self._size = 0

    def put(self, pairs: Sequence[Pair], last: Sequence[Pair] = ()) -> Steps:
        """Stores pairs; `last` are pairs that belong to the same commit, such as counts so far."""
        load = yield from self._open_load(last)
        if load is None or self._loads is None:
            yield from self._put_logged((*pairs, *last))
            return
        load.put(pairs)
        self._size += sum(len(key) + len(value) for key, value in pairs)
        if self._size > COMMIT_BYTES:
            yield from self._finish_load(self._loads, last)
        else:
            yield None

    def _open_load(
        self, last: Sequence[Pair]
    ) -> Generator[Future[Any] | None, Any, BulkTreeLoad | None]:
        """Returns the load that takes the next pairs; None if they go through the log."""
        while self._loads is not None:
            if self._work.log.follows_everything:
                # `partita backup` is running, and sees changes only through the log.
                yield from self._finish_load(self._loads, last)
                self._loads = None
            elif self._load is not None:
                return self._load
            else:
                self._load = self._loads.begin_load()
                if self._load is None:
                    yield self._work.run(self._loads.wait_for_load)
        return None

    def finish(self, last: Sequence[Pair] = ()) -> Generator[Future[Any] | None, Any, WriteBatch]:
        """Waits until all pairs are durable and readable; returns the next write batch."""
        if self._loads is not None:
            yield from self._finish_load(self._loads, last)
        if last:
            self._loads = None
        yield from self._put_logged(last)
        write_batch: WriteBatch = yield COMMITTED
        return write_batch

    def _finish_load(self, loads: BulkLoadable, last: Sequence[Pair]) -> Steps:
        if self._load is None:
            return
        self._load.put(last)
        yield self._work.run(self._load.finish)
        load, self._load, self._size = self._load, None, 0
        loads.end_load(load)

    def _put_logged(self, pairs: Sequence[Pair]) -> Steps:
        write_batch = yield None
        for key, value in pairs:
            write_batch.put(key, value)

    def stop(self) -> None:
        """Abandons a load that is not finished."""
        if self._load is not None and self._loads is not None:
            self._load.stop()
            self._loads.end_load(self._load)
            self._load = None
