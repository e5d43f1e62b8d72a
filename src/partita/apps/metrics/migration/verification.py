"""Compare both sides while they are in use: every metric, every version, and the directory.

A first difference may be a dual write that is under way, or was since DynamoDB was read. The metric
is therefore compared again with its name and row locked, which excludes dual writes, and only the
second result counts.

While writes wait there is no time for all of that: what was equal before and has the same latest
version on both sides still is equal, and only the rest is compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from partita.apps.metrics.dynamodb.catalogue import DynamoDBCatalogue
from partita.apps.metrics.dynamodb.items import LATEST, Item, metric_of, version_of
from partita.apps.metrics.dynamodb.tables import CONSUMER
from partita.apps.metrics.mariadb import rows
from partita.apps.metrics.mariadb.catalogue import MariaDBCatalogue
from partita.apps.metrics.mariadb.connections import LockHeld, Row, Session
from partita.apps.metrics.mariadb.rows import MIGRATED
from partita.apps.metrics.metric import Latest, Metric, Version, as_version, format_time
from partita.apps.metrics.migration import directory
from partita.apps.metrics.migration.to_mariadb import is_same

PAGE = 200
AT_ONCE = 16
SELECT_PAGE = "SELECT name FROM metrics WHERE name > %s ORDER BY name LIMIT %s"
SELECT_LATEST = (
    "SELECT m.name, m.created_at, m.migratedToDynamoDB AS state, MAX(v.version) AS latest,"
    " COUNT(*) AS versions FROM metrics m JOIN metric_versions v ON v.metric_id = m.id"
    " GROUP BY m.id"
)

Show = Callable[[int], None]
Read = Callable[..., Awaitable[list[Row]]]


@dataclass
class Verification:
    metrics: int = 0
    versions: int = 0
    differences: dict[str, str] = field(default_factory=dict)
    """By metric."""
    directory: directory.Differences = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    """Metrics that only MariaDB has, and that stay there after a rollback."""
    equal: dict[str, Latest] = field(default_factory=dict)
    """By metric, which version of it both sides had."""
    waited_seconds: float | None = None
    """How long writes waited, of a cutover that succeeded."""

    @property
    def is_equal(self) -> bool:
        return not (self.differences or self.directory)

    def lines(self) -> list[str]:
        count = len(self.differences) + len(self.directory)
        verdict = "all are equal" if self.is_equal else f"{count} differ"
        waited = self.waited_seconds
        return [
            f"compared {self.metrics} metrics with {self.versions} versions: {verdict}",
            *([f"writes waited for {waited:.1f} s"] if waited is not None else ()),
            *(f"  {name}: only MariaDB has it, and it stays there" for name in sorted(self.kept)),
            *(f"  {name}: {difference}" for name, difference in sorted(self.differences.items())),
            *(
                f"  {kind} {name}: {difference}"
                for (kind, name), difference in sorted(self.directory.items())
            ),
        ]


class Known(NamedTuple):
    """A metric in MariaDB."""

    state: str
    metric: Metric
    versions: list[Version]


@dataclass
class Copy:
    """A metric in DynamoDB."""

    latest: Metric | None = None
    versions: dict[int, Version] = field(default_factory=dict)

    unreadable: list[str] = field(default_factory=list)
    """Versions that others have written."""

    def add(self, item: Item) -> None:
        number = item["version"]["S"]
        try:
            if number == LATEST:
                self.latest = metric_of(item)
            else:
                self.versions[int(number)] = version_of(item)
        except (KeyError, TypeError, ValueError):
            self.unreadable.append(number)


async def verify(
    mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, show: Show = lambda compared: None
) -> Verification:
    found = Verification()
    comparison = Comparison(mariadb, dynamodb, found)
    await comparison.read_dynamodb()
    names: list[str] = []
    after = ""
    while page := [row["name"] for row in await mariadb.database.rows(SELECT_PAGE, after, PAGE)]:
        known = await _read(mariadb.database.rows, after, page[-1])
        await comparison.compare_all({name: known.get(name) for name in page})
        names += page
        after = page[-1]
        show(found.metrics)
    await comparison.find_only_in_dynamodb(names)
    found.directory = await directory.find_differences(mariadb, dynamodb)
    return found


async def verify_since(
    mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, before: Verification
) -> Verification:
    """Metrics that have changed on either side since an earlier comparison, and the directory."""
    rows, there, listed = await asyncio.gather(
        mariadb.database.rows(SELECT_LATEST),
        dynamodb.latest_versions(),
        directory.find_differences(mariadb, dynamodb),
    )
    here = {
        row["name"]: Latest(format_time(row["created_at"]), int(row["latest"]))
        for row in rows
        if row["state"] == MIGRATED
    }
    found = Verification(metrics=len(rows), versions=sum(int(row["versions"]) for row in rows))
    found.equal = {
        name: latest
        for name, latest in before.equal.items()
        if here.get(name) == latest == there.get(name)
    }
    names = {row["name"] for row in rows} | there.keys() | before.equal.keys()
    comparison = Comparison(mariadb, dynamodb, found)
    await comparison.compare_locked(names - found.equal.keys())
    found.directory = listed
    return found


async def _read(read: Read, after: str, last: str) -> dict[str, Known]:
    known = {
        row["name"]: Known(row["migratedToDynamoDB"], rows.metric_of(row), [])
        for row in await read(rows.SELECT_METRICS_BETWEEN, after, last)
    }
    for row in await read(rows.SELECT_VERSIONS_BETWEEN, after, last):
        if row["name"] in known:
            known[row["name"]].versions.append(rows.version_of(row))
    return known


class Comparison:
    def __init__(
        self, mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, found: Verification
    ) -> None:
        self._mariadb = mariadb
        self._dynamodb = dynamodb
        self._found = found
        self._places = asyncio.Semaphore(AT_ONCE)
        self._copies: dict[str, Copy] = {}
        self._consumers: set[tuple[str, str]] = set()

    async def read_dynamodb(self) -> None:
        """All of it at once, which is much quicker than metric by metric."""
        async for item in self._dynamodb.all_items():
            self._copies.setdefault(item["name"]["S"], Copy()).add(item)
        async for item in self._dynamodb.entries():
            self._consumers.add((item["kind"]["S"], item["name"]["S"]))

    async def compare_all(self, page: Mapping[str, Known | None]) -> None:
        await asyncio.gather(*(self._compare(name, known) for name, known in page.items()))

    async def _compare(self, name: str, known: Known | None) -> None:
        copy = self._copies.pop(name, Copy())
        difference = _difference(known, copy, self._consumers)
        if difference is not None:
            difference, known = await self._compare_again(name, known)
        self._note(name, difference, known)
        if known is not None:
            self._found.metrics += 1
            self._found.versions += len(known.versions)

    async def compare_locked(self, names: Iterable[str]) -> None:
        async def compare(name: str) -> None:
            self._note(name, *await self._compare_again(name, None))

        await asyncio.gather(*map(compare, names))

    def _note(self, name: str, difference: str | None, known: Known | None) -> None:
        if difference is not None:
            self._found.differences[name] = difference
        elif known is not None:
            latest = Latest(known.metric.created_at, known.metric.latest_version)
            self._found.equal[name] = latest

    async def _compare_again(
        self, name: str, known: Known | None
    ) -> tuple[str | None, Known | None]:
        try:
            async with self._places, self._mariadb.name_lock(name):
                return await self._mariadb.database.transaction(
                    lambda session: self._compare_locked(name, session)
                )
        except LockHeld as error:
            return str(error), known

    async def _compare_locked(self, name: str, session: Session) -> tuple[str | None, Known | None]:
        await session.row(rows.LOCK_METRIC, name)
        row = await session.row(rows.SELECT_METRIC, name)
        if row is None:
            return await self._differs(name, None), None
        versions = await session.rows(rows.SELECT_VERSIONS + " ORDER BY v.version", name)
        known = Known(
            row["migratedToDynamoDB"], rows.metric_of(row), [rows.version_of(v) for v in versions]
        )
        return await self._differs(name, known), known

    async def _differs(self, name: str, known: Known | None) -> str | None:
        copy = Copy()
        async for item in self._dynamodb.items_of(name):
            copy.add(item)
        consumed = known.metric.consumed_metrics or () if known is not None else ()
        consumers = {
            (CONSUMER + one, name)
            for one in consumed
            if await self._dynamodb.is_consumer(name, one)
        }
        return _difference(known, copy, consumers)

    async def find_only_in_dynamodb(self, names: Iterable[str]) -> None:
        """Compare metrics that are not in MariaDB."""
        await self.compare_all(dict.fromkeys(self._copies.keys() - set(names)))


def _difference(
    known: Known | None, copy: Copy, consumers: Collection[tuple[str, str]]
) -> str | None:
    if known is not None and known.state != MIGRATED:
        return f"it is {known.state}"
    if known is None:
        return "only DynamoDB has it" if copy.latest or copy.versions or copy.unreadable else None
    if copy.unreadable:
        return f"version {min(copy.unreadable)} is not one of a metric"
    if copy.latest is None:
        return "only MariaDB has it"
    metric, number = known.metric, known.metric.latest_version
    if copy.latest != metric:
        return "version 0 is not the latest version"
    if copy.versions.get(number) != as_version(metric):
        return f"version {number} differs"
    for version in known.versions:
        if not is_same(version, copy.versions.get(version.version)):
            return f"version {version.version} differs"
    more = copy.versions.keys() - {version.version for version in known.versions}
    if more:
        return f"only DynamoDB has version {min(more)}"
    for consumed in metric.consumed_metrics or ():
        if (CONSUMER + consumed, metric.name) not in consumers:
            return f"DynamoDB lacks its entry as a consumer of {consumed}"
    return None
