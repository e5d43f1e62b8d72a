"""Compares both sides while they are in use: every metric, every version, and the directory.

A difference at first sight may be a dual write that is under way. The metric is therefore compared
again with its name and row locked, which excludes dual writes, and only that result counts.

During a cutover, while writes wait, there is no time to compare everything. A metric that was equal
before, and has the same latest version on both sides now, still is equal; `verify_since` compares
only the others.

This is not the `verify` of `partita migrate`. That one compares a target with a state store at one
position of the binary log, which is not read here. It knows nothing of the lock of dual writes, and
would report the dimensions and consumed metrics of older versions, which DynamoDB keeps and MariaDB
does not. Items are compared by the same digests (`item_digest`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from metric_catalogue.metrics.metric import LatestVersion, format_time
from metric_catalogue.migration import directory_copy
from metric_catalogue.migration.items_from_rows import MetricItems, of_metrics
from metric_catalogue.stores.dynamodb.catalogue_tables import CONSUMER
from metric_catalogue.stores.dynamodb.dynamodb_catalogue import DynamoDBCatalogue
from metric_catalogue.stores.dynamodb.metric_items import LATEST, SET_ATTRIBUTES, Item
from metric_catalogue.stores.mariadb import metric_rows
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_connections import DatabaseSession, LockTimeout
from metric_catalogue.stores.mariadb.metric_rows import MIGRATED
from partita_migrate.moving.target_access.target_items import item_digest

PAGE = 200
AT_ONCE = 16
SELECT_PAGE = (
    "SELECT name, migratedToDynamoDB AS state FROM metrics WHERE name > %s ORDER BY name LIMIT %s"
)
SELECT_LATEST = (
    "SELECT m.name, m.created_at, m.migratedToDynamoDB AS state, MAX(v.version) AS latest,"
    " COUNT(*) AS versions FROM metrics m JOIN metric_versions v ON v.metric_id = m.id"
    " GROUP BY m.id"
)

Show = Callable[[int], None]


@dataclass
class CatalogueVerification:
    """The result of comparing both sides."""

    metrics: int = 0
    versions: int = 0
    differences: dict[str, str] = field(default_factory=dict)
    """The differences by metric: {"late": "version 2 differs"}."""
    directory: directory_copy.Differences = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    """Metrics that only MariaDB has, and that stay there after a rollback."""
    equal: dict[str, LatestVersion] = field(default_factory=dict)
    """The latest version of each metric that is equal on both sides."""
    waited_seconds: float | None = None
    """How long writes waited during the cutover; None if it did not take place."""

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


class ItemDigests(NamedTuple):
    """The digests of an item in DynamoDB, with and without its sets: older versions that were
    written in DynamoDB have sets, and MariaDB does not keep those."""

    whole: bytes
    without_sets: bytes

    @classmethod
    def of(cls, item: Item) -> ItemDigests:
        whole = item_digest(item)
        if not item.keys() & SET_ATTRIBUTES:
            return cls(whole, whole)
        without_sets = {name: value for name, value in item.items() if name not in SET_ATTRIBUTES}
        return cls(whole, item_digest(without_sets))


@dataclass
class CopiedMetric:
    """A metric as DynamoDB has it."""

    versions: dict[str, ItemDigests] = field(default_factory=dict)
    consumed: set[str] = field(default_factory=set)
    """The kinds of its entries in the directory as a consumer, such as "consumer of late"."""


class MetricComparison(NamedTuple):
    """The result of comparing one metric."""

    made: MetricItems | None
    difference: str | None
    stale: set[str]
    """The kinds of entries as a consumer that only DynamoDB has."""


async def verify(
    mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, show: Show = lambda compared: None
) -> CatalogueVerification:
    """Compares everything."""
    verification = CatalogueVerification()
    comparison = CatalogueComparison(mariadb, dynamodb, verification)
    await comparison.read_dynamodb()
    after = ""
    while page := await mariadb.database.rows(SELECT_PAGE, after, PAGE):
        states = {row["name"]: row["state"] for row in page}
        made = await of_metrics(mariadb.database.rows, states)
        await comparison.compare(states, made)
        after = page[-1]["name"]
        verification.metrics += len(made)
        # Version 0 is a copy of the latest version.
        verification.versions += sum(len(metric.items) - 1 for metric in made.values())
        show(verification.metrics)
    await comparison.compare_rest()
    verification.directory |= await directory_copy.find_differences(mariadb, dynamodb)
    return verification


async def verify_since(
    mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, before: CatalogueVerification
) -> CatalogueVerification:
    """Compares the metrics that have changed on either side since an earlier comparison, and the
    directory."""
    rows, there, directory_differences = await asyncio.gather(
        mariadb.database.rows(SELECT_LATEST),
        dynamodb.latest_versions(),
        directory_copy.find_differences(mariadb, dynamodb),
    )
    here = {
        row["name"]: LatestVersion(format_time(row["created_at"]), int(row["latest"]))
        for row in rows
        if row["state"] == MIGRATED
    }
    versions = sum(int(row["versions"]) for row in rows)
    verification = CatalogueVerification(metrics=len(rows), versions=versions)
    verification.equal = {
        name: latest
        for name, latest in before.equal.items()
        if here.get(name) == latest == there.get(name)
    }
    states = {row["name"]: str(row["state"]) for row in rows}
    stale = [(kind, name) for kind, name in before.directory if kind.startswith(CONSUMER)]
    names = states.keys() | there.keys() | before.equal.keys() | {name for _, name in stale}
    comparison = CatalogueComparison(mariadb, dynamodb, verification, stale)
    changed = sorted(names - verification.equal.keys())
    for start in range(0, len(changed), PAGE):
        page = changed[start : start + PAGE]
        await comparison.compare_changed({name: states.get(name, "") for name in page})
    verification.directory |= directory_differences
    return verification


class CatalogueComparison:
    """Compares metrics, and notes the results in a CatalogueVerification."""

    def __init__(
        self,
        mariadb: MariaDBCatalogue,
        dynamodb: DynamoDBCatalogue,
        verification: CatalogueVerification,
        consumers: Iterable[tuple[str, str]] = (),
    ) -> None:
        """`consumers` are entries, as (kind, metric), that an earlier comparison found stale."""
        self._mariadb = mariadb
        self._dynamodb = dynamodb
        self._verification = verification
        self._places = asyncio.Semaphore(AT_ONCE)
        self._copies: defaultdict[str, CopiedMetric] = defaultdict(CopiedMetric)
        for kind, name in consumers:
            self._copies[name].consumed.add(kind)

    async def read_dynamodb(self) -> None:
        """Reads all metrics with two Scans, which is much faster than a Query for each metric."""
        async for item in self._dynamodb.all_items():
            self._copies[item["name"]["S"]].versions[item["version"]["S"]] = ItemDigests.of(item)
        async for item in self._dynamodb.entries():
            if item["kind"]["S"].startswith(CONSUMER):
                self._copies[item["name"]["S"]].consumed.add(item["kind"]["S"])

    async def compare(self, states: Mapping[str, str], made: Mapping[str, MetricItems]) -> None:
        work = (self._compare(name, state, made.get(name)) for name, state in states.items())
        await asyncio.gather(*work)

    async def compare_changed(self, states: Mapping[str, str]) -> None:
        """Reads some metrics from both sides, and compares them."""
        made = await of_metrics(self._mariadb.database.rows, states)

        async def read(name: str) -> None:
            async with self._places:
                self._copies[name] = await self._copy_of(name, made.get(name))

        await asyncio.gather(*map(read, states))
        await self.compare(states, made)

    async def compare_rest(self) -> None:
        """Compares the metrics that only DynamoDB has."""
        await self.compare(dict.fromkeys(self._copies, ""), {})

    async def _compare(self, name: str, state: str, made: MetricItems | None) -> None:
        outcome = _outcome(state, made, self._copies[name])
        if outcome.difference is not None or outcome.stale:
            outcome = await self._compare_again(name, made)
        self._note(name, outcome)
        # Names that are left over in the end exist only in DynamoDB (`compare_rest`).
        del self._copies[name]

    def _note(self, name: str, outcome: MetricComparison) -> None:
        if outcome.difference is not None:
            self._verification.differences[name] = outcome.difference
        for kind in outcome.stale:
            self._verification.directory[kind, name] = directory_copy.ONLY_DYNAMODB
        if outcome.made is not None and outcome.difference is None and not outcome.stale:
            whole = outcome.made.versions[LATEST]
            latest = LatestVersion(whole["createdAt"]["S"], int(whole["latestVersion"]["N"]))
            self._verification.equal[name] = latest

    async def _compare_again(self, name: str, made: MetricItems | None) -> MetricComparison:
        try:
            async with self._places, self._mariadb.name_lock(name):
                return await self._mariadb.database.transaction(
                    lambda session: self._compare_locked(name, session)
                )
        except LockTimeout as error:
            return MetricComparison(made, str(error), set())

    async def _compare_locked(self, name: str, session: DatabaseSession) -> MetricComparison:
        locked = await session.row(metric_rows.LOCK_METRIC, name)
        state = locked["migratedToDynamoDB"] if locked is not None else ""
        made = (await of_metrics(session.rows, [name])).get(name)
        return _outcome(state, made, await self._copy_of(name, made))

    async def _copy_of(self, name: str, made: MetricItems | None) -> CopiedMetric:
        """Reads a metric from DynamoDB, with the entries as a consumer that it should have or had
        when the directory was read."""
        copy = CopiedMetric()
        async for item in self._dynamodb.items_of(name):
            copy.versions[item["version"]["S"]] = ItemDigests.of(item)
        for kind in self._copies[name].consumed | (made.consumed.keys() if made else set()):
            if await self._dynamodb.is_consumer(name, kind.removeprefix(CONSUMER)):
                copy.consumed.add(kind)
        return copy


def _outcome(state: str, made: MetricItems | None, copy: CopiedMetric) -> MetricComparison:
    if made is None:
        difference = directory_copy.ONLY_DYNAMODB if copy.versions else None
        return MetricComparison(None, difference, copy.consumed)
    difference = f"it is {state}" if state != MIGRATED else _difference(made, copy)
    return MetricComparison(made, difference, copy.consumed - made.consumed.keys())


def _difference(made: MetricItems, copy: CopiedMetric) -> str | None:
    versions = made.versions
    latest = versions[LATEST]["latestVersion"]["N"]
    if LATEST not in copy.versions:
        return directory_copy.ONLY_MARIADB
    for number in sorted(versions, key=int):
        copied, digest = copy.versions.get(number), item_digest(versions[number])
        is_older = number not in (LATEST, latest)
        if copied is None or digest != (copied.without_sets if is_older else copied.whole):
            is_copy = number == LATEST
            return f"version {number} {'is not the latest version' if is_copy else 'differs'}"
    extra = copy.versions.keys() - versions.keys()
    if extra:
        return f"only DynamoDB has version {min(extra)}"
    missing = made.consumed.keys() - copy.consumed
    return f"DynamoDB lacks its entry as a {min(missing)}" if missing else None
