"""The target's client: many requests at once, and no faster than the target accepts them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson
import uvloop

from partita.client import Client, ClientError, Unreachable
from partita.client.client_errors import THROTTLING
from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita.foundation.service_limits import WRITE_UNIT_BYTES
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.target_access.item_positions import (
    ONLY_OVER_OLDER,
    conditional_put,
    position_of,
)

BATCH_ITEMS = 25
BATCH_BYTES_MAX = 4 << 20
"""A BatchWriteItem request has at most 16 MB; large items go in smaller batches."""
AT_ONCE = 32
AWAY_SECONDS_MAX = 300
"""How long a server that restarts is waited for."""
PAUSE_SECONDS = 0.05
PAUSE_SECONDS_MAX = 5.0
SLOWER = 0.7
FASTER_UNITS = 5.0
"""By how much the pace rises after each second without throttling."""
UNITS_MIN = 1.0
REFUSED = "ConditionalCheckFailedException"

ALL_PROCESSED = b'{"UnprocessedItems":{}}'

Result = TypeVar("Result")


class ItemBatch(NamedTuple):
    """Items of one table, as JSON."""

    table: str
    items: list[bytes]

    @property
    def units(self) -> float:
        """The most write units that the batch can take: an item is smaller than its JSON."""
        return sum(-(-len(item) // WRITE_UNIT_BYTES) for item in self.items)

    def body(self) -> bytes:
        name = orjson.dumps(self.table)
        puts = b'}},{"PutRequest":{"Item":'.join(self.items)
        return b'{"RequestItems":{%b:[{"PutRequest":{"Item":%b}}]}}' % (name, puts)


def batches(items: Iterable[tuple[str, bytes]]) -> Iterator[ItemBatch]:
    """Groups items (table, JSON) into batches as large as BatchWriteItem allows."""
    waiting: dict[str, tuple[list[bytes], int]] = {}
    for table, item in items:
        batch, size = waiting.get(table, ([], 0))
        if batch and (len(batch) == BATCH_ITEMS or size + len(item) > BATCH_BYTES_MAX):
            yield ItemBatch(table, batch)
            batch, size = [], 0
        batch.append(item)
        waiting[table] = (batch, size + len(item))
    for table, (batch, _) in waiting.items():
        yield ItemBatch(table, batch)


def put_body(table: TableDesign, item: Item, condition: str = ONLY_OVER_OLDER) -> bytes:
    """Returns the body of a PutItem that writes a stamped item unless a newer one is there."""
    return orjson.dumps(conditional_put(table, item, position_of(item) or 0, condition))


class WritePace:
    """Limits the write units a second: to `units_max`, and below it while the target throttles."""

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
        # Units that were not used are saved for one second at most.
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
            # No limit was asked for: starts from the rate that was reached so far.
            self.units = max(self._sent / max(now - self._begun, 1), UNITS_MIN)
        elif now - self._raised > PAUSE_SECONDS * 4:
            self.units = max(self.units * SLOWER, UNITS_MIN)
        self._raised = now


class TargetClient:
    """A client of the target that waits for throttling and restarts."""

    def __init__(
        self,
        endpoint: str | None,
        region: str,
        write_units: float | None = None,
        agent: str = "",
    ) -> None:
        self.endpoint = endpoint or "Amazon DynamoDB"
        self.region = region
        self._loop = uvloop.new_event_loop()
        self.client = Client(endpoint, region, connections=AT_ONCE, tries=1, agent=agent)
        self.pace = WritePace(write_units)
        self.errors = 0
        """Counts error responses, throttling, and requests without a response."""
        self.away_seconds_max: float = AWAY_SECONDS_MAX
        self.is_interrupted = False
        """True after an interrupt inside the event loop, which must not run again."""

    def close(self) -> None:
        if not self.is_interrupted:
            self._run(self.client.close())
            self._loop.close()

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        return self._run(self._call(operation, request))

    def call_once(self, operation: str, **request: Any) -> None:
        """Sends a request once, without retries."""
        try:
            self._run(self.client.call("dynamodb", operation, request))
        except ClientError as error:
            self.errors += error.is_passing
            raise

    def _run(self, call: Coroutine[Any, Any, Result]) -> Result:
        try:
            return self._loop.run_until_complete(call)
        except KeyboardInterrupt:
            # It may have come between any two steps of the loop, which must not run again.
            self.is_interrupted = True
            raise

    def wait_for(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Runs another caller's coroutine that uses `client`."""
        return self._run(call)

    async def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        content = await self._send(operation, orjson.dumps(request))
        answer: dict[str, Any] = orjson.loads(content) if content else {}
        return answer

    async def _send(self, operation: str, body: bytes) -> bytes:
        """Sends a request, again and again while the target throttles or is away."""
        pause, away_since = PAUSE_SECONDS, None
        while True:
            try:
                return await self.client.send("dynamodb", operation, body)
            except ClientError as error:
                if not error.is_passing:
                    raise
                self.errors += 1
                if error.code in THROTTLING:
                    self.pace.slow_down()
                    away_since = None
                else:
                    away_since = away_since or time.monotonic()
                    if time.monotonic() - away_since > self.away_seconds_max:
                        raise PartitaError(
                            f"{self.endpoint} does not answer: {error}; run the command again when"
                            " it does, and it goes on from here."
                        ) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    def check_tables(self, tables: Iterable[TableDesign], *, must_be_empty: bool) -> None:
        """Raises PartitaError unless all tables exist, and are empty if they have to be."""
        for table in tables:
            try:
                self.call("DescribeTable", TableName=table.name)
                page = self.call("Scan", TableName=table.name, Limit=1)
            except Unreachable as error:
                raise PartitaError(f"{error.message} Is a server running there?") from error
            except ClientError as error:
                if error.code != "ResourceNotFoundException":
                    raise PartitaError(f"{self.endpoint} refused: {error}") from error
                raise PartitaError(
                    f"{self.endpoint} has no table {table.name}; run `partita migrate create`."
                ) from error
            if must_be_empty and page.get("Items"):
                raise PartitaError(
                    f"{table.name} at {self.endpoint} has items already, which a load would"
                    " overwrite; empty it first."
                )

    # Writing.

    def put_all(self, batches: Iterable[ItemBatch]) -> None:
        """Writes items unconditionally; only right while nothing is followed yet."""
        self._all(self._put_batch(batch) for batch in batches)

    async def _put_batch(self, batch: ItemBatch) -> None:
        pause, units = PAUSE_SECONDS, batch.units
        body = batch.body()
        while True:
            await self.pace.wait(units)
            answer = await self._send("BatchWriteItem", body)
            # The usual answer is recognized by its bytes and not decoded.
            if answer == ALL_PROCESSED:
                return
            left = orjson.loads(answer).get("UnprocessedItems")
            if not left:
                return
            self.pace.slow_down()
            units = batch.units * sum(map(len, left.values())) / len(batch.items)
            body = orjson.dumps({"RequestItems": left})
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    def put_over_older(
        self, writes: Iterable[tuple[TableDesign, Item]], condition: str = ONLY_OVER_OLDER
    ) -> list[tuple[TableDesign, Item, str]]:
        """Writes stamped items and tombstones, each only over an older one.

        Returns those that could not be written, with the reason.
        """
        write_list = list(writes)
        refused = self.put_bodies([put_body(table, item, condition) for table, item in write_list])
        return [(*write_list[place], reason) for place, reason in refused]

    def put_bodies(self, bodies: Sequence[bytes]) -> list[tuple[int, str]]:
        """Sends bodies made by `put_body`; returns the indexes of those that could not be written,
        and why."""
        results = self._all(self._put(place, body) for place, body in enumerate(bodies))
        return [refusal for refusal in results if refusal is not None]

    async def _put(self, place: int, body: bytes) -> tuple[int, str] | None:
        await self.pace.wait(1)
        try:
            await self._send("PutItem", body)
        except ClientError as error:
            if error.code != REFUSED:
                if error.code == "ValidationException":
                    return place, error.message
                raise PartitaError(f"{self.endpoint} refused an item: {error}") from error
            existing_position = position_of(error.body.get("Item", {}))
            if existing_position is None:
                return place, "an item is there that the move has not written"
        return None

    def _all(self, calls: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
        """Runs coroutines on all connections; each connection takes the next one when it is
        free."""
        left = iter(calls)
        done: list[Result] = []

        async def work() -> None:
            for call in left:
                done.append(await call)

        async def run() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(work())

        try:
            self._run(run())
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return done

    # Reading.

    def get_all(self, keys: Sequence[tuple[str, Item]]) -> list[Item | None]:
        """Returns the items of (table, key) pairs in their order, None for those that do not
        exist."""
        items: list[Item | None] = [None] * len(keys)

        async def get(place: int) -> None:
            name, key = keys[place]
            request = {"TableName": name, "Key": key, "ConsistentRead": True}
            items[place] = (await self._call("GetItem", request)).get("Item")

        self._all(get(place) for place in range(len(keys)))
        return items

    def pages(self, name: str, segment: int = 0, segments: int = 1) -> Iterator[list[Item]]:
        """Yields the pages of a table, or of one segment of it."""
        request: dict[str, Any] = {"TableName": name, "ConsistentRead": True}
        if segments > 1:
            request |= {"Segment": segment, "TotalSegments": segments}
        while True:
            answer = self.call("Scan", **request)
            yield answer.get("Items", [])
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
