"""Compare both sides while they are in use: every metric, every version, and the directory.

A first difference may be a dual write that is under way, or was since DynamoDB was read. The metric
is therefore compared again with its name and row locked, which excludes dual writes, and only the
second result counts.

While writes wait there is no time for all of that: what was equal before and has the same latest
version on both sides still is equal, and only the rest is compared.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from metric_catalogue.dynamodb.catalogue import DynamoDBCatalogue
from metric_catalogue.dynamodb.items import LATEST, SET_ATTRIBUTES, Item
from metric_catalogue.dynamodb.tables import CONSUMER
from metric_catalogue.mariadb import rows
from metric_catalogue.mariadb.catalogue import MariaDBCatalogue
from metric_catalogue.mariadb.connections import LockHeld, Session
from metric_catalogue.mariadb.rows import MIGRATED
from metric_catalogue.metric import Latest, format_time
from metric_catalogue.migration import directory
from metric_catalogue.migration.made_items import Made, of_metrics
from partita_migrate.moving.items import item_digest

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


class Held(NamedTuple):
    """The digests of an item in DynamoDB. Those of older versions may have sets, of which MariaDB
    knows nothing."""

    whole: bytes
    without_sets: bytes

    @classmethod
    def of(cls, item: Item) -> Held:
        whole = item_digest(item)
        if not item.keys() & SET_ATTRIBUTES:
            return cls(whole, whole)
        rest = {name: value for name, value in item.items() if name not in SET_ATTRIBUTES}
        return cls(whole, item_digest(rest))


@dataclass
class Copy:
    """A metric in DynamoDB."""

    versions: dict[str, Held] = field(default_factory=dict)
    consumed: set[str] = field(default_factory=set)
    """By kind, its entries in the directory as a consumer."""


class Outcome(NamedTuple):
    """Of a metric that was compared."""

    made: Made | None
    difference: str | None
    stale: set[str]
    """Entries as a consumer that only DynamoDB has."""


async def verify(
    mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, show: Show = lambda compared: None
) -> Verification:
    found = Verification()
    comparison = Comparison(mariadb, dynamodb, found)
    await comparison.read_dynamodb()
    after = ""
    while page := await mariadb.database.rows(SELECT_PAGE, after, PAGE):
        states = {row["name"]: row["state"] for row in page}
        made = await of_metrics(mariadb.database.rows, states)
        await comparison.compare(states, made)
        after = page[-1]["name"]
        found.metrics += len(made)
        found.versions += sum(len(one.items) - 1 for one in made.values())
        show(found.metrics)
    await comparison.compare_rest()
    found.directory |= await directory.find_differences(mariadb, dynamodb)
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
    states = {row["name"]: str(row["state"]) for row in rows}
    stale = [(kind, name) for kind, name in before.directory if kind.startswith(CONSUMER)]
    names = states.keys() | there.keys() | before.equal.keys() | {name for _, name in stale}
    comparison = Comparison(mariadb, dynamodb, found, stale)
    changed = sorted(names - found.equal.keys())
    for start in range(0, len(changed), PAGE):
        page = changed[start : start + PAGE]
        await comparison.compare_changed({name: states.get(name, "") for name in page})
    found.directory |= listed
    return found


class Comparison:
    def __init__(
        self,
        mariadb: MariaDBCatalogue,
        dynamodb: DynamoDBCatalogue,
        found: Verification,
        consumers: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._mariadb = mariadb
        self._dynamodb = dynamodb
        self._found = found
        self._places = asyncio.Semaphore(AT_ONCE)
        self._copies: defaultdict[str, Copy] = defaultdict(Copy)
        for kind, name in consumers:
            self._copies[name].consumed.add(kind)

    async def read_dynamodb(self) -> None:
        """All of it at once, which is much quicker than metric by metric."""
        async for item in self._dynamodb.all_items():
            self._copies[item["name"]["S"]].versions[item["version"]["S"]] = Held.of(item)
        async for item in self._dynamodb.entries():
            if item["kind"]["S"].startswith(CONSUMER):
                self._copies[item["name"]["S"]].consumed.add(item["kind"]["S"])

    async def compare(self, states: Mapping[str, str], made: Mapping[str, Made]) -> None:
        work = (self._compare(name, state, made.get(name)) for name, state in states.items())
        await asyncio.gather(*work)

    async def compare_changed(self, states: Mapping[str, str]) -> None:
        made = await of_metrics(self._mariadb.database.rows, states)

        async def read(name: str) -> None:
            async with self._places:
                self._copies[name] = await self._copy_of(name, made.get(name))

        await asyncio.gather(*map(read, states))
        await self.compare(states, made)

    async def compare_rest(self) -> None:
        """What MariaDB did not have."""
        await self.compare(dict.fromkeys(self._copies, ""), {})

    async def _compare(self, name: str, state: str, made: Made | None) -> None:
        outcome = _outcome(state, made, self._copies[name])
        if outcome.difference is not None or outcome.stale:
            outcome = await self._compare_again(name, made)
        self._note(name, outcome)
        del self._copies[name]

    def _note(self, name: str, outcome: Outcome) -> None:
        if outcome.difference is not None:
            self._found.differences[name] = outcome.difference
        for kind in outcome.stale:
            self._found.directory[kind, name] = directory.ONLY_DYNAMODB
        if outcome.made is not None and outcome.difference is None and not outcome.stale:
            whole = outcome.made.versions[LATEST]
            latest = Latest(whole["createdAt"]["S"], int(whole["latestVersion"]["N"]))
            self._found.equal[name] = latest

    async def _compare_again(self, name: str, made: Made | None) -> Outcome:
        try:
            async with self._places, self._mariadb.name_lock(name):
                return await self._mariadb.database.transaction(
                    lambda session: self._compare_locked(name, session)
                )
        except LockHeld as error:
            return Outcome(made, str(error), set())

    async def _compare_locked(self, name: str, session: Session) -> Outcome:
        locked = await session.row(rows.LOCK_METRIC, name)
        state = locked["migratedToDynamoDB"] if locked is not None else ""
        made = (await of_metrics(session.rows, [name])).get(name)
        return _outcome(state, made, await self._copy_of(name, made))

    async def _copy_of(self, name: str, made: Made | None) -> Copy:
        """With entries as a consumer that it ought to have, or was seen to have."""
        copy = Copy()
        async for item in self._dynamodb.items_of(name):
            copy.versions[item["version"]["S"]] = Held.of(item)
        for kind in self._copies[name].consumed | (made.consumed.keys() if made else set()):
            if await self._dynamodb.is_consumer(name, kind.removeprefix(CONSUMER)):
                copy.consumed.add(kind)
        return copy


def _outcome(state: str, made: Made | None, copy: Copy) -> Outcome:
    if made is None:
        difference = directory.ONLY_DYNAMODB if copy.versions else None
        return Outcome(None, difference, copy.consumed)
    difference = f"it is {state}" if state != MIGRATED else _difference(made, copy)
    return Outcome(made, difference, copy.consumed - made.consumed.keys())


def _difference(made: Made, copy: Copy) -> str | None:
    versions = made.versions
    latest = versions[LATEST]["latestVersion"]["N"]
    if LATEST not in copy.versions:
        return directory.ONLY_MARIADB
    for number in sorted(versions, key=int):
        held, digest = copy.versions.get(number), item_digest(versions[number])
        is_older = number not in (LATEST, latest)
        if held is None or digest != (held.without_sets if is_older else held.whole):
            is_copy = number == LATEST
            return f"version {number} {'is not the latest version' if is_copy else 'differs'}"
    more = copy.versions.keys() - versions.keys()
    if more:
        return f"only DynamoDB has version {min(more)}"
    missing = made.consumed.keys() - copy.consumed
    return f"DynamoDB lacks its entry as a {min(missing)}" if missing else None
