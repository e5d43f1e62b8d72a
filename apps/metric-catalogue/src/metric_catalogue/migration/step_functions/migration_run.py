"""A run of `partita metrics migrate`: calls the invoker until no metric is left, waits for the
executions that it starts, and counts how they end.

Executions of an earlier run that was killed are still running on the server, so the run waits for
those first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import compress
from time import monotonic
from typing import TypeVar

from metric_catalogue.metrics.catalogue_errors import DatabaseUnavailable
from metric_catalogue.migration.copy_to_dynamodb import IMPORTED
from metric_catalogue.migration.step_functions.migration_machine import (
    InvokerFailed,
    MigrationMachine,
    StartedExecution,
)
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_connections import LockTimeout
from metric_catalogue.stores.mariadb.metric_rows import MIGRATED
from partita_migrate.workspace.stage_progress import Progress

logger = logging.getLogger(__name__)

TRIES_MAX = 3
POLL_SECONDS = 0.2
AWAY_SECONDS_MAX = 300.0
"""How long a run waits for a MariaDB server that is being restarted."""
COUNT_MIGRATED = f"SELECT COUNT(*) AS count FROM metrics WHERE migratedToDynamoDB = '{MIGRATED}'"
T = TypeVar("T")


@dataclass
class MigrationCounts:
    """Counts the metrics: each is either imported, skipped or an error."""

    imported: set[str] = field(default_factory=set)
    skipped: int = 0
    """Metrics that an earlier run or a dual write has migrated."""
    warnings: int = 0
    """Attempts that failed, were cleaned up and repeated."""
    errors: dict[str, str] = field(default_factory=dict)
    """The reasons why metrics could not be migrated, by metric."""

    @property
    def processed(self) -> int:
        return len(self.imported) + self.skipped + len(self.errors)

    def show(self, progress: Progress, total: int) -> None:
        failed = f"{self.warnings} warnings, {len(self.errors)} errors"
        progress(f"Migrating, {failed}", self.processed, total)

    def lines(self) -> list[str]:
        totals = [
            f"processed {self.processed:>8}",
            f"imported  {len(self.imported):>8}",
            f"skipped   {self.skipped:>8}",
            f"warnings  {self.warnings:>8}",
            f"errors    {len(self.errors):>8}",
        ]
        return totals + [f"  {name}: {reason}" for name, reason in sorted(self.errors.items())]


class MigrationRun:
    """Migrates everything that can be migrated, and keeps the counts.

    A metric is an error after three failed attempts in this run; the next run tries it again.
    """

    def __init__(
        self,
        machine: MigrationMachine,
        mariadb: MariaDBCatalogue,
        show: Callable[[MigrationCounts], None],
    ) -> None:
        self.counts = MigrationCounts()
        self._machine = machine
        self._mariadb = mariadb
        self._show = show
        self._failures: Counter[str] = Counter()

    async def begin(self) -> None:
        """Waits for the executions of an earlier run, then migrates every metric that can be."""
        await self._count_skipped()
        running = await self._machine.running()
        await self._finish([StartedExecution(arn, "") for arn in running])
        await self.go_on()

    async def go_on(self) -> None:
        """Migrates what is not migrated, for example after a repair."""
        while started := await self._patiently(self._invoke):
            await self._finish(started)
        await self._count_skipped()

    async def _invoke(self) -> list[StartedExecution]:
        return await self._machine.invoke(self.counts.errors)

    async def _count_skipped(self) -> None:
        """Counts the metrics that are migrated, but not by this run."""
        rows = await self._patiently(lambda: self._mariadb.database.rows(COUNT_MIGRATED))
        self.counts.skipped = max(0, int(rows[0]["count"]) - len(self.counts.imported))

    async def _finish(self, started: list[StartedExecution]) -> None:
        waiting = {execution.arn for execution in started}
        while waiting:
            # One list of what runs is cheaper than asking for each of 500 executions.
            candidates = sorted(waiting - await self._machine.running())
            has_ended = await asyncio.gather(*(self._count(arn) for arn in candidates))
            waiting -= set(compress(candidates, has_ended))
            self._show(self.counts)
            if waiting:
                await asyncio.sleep(POLL_SECONDS)

    async def _count(self, arn: str) -> bool:
        """Counts the outcome of an execution. Returns whether it has ended."""
        ended = await self._machine.ended(arn)
        if ended is None:
            return False
        if ended.outcome is None:
            await self._fail(ended.metric, arn)
            return True
        # Earlier failures do not count any more: the metric is migrated.
        self._failures.pop(ended.metric, None)
        self.counts.errors.pop(ended.metric, None)
        if ended.outcome == IMPORTED:
            self.counts.imported.add(ended.metric)
        return True

    async def _fail(self, name: str, arn: str) -> None:
        self._failures[name] += 1
        self.counts.warnings += 1
        reason = await self._machine.reason(arn)
        # A session that has held a row for seconds will hold it longer: no further attempts.
        if self._failures[name] >= TRIES_MAX or reason.startswith(LockTimeout.__name__):
            self.counts.errors[name] = reason

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Repeats `work` while MariaDB is away, for up to five minutes.

        Executions that failed meanwhile failed because of it, so their attempts are forgotten."""
        ends = monotonic() + AWAY_SECONDS_MAX
        while True:
            try:
                return await work()
            except (DatabaseUnavailable, InvokerFailed) as error:
                # In the invoker's function the same error arrives as text: "type: message".
                names = (type(error).__name__, str(error).partition(":")[0])
                if DatabaseUnavailable.__name__ not in names or monotonic() > ends:
                    raise
                logger.warning("%s Waiting for it.", error)
                self._failures.clear()
            await asyncio.sleep(5 * POLL_SECONDS)
