"""Both sides compared, every metric and every version, while they are in use.

What differs at first sight may be a write under way: it is looked at again with the metric's row
locked, which no write to both stores can pass. Only what differs then counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from partita.apps.metrics import legacy_rows as rows
from partita.apps.metrics.carrying import is_same
from partita.apps.metrics.dynamodb import DynamoDBCatalogue
from partita.apps.metrics.items import LATEST, metric_of, version_of
from partita.apps.metrics.legacy import LegacyCatalogue
from partita.apps.metrics.legacy_rows import MIGRATED
from partita.apps.metrics.mariadb import Session
from partita.apps.metrics.metric import Metric, Version, as_version

PAGE = 200
AT_ONCE = 16
SELECT_PAGE = "SELECT name FROM metrics WHERE name > %s ORDER BY name LIMIT %s"

Show = Callable[[int], None]


@dataclass
class Verification:
    metrics: int = 0
    versions: int = 0
    differences: dict[str, str] = field(default_factory=dict)
    """By the name of what differs, most often a metric."""

    def lines(self) -> list[str]:
        verdict = f"{len(self.differences)} differ" if self.differences else "all are equal"
        return [
            f"compared {self.metrics} metrics with {self.versions} versions: {verdict}",
            *(f"  {name}: {difference}" for name, difference in sorted(self.differences.items())),
        ]


async def verify(
    legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue, show: Show = lambda compared: None
) -> Verification:
    found = Verification()
    comparison = Comparison(legacy, dynamodb, found)
    names: list[str] = []
    after = ""
    while page := [row["name"] for row in await legacy.database.rows(SELECT_PAGE, after, PAGE)]:
        await comparison.compare_all(page)
        names += page
        after = page[-1]
        show(found.metrics)
    await comparison.find_unknown(names)
    await comparison.compare_dimensions()
    return found


class Comparison:
    def __init__(
        self, legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue, found: Verification
    ) -> None:
        self._legacy = legacy
        self._dynamodb = dynamodb
        self._found = found
        self._places = asyncio.Semaphore(AT_ONCE)

    async def compare_all(self, names: Iterable[str]) -> None:
        await asyncio.gather(*(self._compare(name) for name in names))

    async def _compare(self, name: str) -> None:
        async with self._places:
            difference, versions = await self._look(name, None)
            if difference is not None:
                difference, versions = await self._legacy.database.transaction(
                    lambda session: self._look(name, session)
                )
            if difference is not None:
                self._found.differences[name] = difference
        self._found.metrics += bool(versions)
        self._found.versions += versions

    async def _look(self, name: str, session: Session | None) -> tuple[str | None, int]:
        """What differs, and how many versions MariaDB has. With a session, under the lock."""
        read = self._legacy.database.rows if session is None else session.rows
        if session is not None:
            await session.row(rows.LOCK_METRIC, name)
        state = await read("SELECT migratedToDynamoDB FROM metrics WHERE name = %s", name)
        metrics = [rows.metric_of(row) for row in await read(rows.SELECT_METRIC, name)]
        select = rows.SELECT_VERSIONS + " ORDER BY v.version"
        versions = [rows.version_of(row) for row in await read(select, name)]
        kept = state[0]["migratedToDynamoDB"] if state else MIGRATED
        return await self._difference(name, kept, metrics, versions), len(versions)

    async def _difference(
        self, name: str, state: str, metrics: Sequence[Metric], versions: Sequence[Version]
    ) -> str | None:
        if versions and state != MIGRATED:
            return f"it is {state}"
        items = {item["version"]["S"]: item async for item in self._dynamodb.items_of(name)}
        latest = items.pop(LATEST, None)
        if not versions or latest is None:
            return _missing(bool(versions), latest is not None or bool(items))
        if metric_of(latest) != metrics[0]:
            return "version 0 is not the latest version"
        there = {item.version: item for item in map(version_of, items.values())}
        if there.get(metrics[0].latest_version) != as_version(metrics[0]):
            return f"version {metrics[0].latest_version} differs"
        for version in versions:
            if not is_same(version, there.pop(version.version, None)):
                return f"version {version.version} differs"
        if there:
            return f"DynamoDB has a version {min(there)} more"
        return await self._unrelated(metrics[0])

    async def _unrelated(self, metric: Metric) -> str | None:
        for consumed in metric.consumed_metrics or ():
            if not await self._dynamodb.is_consumer(metric.name, consumed):
                return f"DynamoDB does not know that it consumes {consumed}"
        return None

    async def find_unknown(self, names: Iterable[str]) -> None:
        """Metrics that only DynamoDB has."""
        known = set(names)
        after = ""
        while page := await self._dynamodb.names(PAGE, after):
            await self.compare_all(set(page) - known)
            after = page[-1]

    async def compare_dimensions(self) -> None:
        statement = "SELECT name FROM dimensions"
        theirs = {row["name"] for row in await self._legacy.database.rows(statement)}
        for name in await self._dynamodb.missing_dimensions(theirs):
            self._found.differences[f"dimension {name}"] = "only MariaDB has it"


def _missing(is_in_legacy: bool, is_in_dynamodb: bool) -> str | None:
    if is_in_legacy:
        return "only MariaDB has it"
    return "only DynamoDB has it" if is_in_dynamodb else None
