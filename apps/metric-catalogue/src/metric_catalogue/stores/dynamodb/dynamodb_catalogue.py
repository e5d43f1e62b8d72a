"""The catalogue in DynamoDB.

Every write is one transaction. It puts the new version and version 0, on condition that the version
on which the write is based is still the latest.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any

from metric_catalogue.metrics import metric_rules
from metric_catalogue.metrics.catalogue_errors import (
    CatalogueMoved,
    CatalogueUnavailable,
    MetricConflict,
    VersionChanged,
    changed,
    dynamodb_failed,
    metric_exists,
    no_metric,
    no_version,
)
from metric_catalogue.metrics.metric import (
    CONSUMED_METRICS_MAX,
    HYBRID,
    LatestVersion,
    Metric,
    MetricVersion,
    NewDimension,
    NewGroup,
    NewMetric,
)
from metric_catalogue.stores.catalogue_modes import Mode
from metric_catalogue.stores.dynamodb import transaction_actions
from metric_catalogue.stores.dynamodb.batched_reads import BatchedReads, KeyedTable
from metric_catalogue.stores.dynamodb.catalogue_tables import (
    BY_VERSION,
    CONSUMER,
    DIMENSION,
    GONE,
    GROUP,
    GUARD,
    MODE_COPIES,
    CatalogueTables,
)
from metric_catalogue.stores.dynamodb.metric_items import LATEST, Item, metric_of, version_of
from metric_catalogue.stores.dynamodb.transaction_actions import ACTIONS_MAX, FAILED, entry, key
from partita.client import Client, ClientError
from partita.foundation.clock import Clock, system_clock

TRIES_MAX = 25
"""How often an update without If-Match is tried while concurrent updates come first."""
CONFLICT_SECONDS = 0.01
SEGMENTS = 4
"""How many segments of the Scan run in parallel that a cutover waits for."""
VERSIONS_AT_ONCE_MAX = ACTIONS_MAX - CONSUMED_METRICS_MAX - 3
"""How many versions are deleted in the transaction that deletes version 0 and the entries as a
consumer, notes that the metric is gone, and turns the guard."""


class DynamoDBCatalogue:
    """The catalogue in DynamoDB. Its writes succeed only while the mode is one of `modes`."""

    def __init__(
        self,
        client: Client,
        tables: CatalogueTables,
        modes: tuple[Mode, ...] = (Mode.DYNAMODB,),
        clock: Clock = system_clock,
    ) -> None:
        self.client = client
        self.reads = BatchedReads(client)
        self.tables = tables
        self.clock = clock
        self._modes = modes
        self._versions = KeyedTable(tables.metrics, "name", "version")

    # Reading

    async def get(self, name: str) -> Metric:
        """Returns a metric. Raises MetricNotFound."""
        metric = await self.find(name)
        if metric is None:
            raise no_metric(name)
        return metric

    async def find(self, name: str) -> Metric | None:
        try:
            item = await self.reads.ask(self._versions, name, LATEST)
        except ClientError as error:
            raise dynamodb_failed(error) from error
        return None if item is None else metric_of(item)

    async def get_version(self, name: str, version: int) -> MetricVersion:
        item = await self._get(self.tables.metrics, key(name, str(version)))
        if item is None or not version:
            await self.get(name)
            raise no_version(name, version)
        return version_of(item)

    async def list_versions(self, name: str) -> list[MetricVersion]:
        versions = await self.all_versions(name)
        if not versions:
            raise no_metric(name)
        return versions

    async def all_versions(self, name: str) -> list[MetricVersion]:
        """Returns the versions in order; an empty list for a metric that does not exist."""
        items = [item async for item in self.items_of(name)]
        versions = [version_of(item) for item in items if item["version"]["S"] != LATEST]
        # The sort key is a string, and "10" sorts before "2".
        return sorted(versions, key=lambda version: version.version)

    async def items_of(self, name: str) -> AsyncIterator[Item]:
        """Yields all items of a metric, including version 0."""
        query = {
            "TableName": self.tables.metrics,
            "ConsistentRead": True,
            "KeyConditionExpression": "#name = :name",
            "ExpressionAttributeNames": {"#name": "name"},
            "ExpressionAttributeValues": {":name": {"S": name}},
        }
        async for item in self._pages(query):
            yield item

    async def all_items(self) -> AsyncIterator[Item]:
        """Yields all items of all metrics."""
        scan = {"TableName": self.tables.metrics, "ConsistentRead": True}
        async for item in self._pages(scan, operation="Scan"):
            yield item

    async def latest_versions(self) -> dict[str, LatestVersion]:
        """Returns the latest version of every metric, in one strongly consistent pass."""
        latest: dict[str, LatestVersion] = {}

        async def read(segment: int) -> None:
            scan = {
                "TableName": self.tables.metrics,
                "ConsistentRead": True,
                "FilterExpression": "version = :latest",
                "ProjectionExpression": "#name, createdAt, latestVersion",
                "ExpressionAttributeNames": {"#name": "name"},
                "ExpressionAttributeValues": {":latest": {"S": LATEST}},
                "Segment": segment,
                "TotalSegments": SEGMENTS,
            }
            async for item in self._pages(scan, operation="Scan"):
                # Another program may have written an item without these attributes.
                created_at = item.get("createdAt", {}).get("S", "")
                number = item.get("latestVersion", {}).get("N", "0")
                latest[item["name"]["S"]] = LatestVersion(created_at, int(number))

        await asyncio.gather(*map(read, range(SEGMENTS)))
        return latest

    async def list_metrics(self, limit: int, after: str) -> list[Metric]:
        names = await self.names(limit, after)
        metrics = await asyncio.gather(*(self.find(name) for name in names))
        return [metric for metric in metrics if metric is not None]

    async def names(self, limit: int, after: str = "") -> list[str]:
        index = {"TableName": self.tables.metrics, "IndexName": BY_VERSION}
        return await self._names(index, "version", LATEST, limit, after)

    async def list_dimensions(self, limit: int, after: str) -> list[str]:
        return await self._directory(DIMENSION, limit, after)

    async def list_gone(self) -> list[str]:
        """Returns the metrics that were deleted since the cutover."""
        return await self._directory(GONE)

    async def is_consumer(self, name: str, consumed: str) -> bool:
        relationship = entry(CONSUMER + consumed, name)
        return await self._get(self.tables.directory, relationship) is not None

    async def consumers(self, name: str) -> list[str]:
        await self.get(name)
        return await self._directory(CONSUMER + name)

    async def _directory(self, kind: str, limit: int | None = None, after: str = "") -> list[str]:
        table = {"TableName": self.tables.directory, "ConsistentRead": True}
        return await self._names(table, "kind", kind, limit, after)

    async def entries(self, kind: str | None = None) -> AsyncIterator[Item]:
        """Yields the entries of a kind, or the whole directory."""
        table = {"TableName": self.tables.directory, "ConsistentRead": True}
        query = {
            "KeyConditionExpression": "kind = :kind",
            "ExpressionAttributeValues": {":kind": {"S": kind}},
        }
        scan = (table, None, "Scan")
        async for item in self._pages(*scan) if kind is None else self._pages({**table, **query}):
            yield item

    async def _names(
        self, source: dict[str, Any], attribute: str, value: str, limit: int | None, after: str
    ) -> list[str]:
        """Returns the names in a partition whose sort key is the name."""
        # " " stands for the beginning: a space sorts before every name, and no key may be empty.
        query = {
            **source,
            "KeyConditionExpression": "#partition = :value AND #name > :after",
            "ExpressionAttributeNames": {"#partition": attribute, "#name": "name"},
            "ExpressionAttributeValues": {":value": {"S": value}, ":after": {"S": after or " "}},
        }
        if limit is not None:
            query["Limit"] = limit
        return [item["name"]["S"] async for item in self._pages(query, limit)]

    async def _pages(
        self, query: dict[str, Any], limit: int | None = None, operation: str = "Query"
    ) -> AsyncIterator[Item]:
        count = 0
        while True:
            answer = await self._call(operation, query)
            for item in answer["Items"]:
                yield item
            count += len(answer["Items"])
            start = answer.get("LastEvaluatedKey")
            if start is None or (limit is not None and count >= limit):
                return
            query = {**query, "ExclusiveStartKey": start}

    async def _get(self, table: str, key: Item) -> Item | None:
        request = {"TableName": table, "Key": key, "ConsistentRead": True}
        item: Item | None = (await self._call("GetItem", request)).get("Item")
        return item

    async def group(self, name: str) -> tuple[str, ...] | None:
        """Returns the dimensions of a group whose metric has not been added yet."""
        item = await self._get(self.tables.directory, entry(GROUP, name))
        return None if item is None else related_dimensions(item)

    async def missing_dimensions(self, names: Iterable[str]) -> set[str]:
        distinct = sorted(set(names))
        items = await asyncio.gather(
            *(self._get(self.tables.directory, entry(DIMENSION, name)) for name in distinct)
        )
        return {name for name, item in zip(distinct, items, strict=True) if item is None}

    # Writing

    async def remove_entry(self, kind: str, name: str) -> None:
        await self.transact([transaction_actions.delete(self.tables.directory, entry(kind, name))])

    async def add_dimension(self, new: NewDimension) -> None:
        put = transaction_actions.put_new(self.tables.directory, entry(DIMENSION, new.name), "kind")
        if await self.transact([put]):
            raise MetricConflict(f"There is a dimension {new.name} already.")

    async def add_group(self, new: NewGroup) -> None:
        metric_rules.refuse_missing(
            "dimension", await self.missing_dimensions(new.related_dimensions)
        )
        actions = transaction_actions.add_group(self.tables, new.name, new.related_dimensions)
        reasons = await self.transact(actions)
        if FAILED in reasons[:1]:
            raise MetricConflict(f"There is a metric group {new.name} already.")
        if reasons:
            raise metric_exists(new.name)

    async def add(self, new: NewMetric, user: str) -> Metric:
        related = None
        if new.value_type != HYBRID:
            related = await self.group(new.name)
            if related is None:
                if await self.find(new.name) is not None:
                    raise metric_exists(new.name)
                raise metric_rules.no_group(new.name)
        metric = metric_rules.first_version(new, related, user, self.clock())
        metric_rules.refuse_missing("metric", await self.missing(metric.references))
        actions = transaction_actions.save(self.tables, None, metric, guard=None)
        reasons = await self.transact([*actions, *transaction_actions.fence(self.tables, metric)])
        if FAILED in reasons[: len(actions)]:
            raise metric_exists(metric.name)
        if reasons:
            raise MetricConflict(
                f"A metric in the formula or chain of {new.name} was just deleted."
            )
        return metric

    async def delete(self, name: str, expected: int | None) -> None:
        """Deletes a metric, or completes a deletion that was interrupted after its transaction."""
        for tried in range(TRIES_MAX):
            await asyncio.sleep(tried * CONFLICT_SECONDS * random.random())
            guard = await self.guard()
            metric = await self.find(name)
            if metric is None:
                if not await self._delete_versions(name):
                    raise no_metric(name)
                return
            if expected is not None and metric.latest_version != expected:
                raise changed(name, expected, metric.latest_version)
            metric_rules.refuse_dependants(
                name, await self._directory(CONSUMER + name), await self._chained_to(name)
            )
            newest = range(metric.latest_version, 0, -1)[:VERSIONS_AT_ONCE_MAX]
            actions = transaction_actions.remove(self.tables, metric, map(str, newest), guard)
            if not await self.transact(actions):
                await self._delete_versions(name)
                return
        raise MetricConflict(f"{name} has too many concurrent updates: try again.")

    async def _delete_versions(self, name: str) -> int:
        """Deletes the versions of a metric that has no version 0 any more; returns their number."""
        numbers = [version.version for version in await self.all_versions(name)]
        for start in range(0, len(numbers), ACTIONS_MAX):
            page = numbers[start : start + ACTIONS_MAX]
            table = self.tables.metrics
            await self.transact(
                [transaction_actions.delete(table, key(name, str(n))) for n in page]
            )
        return len(numbers)

    async def _chained_to(self, name: str) -> set[str]:
        """Returns the other metrics that have it as chained metric, in any version. Reads the whole
        table, which is acceptable because deletions are rare."""
        scan = {
            "TableName": self.tables.metrics,
            "ConsistentRead": True,
            "FilterExpression": "chainedMetric = :name AND #name <> :name",
            "ProjectionExpression": "#name",
            "ExpressionAttributeNames": {"#name": "name"},
            "ExpressionAttributeValues": {":name": {"S": name}},
        }
        return {item["name"]["S"] async for item in self._pages(scan, operation="Scan")}

    async def revise(
        self, name: str, revision: metric_rules.Revision, expected: int | None
    ) -> Metric:
        for tried in range(TRIES_MAX):
            await asyncio.sleep(tried * CONFLICT_SECONDS * random.random())
            previous = await self.get(name)
            if expected is not None and previous.latest_version != expected:
                raise changed(name, expected, previous.latest_version)
            metric = revision(previous)
            guard = await self._check_references(previous, metric)
            try:
                await self.save(previous, metric, guard)
            except VersionChanged:
                continue
            return metric
        raise MetricConflict(f"{name} has too many concurrent updates: try again.")

    async def _check_references(self, previous: Metric, metric: Metric) -> int | None:
        """Checks the references that an update adds. Returns the guard's count from before they
        were followed, or None when the update adds no reference."""
        dimensions = set(metric.related_dimensions or ()) - set(previous.related_dimensions or ())
        metric_rules.refuse_missing("dimension", await self.missing_dimensions(dimensions))
        added = metric_rules.added_references(previous, metric)
        if not added:
            return None
        guard = await self.guard()
        metric_rules.refuse_missing("metric", await self.missing(added))
        await metric_rules.refuse_cycle(metric.name, added, self._references)
        return guard

    async def guard(self) -> int:
        """Returns the guard's count: see GUARD."""
        item = await self._get(self.tables.directory, GUARD)
        return int(item["count"]["N"]) if item is not None else 0

    async def _references(self, name: str) -> set[str]:
        return (await self.get(name)).references

    async def missing(self, names: Iterable[str]) -> set[str]:
        """Returns the names that are not those of metrics."""
        distinct = sorted(names)
        metrics = await asyncio.gather(*(self.find(name) for name in distinct))
        return {name for name, metric in zip(distinct, metrics, strict=True) if metric is None}

    async def save(self, previous: Metric | None, metric: Metric, guard: int | None = None) -> None:
        """Writes a new version in one transaction. Raises VersionChanged or MetricConflict when the
        catalogue has changed since `previous` was read."""
        if FAILED in await self.transact(
            transaction_actions.save(self.tables, previous, metric, guard)
        ):
            if previous is None:
                raise metric_exists(metric.name)
            raise VersionChanged(
                f"The latest version of {metric.name} is no longer {previous.version}."
            )

    async def transact(self, actions: list[dict[str, Any]]) -> list[str]:
        """Writes in one transaction, on condition that the mode allows it.

        Returns an empty list on success, or the reason of each action when a condition failed.
        Raises CatalogueMoved when the mode does not allow it. Repeats the transaction after
        conflicts with other writers.
        """
        for tried in range(1, TRIES_MAX + 1):
            # Another copy at each attempt, so that transactions do not conflict over one item.
            number = random.randrange(MODE_COPIES)
            check = transaction_actions.check_mode(self.tables, self._modes, number)
            request = {"TransactItems": [*actions, check]}
            try:
                await self.client.call("dynamodb", "TransactWriteItems", request)
            except ClientError as error:
                reasons = [reason["Code"] for reason in error.body.get("CancellationReasons", ())]
                # The check of the mode is the last action, so its reason is the last one.
                if FAILED in reasons[-1:]:
                    raise CatalogueMoved from error
                if FAILED in reasons:
                    return reasons[:-1]
                if "TransactionConflict" not in reasons:
                    raise dynamodb_failed(error) from error
                await asyncio.sleep(CONFLICT_SECONDS * tried)
            else:
                return []
        raise CatalogueUnavailable("Other writers hold the same items: try again.")

    async def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self.client.call("dynamodb", operation, request)
        except ClientError as error:
            raise dynamodb_failed(error) from error


def related_dimensions(group: Item) -> tuple[str, ...]:
    return tuple(sorted(group["relatedDimensions"]["SS"]))
