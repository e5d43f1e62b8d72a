"""Figures that all processes of the service add up in a table, in slots of five minutes.

The counter's state table has an item for each slot, and one for the totals since the beginning.
Figures 7.1 and 7.2 of the thesis average over five minutes and show a week, so that is what is
kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

from page_hit_counter.service.concurrency import pause
from partita.client import Client, ClientError
from partita.foundation.clock import Clock, system_clock

SLOT_SECONDS = 300
KEPT_SECONDS = 8 * 86_400
FLUSH_SECONDS = 2.0
TOTALS = 0
"""The number of the item with the totals; no slot begins at the epoch."""
NAMES = (
    "visits",
    "withheld",
    "refused",
    "writeUnits",
    "consumerRuns",
    "consumerMs",
    "consumerFailures",
    "listHits",
    "listMisses",
    "deliveries",
    "deliveryFailures",
    "partFailures",
)
Values = dict[str, float]


class ServiceFigures:
    def __init__(self, client: Client, table: str, clock: Clock = system_clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._waiting: dict[int, Counter[str]] = {}

    def add(self, name: str, amount: float = 1) -> None:
        slot = int(self._clock()) // SLOT_SECONDS * SLOT_SECONDS
        # Counter is typed for integers, but adds up floats too.
        self._waiting.setdefault(slot, Counter())[name] += amount  # type: ignore[assignment]

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await pause(FLUSH_SECONDS, stop)
            with suppress(ClientError):
                await self.flush()

    async def flush(self) -> None:
        """Adds the waiting figures to the table. After an error they are sent again with the next
        ones; if only the answer was lost they count twice, which is acceptable for figures."""
        while self._waiting:
            slot, counts = self._waiting.popitem()
            try:
                await self._add(slot, counts)
                await self._add(TOTALS, counts)
            except ClientError:
                self._waiting.setdefault(slot, Counter()).update(counts)
                raise

    async def _add(self, number: int, counts: Counter[str]) -> None:
        values = {f":{name}": {"N": f"{amount:.10g}"} for name, amount in counts.items()}
        sums = ", ".join(f"#{name} :{name}" for name in counts)
        update = f"ADD {sums}"
        if number != TOTALS:
            update += " SET expirationTime = :until"
            values[":until"] = {"N": str(number + KEPT_SECONDS)}
        await self._call(
            "UpdateItem",
            Key={"name": {"S": "figures"}, "number": {"N": str(number)}},
            UpdateExpression=update,
            ExpressionAttributeNames={f"#{name}": name for name in counts},
            ExpressionAttributeValues=values,
        )

    async def totals(self) -> Values:
        key = {"name": {"S": "figures"}, "number": {"N": str(TOTALS)}}
        answer = await self._call("GetItem", Key=key, ConsistentRead=True)
        return dict.fromkeys(NAMES, 0.0) | _values(answer.get("Item", {}))

    async def slots(self, since: float) -> list[tuple[int, Values]]:
        """Returns the slots since a time in order, without those in which nothing happened."""
        answer = await self._call(
            "Query",
            KeyConditionExpression="#name = :figures AND #number >= :since",
            ExpressionAttributeNames={"#name": "name", "#number": "number"},
            ExpressionAttributeValues={
                ":figures": {"S": "figures"},
                ":since": {"N": str(max(1, int(since)))},
            },
        )
        return [(int(item["number"]["N"]), _values(item)) for item in answer["Items"]]

    async def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        return await self._client.call("dynamodb", operation, {"TableName": self._table, **request})


def _values(item: dict[str, Any]) -> Values:
    return {name: float(item[name]["N"]) for name in NAMES if name in item}
