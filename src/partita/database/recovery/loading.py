"""Pairs on their way into a table that nobody reads yet, straight into the tree where that is
possible: in large commits, past the write-ahead log, whose contents would only follow them there.

A crash loses the pairs of the last commit, and no others: whoever loads begins behind what is
there, or anew.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from functools import partial
from time import sleep
from typing import Any, Final

from partita.database.recovery.tasks import Workplace
from partita.database.storage.engine import Load
from partita.database.tables.bulk_load import Pair

COMMIT_BYTES: Final = 8 << 20
WAIT_SECONDS: Final = 0.002

Steps = Generator["Future[Any] | None", Any, None]


class Loader:
    """Used in a `try`, with `stop` in its `finally`."""

    def __init__(self, work: Workplace) -> None:
        self._work = work
        self._load: Load | None = None
        self._size = 0

    def put(self, pairs: Sequence[Pair], last: Sequence[Pair] = ()) -> Steps:
        """`last` are written with each commit in their newest form: figures."""
        loads = self._work.loads
        if loads is None:
            write_batch = yield None
            for key, value in (*pairs, *last):
                write_batch.put(key, value)
            return
        while self._load is None:
            self._load = loads.begin_load()
            if self._load is None:
                yield self._work.run(partial(sleep, WAIT_SECONDS))
        self._load.put(pairs)
        self._size += sum(len(key) + len(value) for key, value in pairs)
        if self._size > COMMIT_BYTES:
            yield from self.finish(last)
        else:
            yield None

    def finish(self, last: Sequence[Pair] = ()) -> Steps:
        """Until all that was put is safe, and seen."""
        load, loads = self._load, self._work.loads
        if load is None or loads is None:
            if last:
                yield from self._put_last(last)
            return
        load.put(last)
        yield self._work.run(load.finish)
        self._load, self._size = None, 0
        loads.end_load(load)

    def _put_last(self, last: Sequence[Pair]) -> Steps:
        write_batch = yield None
        for key, value in last:
            write_batch.put(key, value)

    def stop(self) -> None:
        """Give up what is not finished."""
        if self._load is not None and self._work.loads is not None:
            self._load.stop()
            self._work.loads.end_load(self._load)
            self._load = None
