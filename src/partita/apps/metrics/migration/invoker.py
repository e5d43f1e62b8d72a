"""The invoker of figure 5.14: takes 500 metrics that are not migrated, starts an execution of the
state machine for each, waits for all of them, and takes the next.

Executions are durable. After a kill, those that were under way are resumed and awaited first. A
metric that was left in migration without an execution gets one, which cleans it up.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from partita.apps.metrics.mariadb.catalogue import MariaDBCatalogue
from partita.apps.metrics.mariadb.rows import MIGRATED
from partita.apps.metrics.migration.counts import Counts
from partita.apps.metrics.migration.state_machine import Machine
from partita.apps.metrics.migration.to_dynamodb import IMPORTED

METRICS_AT_A_TIME = 500
TRIES_MAX = 3
SELECT_UNMIGRATED = (
    f"SELECT name FROM metrics m WHERE migratedToDynamoDB <> '{MIGRATED}' AND EXISTS "
    "(SELECT 1 FROM metric_versions v WHERE v.metric_id = m.id) ORDER BY id LIMIT %s"
)
COUNT_MIGRATED = f"SELECT COUNT(*) AS count FROM metrics WHERE migratedToDynamoDB = '{MIGRATED}'"
Show = Callable[[Counts], None]


class Invoker:
    def __init__(self, machine: Machine, mariadb: MariaDBCatalogue, show: Show) -> None:
        self.counts = Counts()
        self._machine = machine
        self._mariadb = mariadb
        self._show = show
        self._failures: Counter[str] = Counter()

    async def run(self) -> None:
        """Returns when no metric is left that can be migrated."""
        await self._count_skipped()
        await asyncio.gather(*[self._finish(arn) async for arn in self._machine.running()])
        await self.run_again()

    async def run_again(self) -> None:
        while names := await self._next():
            await self._execute(names)
        await self._count_skipped()

    async def _count_skipped(self) -> None:
        """Metrics that are migrated, but were not by this run."""
        migrated = int((await self._mariadb.database.rows(COUNT_MIGRATED))[0]["count"])
        self.counts.skipped = max(0, migrated - len(self.counts.imported))

    async def _next(self) -> list[str]:
        """No execution is under way now, so metrics in migration were left there by a kill."""
        given_up = [name for name, count in self._failures.items() if count >= TRIES_MAX]
        found = await self._mariadb.database.rows(
            SELECT_UNMIGRATED, METRICS_AT_A_TIME + len(given_up)
        )
        names = [row["name"] for row in found]
        return [name for name in names if name not in given_up][:METRICS_AT_A_TIME]

    async def _execute(self, names: list[str]) -> None:
        await asyncio.gather(*(self._migrate(name) for name in names))

    async def _migrate(self, name: str) -> None:
        await self._finish(await self._machine.start(name))

    async def _finish(self, arn: str) -> None:
        name, outcome = await self._machine.finished(arn)
        if outcome is None:
            await self._fail(name, arn)
        else:
            self._succeed(name, outcome)
        self._show(self.counts)

    def _succeed(self, name: str, outcome: str) -> None:
        self._failures.pop(name, None)
        self.counts.errors.pop(name, None)
        if outcome == IMPORTED:
            self.counts.imported.add(name)

    async def _fail(self, name: str, arn: str) -> None:
        self._failures[name] += 1
        self.counts.warnings += 1
        if self._failures[name] >= TRIES_MAX:
            self.counts.errors[name] = await self._machine.reason(arn)
