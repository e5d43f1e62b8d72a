"""A run of `partita metrics migrate`: calls the invoker again and again, and counts what becomes of
the executions. Those of an earlier run, which was killed, are waited for first."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import compress
from time import monotonic
from typing import TypeVar

from metric_catalogue.failures import DatabaseUnavailable
from metric_catalogue.mariadb.catalogue import MariaDBCatalogue
from metric_catalogue.mariadb.connections import LockHeld
from metric_catalogue.mariadb.rows import MIGRATED
from metric_catalogue.migration.counts import Counts
from metric_catalogue.migration.state_machine import InvokerFailed, Machine, Started
from metric_catalogue.migration.to_dynamodb import IMPORTED

logger = logging.getLogger(__name__)

TRIES_MAX = 3
POLL_SECONDS = 0.2
AWAY_SECONDS_MAX = 300.0
"""For how long a database that is being restarted is waited for."""
COUNT_MIGRATED = f"SELECT COUNT(*) AS count FROM metrics WHERE migratedToDynamoDB = '{MIGRATED}'"
Show = Callable[[Counts], None]
T = TypeVar("T")


class Run:
    def __init__(self, machine: Machine, mariadb: MariaDBCatalogue, show: Show) -> None:
        self.counts = Counts()
        self._machine = machine
        self._mariadb = mariadb
        self._show = show
        self._failures: Counter[str] = Counter()

    async def begin(self) -> None:
        """Returns when no metric is left that can be migrated."""
        await self._count_skipped()
        running = await self._machine.running()
        await self._finish([Started(arn, "") for arn in running])
        await self.go_on()

    async def go_on(self) -> None:
        while started := await self._patiently(self._invoke):
            await self._finish(started)
        await self._count_skipped()

    async def _invoke(self) -> list[Started]:
        return await self._machine.invoke(self.counts.errors)

    async def _count_skipped(self) -> None:
        """Metrics that are migrated, but were not by this run."""
        found = await self._patiently(lambda: self._mariadb.database.rows(COUNT_MIGRATED))
        self.counts.skipped = max(0, int(found[0]["count"]) - len(self.counts.imported))

    async def _finish(self, started: list[Started]) -> None:
        waiting = {one.arn for one in started}
        while waiting:
            quiet = sorted(waiting - await self._machine.running())
            has_ended = await asyncio.gather(*(self._count(arn) for arn in quiet))
            waiting -= set(compress(quiet, has_ended))
            self._show(self.counts)
            if waiting:
                await asyncio.sleep(POLL_SECONDS)

    async def _count(self, arn: str) -> bool:
        """Whether it has ended."""
        ended = await self._machine.ended(arn)
        if ended is None:
            return False
        if ended.outcome is None:
            await self._fail(ended.metric, arn)
            return True
        self._failures.pop(ended.metric, None)
        self.counts.errors.pop(ended.metric, None)
        if ended.outcome == IMPORTED:
            self.counts.imported.add(ended.metric)
        return True

    async def _fail(self, name: str, arn: str) -> None:
        self._failures[name] += 1
        self.counts.warnings += 1
        reason = await self._machine.reason(arn)
        # Who holds a row for seconds holds it for longer.
        if self._failures[name] >= TRIES_MAX or reason.startswith(LockHeld.__name__):
            self.counts.errors[name] = reason

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """A restart of MariaDB is waited for. What failed meanwhile failed because of it."""
        ends = monotonic() + AWAY_SECONDS_MAX
        while True:
            try:
                return await work()
            except (DatabaseUnavailable, InvokerFailed) as error:
                is_away = DatabaseUnavailable.__name__ in (type(error).__name__, _type_of(error))
                if not is_away or monotonic() > ends:
                    raise
                logger.warning("%s Waiting for it.", error)
                self._failures.clear()
            await asyncio.sleep(5 * POLL_SECONDS)


def _type_of(error: Exception) -> str:
    """Of the error in the invoker."""
    return str(error).partition(":")[0]
