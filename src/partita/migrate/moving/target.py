"""The target: many requests at once, no faster than it takes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from partita.client import Client, ClientError, Unreachable
from partita.client.failures import THROTTLING
from partita.database.item.values import Item
from partita.errors import PartitaError
from partita.limits import KB
from partita.migrate.model.design import TableDesign
from partita.migrate.moving.positions import ONLY_OVER_OLDER, conditional_put, position_of

BATCH_ITEMS = 25
AT_ONCE = 32
AWAY_SECONDS_MAX = 300
"""A server that restarts is waited for."""
PAUSE_SECONDS = 0.05
PAUSE_SECONDS_MAX = 5.0
SLOWER = 0.7
FASTER_UNITS = 5.0
"""After each second without throttling."""
UNITS_MIN = 1.0
REFUSED = "ConditionalCheckFailedException"

Result = TypeVar("Result")


class Pace:
    """Write units a second: what was asked for, and less while the target throttles."""

    def __init__(self, units_max: float | None) -> None:
        self.units_max = units_max
        self.units = units_max
        self.throttled = 0
        self._next = time.monotonic()
        self._begun = time.monotonic()
        self._sent = 0.0
        self._raised = time.monotonic()

    async def wait(self, units: float) -> None:
        self._sent += units
        if self.units is None:
            return
        now = time.monotonic()
        begin = max(self._next, now - 1)
        self._next = begin + units / self.units
        if self._next > now:
            await asyncio.sleep(self._next - now)
        if now - self._raised > 1 and self.throttled:
            self._raised = now
            self.units = min(self.units + FASTER_UNITS, self.units_max or float("inf"))

    def slow_down(self) -> None:
        self.throttled += 1
        now = time.monotonic()
        if self.units is None:
            self.units = max(self._sent / max(now - self._begun, 1), UNITS_MIN)
        elif now - self._raised > PAUSE_SECONDS * 4:
            self.units = max(self.units * SLOWER, UNITS_MIN)
        self._raised = now


class Target:
    def __init__(
        self,
        endpoint: str | None,
        region: str,
        write_units: float | None = None,
        agent: str = "",
    ) -> None:
        self.endpoint = endpoint or "Amazon DynamoDB"
        self._loop = asyncio.new_event_loop()
        self.client = Client(endpoint, region, connections=AT_ONCE, tries=1, agent=agent)
        self.pace = Pace(write_units)

    def close(self) -> None:
        self._loop.run_until_complete(self.client.close())
        self._loop.close()

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        return self._loop.run_until_complete(self._patiently(operation, request))

    def wait_for(self, call: Coroutine[Any, Any, Result]) -> Result:
        """What another part asks of the same endpoint with `client`."""
        return self._loop.run_until_complete(call)

    async def _patiently(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Tried again while the target throttles or is away."""
        pause, away_since = PAUSE_SECONDS, None
        while True:
            try:
                return await self.client.call("dynamodb", operation, request)
            except ClientError as error:
                if not error.is_passing:
                    raise
                if error.code in THROTTLING:
                    self.pace.slow_down()
                    away_since = None
                else:
                    away_since = away_since or time.monotonic()
                    if time.monotonic() - away_since > AWAY_SECONDS_MAX:
                        raise PartitaError(
                            f"{self.endpoint} gives no answer: {error}; run the command again when"
                            " it does, and it goes on from here."
                        ) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    def check_tables(self, tables: Iterable[TableDesign], *, must_be_empty: bool) -> None:
        for table in tables:
            try:
                self.call("DescribeTable", TableName=table.name)
                found = self.call("Scan", TableName=table.name, Limit=1)
            except Unreachable as error:
                raise PartitaError(f"{error.message} Is a server running there?") from error
            except ClientError as error:
                if error.code != "ResourceNotFoundException":
                    raise PartitaError(f"{self.endpoint} refused: {error}") from error
                raise PartitaError(
                    f"{self.endpoint} has no table {table.name}; run `partita migrate create`."
                ) from error
            if must_be_empty and found.get("Items"):
                raise PartitaError(
                    f"{table.name} at {self.endpoint} has items already, which a load would"
                    " overwrite; empty it first."
                )

    # Writing.

    def put_all(self, items: Iterable[tuple[str, Item, int]]) -> None:
        """(table, item, bytes), unconditionally and in batches: where nothing is followed yet."""
        batches: list[tuple[dict[str, list[Any]], float]] = []
        batch: dict[str, list[Any]] = {}
        count, units = 0, 0.0
        for name, item, size in items:
            batch.setdefault(name, []).append({"PutRequest": {"Item": item}})
            units += -(-size // KB)
            count += 1
            if count == BATCH_ITEMS:
                batches.append((batch, units))
                batch, count, units = {}, 0, 0.0
        if batch:
            batches.append((batch, units))
        self._all(self._put_batch(*one) for one in batches)

    async def _put_batch(self, batch: dict[str, list[Any]], units: float) -> None:
        pause = PAUSE_SECONDS
        while batch:
            await self.pace.wait(units)
            answer = await self._patiently("BatchWriteItem", {"RequestItems": batch})
            left = answer.get("UnprocessedItems") or {}
            if left:
                self.pace.slow_down()
                units *= sum(map(len, left.values())) / sum(map(len, batch.values()))
                await asyncio.sleep(pause)
                pause = min(pause * 2, PAUSE_SECONDS_MAX)
            batch = left

    def put_over_older(
        self, writes: Iterable[tuple[TableDesign, Item]], condition: str = ONLY_OVER_OLDER
    ) -> list[tuple[TableDesign, Item, str]]:
        """Stamped items and tombstones, each only over an older one; the answer is those that
        could not be written, and why."""
        found = self._all(self._put(table, item, condition) for table, item in writes)
        return [one for one in found if one is not None]

    async def _put(
        self, table: TableDesign, item: Item, condition: str
    ) -> tuple[TableDesign, Item, str] | None:
        position = position_of(item) or 0
        await self.pace.wait(1)
        try:
            await self._patiently("PutItem", conditional_put(table, item, position, condition))
        except ClientError as error:
            if error.code != REFUSED:
                if error.code == "ValidationException":
                    return table, item, error.message
                raise PartitaError(f"{self.endpoint} refused an item: {error}") from error
            there = position_of(error.body.get("Item", {}))
            if there is None:
                return table, item, "an item is there that the move has not written"
        return None

    def _all(self, calls: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
        async def run() -> list[Result]:
            waiting: set[asyncio.Task[Result]] = set()
            done: list[Result] = []
            try:
                for call in calls:
                    if len(waiting) >= AT_ONCE:
                        ended, waiting = await asyncio.wait(
                            waiting, return_when=asyncio.FIRST_COMPLETED
                        )
                        done += [one.result() for one in ended]
                    waiting.add(asyncio.ensure_future(call))
                done += await asyncio.gather(*waiting)
            except BaseException:
                for one in waiting:
                    one.cancel()
                raise
            return done

        return self._loop.run_until_complete(run())

    # Reading.

    def items(self, name: str) -> Iterator[Item]:
        request: dict[str, Any] = {"TableName": name, "ConsistentRead": True}
        while True:
            answer = self.call("Scan", **request)
            yield from answer.get("Items", [])
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
