"""The value store: one item for each value of a primitive metric.

    metric  S, partition key   the name of the metric
    place   S, sort key        the dimensions, "|" and the time: "country=IT|2026-01-31T..."
    value   N                  exact, up to 38 digits
    weight  N                  the weight in a weighted average; left out when it is 1
    version N                  the version of the metric that was valid at that time

A value is therefore one GetItem, and the values of a span are one Query. Reads of single values
that arrive at the same time share a BatchGetItem.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from metric_catalogue.data.exact_numbers import exact, text_of
from metric_catalogue.data.metric_evaluation import Series
from metric_catalogue.data.periods import TimeSpan, WeightedValue
from metric_catalogue.data.value_cache import ValueCache
from metric_catalogue.metrics.catalogue_errors import RequestRefused, dynamodb_failed
from metric_catalogue.stores.dynamodb.batched_reads import BatchedReads, KeyedTable
from metric_catalogue.stores.dynamodb.catalogue_tables import DELETED, CatalogueTables
from metric_catalogue.stores.dynamodb.metric_items import Item
from metric_catalogue.stores.dynamodb.transaction_actions import entry
from partita.client import ClientError
from partita.foundation.service_limits import BATCH_WRITE_REQUESTS_MAX

T = TypeVar("T")
CACHED_VALUES_MAX = 200_000
BATCHES_MAX = 4
"""How many BatchWriteItem calls of one request run at a time."""
UNPROCESSED_SECONDS = 0.05
ONE = Fraction(1)
Packed = tuple[str, ...]
"""A series as it is cached: time, value and weight of each value, one after another:
("2026-01-31T...", "5", "", "2026-02-28T...", "7", "2"). The weight 1 is an empty text."""
PACKED = 3
"""How many texts of a packed series belong to one value."""
SERIES_CHARS_MAX = 900
"""A sort key has at most 1024 bytes, of which a time takes 24."""


async def together(reads: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs reads concurrently. A single read is awaited without a task, because creating the task
    would cost more than the rest."""
    waiting = list(reads)
    if len(waiting) > 1:
        return await asyncio.gather(*waiting)
    return [await read for read in waiting]


class StoredValue(NamedTuple):
    """A value of a primitive metric, as it is stored."""

    metric: str
    series: str
    time: str
    value: Decimal
    weight: Decimal
    version: int

    @property
    def place(self) -> str:
        return f"{self.series}|{self.time}"


def series_of(dimensions: Mapping[str, str]) -> str:
    """Returns dimensions as text, independent of their order: "country=IT,shop=7"."""
    series = ",".join(f"{name}={quote(dimensions[name], safe='')}" for name in sorted(dimensions))
    if len(series) > SERIES_CHARS_MAX:
        raise RequestRefused(f"Dimensions may have at most {SERIES_CHARS_MAX} characters together.")
    return series


class ValueStore:
    """Reads and writes values of primitive metrics, with a cache."""

    def __init__(
        self,
        reads: BatchedReads,
        tables: CatalogueTables,
        cache_seconds: float,
        now: Callable[[], float],
    ) -> None:
        self.cache: ValueCache[Packed] = ValueCache(cache_seconds, CACHED_VALUES_MAX, now)
        self._client = reads.client
        self._reads = reads
        self._table = tables.values
        self._places = KeyedTable(tables.values, "metric", "place")
        self._directory = tables.directory

    def cached(self, metric: str, series: str, span: TimeSpan) -> Packed | None:
        return self.cache.get(metric, _cache_key(series, span))

    async def read(
        self, metrics: Sequence[str], series: str, span: TimeSpan, values_max: int
    ) -> list[Packed]:
        """Returns the values of each metric in order of time. Of a metric that has more than
        `values_max` values, one more than that is returned, so that the caller notices."""
        writes = self.cache.writes
        try:
            if span.end is None:
                read = await self._read_single(metrics, series, span.start)
            else:
                read = await together(
                    self._read_span(metric, series, span, values_max) for metric in metrics
                )
        except ClientError as error:
            raise dynamodb_failed(error) from error
        key = _cache_key(series, span)
        for metric, packed in zip(metrics, read, strict=True):
            if (count := count_of(packed)) <= values_max:
                self.cache.keep(metric, packed, writes, key, max(count, 1))
        return read

    async def _read_single(self, metrics: Sequence[str], series: str, time: str) -> list[Packed]:
        place = f"{series}|{time}"
        reads = [self._reads.ask(self._places, metric, place) for metric in metrics]
        # gather() awaits all of them when one fails, but costs more than the rest for a single one.
        items = await asyncio.gather(*reads) if len(reads) > 1 else [await read for read in reads]
        return [() if item is None else (time, *_numbers(item)) for item in items]

    async def _read_span(self, metric: str, series: str, span: TimeSpan, values_max: int) -> Packed:
        assert span.end is not None
        packed: list[str] = []
        query: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "metric = :metric AND place BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":metric": {"S": metric},
                ":first": {"S": f"{series}|{span.start}"},
                ":last": {"S": f"{series}|{span.end}"},
            },
        }
        while (missing := values_max + 1 - count_of(packed)) > 0:
            # One more: BETWEEN includes the end of the span, which does not belong to it.
            query["Limit"] = missing + 1
            answer = await self._client.call("dynamodb", "Query", query)
            for item in answer["Items"]:
                time = item["place"]["S"].rpartition("|")[2]
                if time < span.end:
                    packed += (time, *_numbers(item))
            if "LastEvaluatedKey" not in answer:
                break
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return tuple(packed)

    async def put(self, values: Sequence[StoredValue]) -> None:
        """Stores all values. After an error some may be stored; sending all again does no harm."""
        batches = [
            [{"PutRequest": {"Item": _item(value)}} for value in values[start : start + size]]
            for size in [BATCH_WRITE_REQUESTS_MAX]
            for start in range(0, len(values), size)
        ]
        metrics = {value.metric for value in values}
        try:
            await self._write(batches)
        finally:
            for metric in metrics:
                self.cache.forget(metric)

    async def mark_deleted(self, metric: str) -> None:
        """Marks a metric before it is deleted. If this server is killed in between, its values are
        deleted when a metric of that name is added again."""
        await self._call("PutItem", {"TableName": self._directory, "Item": entry(DELETED, metric)})

    async def is_marked(self, metric: str) -> bool:
        key = entry(DELETED, metric)
        request = {"TableName": self._directory, "Key": key, "ConsistentRead": True}
        return "Item" in await self._call("GetItem", request)

    async def unmark(self, metric: str) -> None:
        key = entry(DELETED, metric)
        await self._call("DeleteItem", {"TableName": self._directory, "Key": key})

    async def purge(self, metric: str) -> None:
        """Deletes every value of a marked metric, and then the mark."""
        query: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "metric = :metric",
            "ProjectionExpression": "metric, place",
            "ExpressionAttributeValues": {":metric": {"S": metric}},
        }
        try:
            more = True
            while more:
                answer = await self._call("Query", query)
                keys = [{"DeleteRequest": {"Key": item}} for item in answer["Items"]]
                starts = range(0, len(keys), BATCH_WRITE_REQUESTS_MAX)
                await self._write([keys[at : at + BATCH_WRITE_REQUESTS_MAX] for at in starts])
                more = "LastEvaluatedKey" in answer
                query["ExclusiveStartKey"] = answer.get("LastEvaluatedKey")
            await self.unmark(metric)
        finally:
            self.cache.forget(metric)

    async def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._client.call("dynamodb", operation, request)
        except ClientError as error:
            raise dynamodb_failed(error) from error

    async def _write(self, batches: list[list[dict[str, Any]]]) -> None:
        places = asyncio.Semaphore(BATCHES_MAX)

        async def write(requests: list[dict[str, Any]]) -> None:
            async with places:
                await self._write_batch(requests)

        try:
            await asyncio.gather(*map(write, batches))
        except ClientError as error:
            raise dynamodb_failed(error) from error

    async def _write_batch(self, requests: list[dict[str, Any]]) -> None:
        """Writes one batch, and sends unprocessed items again."""
        waiting: dict[str, Any] = {self._table: requests}
        while waiting:
            answer = await self._client.call(
                "dynamodb", "BatchWriteItem", {"RequestItems": waiting}
            )
            waiting = answer.get("UnprocessedItems") or {}
            if waiting:
                await asyncio.sleep(UNPROCESSED_SECONDS)


def _item(value: StoredValue) -> Item:
    item: Item = {
        "metric": {"S": value.metric},
        "place": {"S": value.place},
        "value": {"N": text_of(value.value)},
        "version": {"N": str(value.version)},
    }
    if value.weight != 1:
        item["weight"] = {"N": text_of(value.weight)}
    return item


def _numbers(item: Item) -> tuple[str, str]:
    """Returns the value and its weight; the weight is empty when the item has none."""
    weight = item.get("weight")
    return item["value"]["N"], "" if weight is None else weight["N"]


def count_of(packed: Sequence[str]) -> int:
    return len(packed) // PACKED


def texts(packed: Packed) -> Iterable[tuple[str, str]]:
    """Yields times and values as they are stored."""
    return zip(packed[::PACKED], packed[1::PACKED], strict=True)


def unpacked(packed: Packed) -> Series:
    return {
        packed[at]: WeightedValue(
            exact(packed[at + 1]), exact(packed[at + 2]) if packed[at + 2] else ONE
        )
        for at in range(0, len(packed), PACKED)
    }


def _cache_key(series: str, span: TimeSpan) -> str:
    return f"{series}|{span.start}|{span.end}"
