"""Reading tables over the wire, as they are and as they were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any, Final, NamedTuple

from partita.client import Client, ClientError
from partita.errors import PartitaError
from partita.exchange.moments import shown

Item = dict[str, dict[str, Any]]
"""As the wire has it: each attribute with its type."""

SEGMENTS: Final = 4
"""How many parts of a table are read at a time."""
NAME_CHARS_MAX: Final = 255
POLL_SECONDS: Final = (0.02, 0.5)
UNAVAILABLE: Final = "PointInTimeRecoveryUnavailableException"


class Described(NamedTuple):
    name: str
    key_names: tuple[str, ...]
    attribute_types: dict[str, str]
    item_count: int

    def key_of(self, item: Item) -> Item:
        return {name: item[name] for name in self.key_names}


async def describe(client: Client, name: str) -> Described:
    found = (await client.call("dynamodb", "DescribeTable", {"TableName": name}))["Table"]
    kinds = {one["AttributeName"]: one["AttributeType"] for one in found["AttributeDefinitions"]}
    keys = tuple(one["AttributeName"] for one in found["KeySchema"])
    return Described(name, keys, {key: kinds[key] for key in keys}, found["ItemCount"])


async def pages(
    client: Client, operation: str, request: dict[str, Any], limit: int | None = None
) -> AsyncIterator[list[Item]]:
    """All pages of a Scan or a Query, up to so many items."""
    left = limit
    while left is None or left > 0:
        page = await client.call("dynamodb", operation, request)
        items: list[Item] = page["Items"] if left is None else page["Items"][:left]
        yield items
        left = None if left is None else left - len(items)
        if "LastEvaluatedKey" not in page:
            return
        request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}


async def scan(client: Client, name: str, segments: int = SEGMENTS) -> AsyncIterator[list[Item]]:
    """All items, in the order in which they come."""
    found: asyncio.Queue[list[Item] | None] = asyncio.Queue(2 * segments)

    async def read(segment: int) -> None:
        request = {"TableName": name, "ConsistentRead": True}
        if segments > 1:
            request |= {"Segment": segment, "TotalSegments": segments}
        async for items in pages(client, "Scan", request):
            await found.put(items)

    async def read_all() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for segment in range(segments):
                    group.create_task(read(segment))
        finally:
            await found.put(None)

    reading = asyncio.create_task(read_all())
    try:
        while (items := await found.get()) is not None:
            yield items
        await _first_error(reading)
    finally:
        reading.cancel()


async def _first_error(task: asyncio.Task[None]) -> None:
    try:
        await task
    except* ClientError as group:
        error = group.exceptions[0]
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@asynccontextmanager
async def at(
    client: Client, name: str, moment: float | None, *, has_indexes: bool = False
) -> AsyncIterator[str]:
    """The name of a table that has what another had at a moment; None is now.

    The past is restored into a table of its own, which is deleted in the end.
    """
    if moment is None:
        yield name
        return
    await _check_moment(client, name, moment)
    suffix = f".at.{int(moment)}.{token_hex(3)}"
    copy = name[: NAME_CHARS_MAX - len(suffix)] + suffix
    request: dict[str, Any] = {
        "SourceTableName": name,
        "TargetTableName": copy,
        "RestoreDateTime": moment,
        "BillingModeOverride": "PAY_PER_REQUEST",
    }
    if not has_indexes:
        request |= {"GlobalSecondaryIndexOverride": [], "LocalSecondaryIndexOverride": []}
    await client.call("dynamodb", "RestoreTableToPointInTime", request)
    try:
        await until_active(client, copy)
        yield copy
    finally:
        await _delete(client, copy)


async def _check_moment(client: Client, name: str, moment: float) -> None:
    answer = await client.call("dynamodb", "DescribeContinuousBackups", {"TableName": name})
    found = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    if found.get("PointInTimeRecoveryStatus") != "ENABLED":
        raise PartitaError(
            f"Recovery is off for table {name}: its past is not kept; switch it on with "
            "`aws dynamodb update-continuous-backups` for the next time."
        )
    earliest, latest = (
        found.get(f"{which}RestorableDateTime", moment + 1) for which in ("Earliest", "Latest")
    )
    if not earliest <= moment <= latest + 1:
        raise PartitaError(
            f"Table {name} was not kept at {shown(moment)}: choose a moment from "
            f"{shown(earliest)} to {shown(latest)}."
        )


async def until_active(client: Client, name: str) -> None:
    pause, most = POLL_SECONDS
    while True:
        answer = await client.call("dynamodb", "DescribeTable", {"TableName": name})
        if answer["Table"]["TableStatus"] == "ACTIVE":
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, most)


async def _delete(client: Client, name: str) -> None:
    """Whatever happens meanwhile: it is nobody else's."""
    await asyncio.shield(asyncio.ensure_future(_deleted(client, name)))


async def _deleted(client: Client, name: str) -> None:
    # A table that is being restored cannot be deleted.
    await until_active(client, name)
    await client.call("dynamodb", "DeleteTable", {"TableName": name})
