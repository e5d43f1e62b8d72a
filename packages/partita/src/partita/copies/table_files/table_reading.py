"""Reading tables through the DynamoDB API, as they are and as they were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any, Final, NamedTuple

from partita.client import Client, ClientError
from partita.copies.time_arguments import format_moment
from partita.errors import PartitaError

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB JSON: {"id": {"S": "7"}}."""

SEGMENTS: Final = 4
"""The number of segments of a parallel scan."""
NAME_CHARS_MAX: Final = 255
POLL_SECONDS: Final = (0.02, 0.5)
UNAVAILABLE: Final = "PointInTimeRecoveryUnavailableException"


class TableDescription(NamedTuple):
    """The parts of a DescribeTable response that these commands use."""

    name: str
    key_names: tuple[str, ...]
    attribute_types: dict[str, str]
    item_count: int

    def key_of(self, item: Item) -> Item:
        return {name: item[name] for name in self.key_names}


async def describe(client: Client, name: str) -> TableDescription:
    table = (await client.call("dynamodb", "DescribeTable", {"TableName": name}))["Table"]
    kinds = {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in table["AttributeDefinitions"]
    }
    keys = tuple(element["AttributeName"] for element in table["KeySchema"])
    return TableDescription(name, keys, {key: kinds[key] for key in keys}, table["ItemCount"])


async def pages(
    client: Client, operation: str, request: dict[str, Any], limit: int | None = None
) -> AsyncIterator[list[Item]]:
    """Yields the pages of a Scan or a Query, up to `limit` items in total."""
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
    """Yields the pages of a parallel scan in the order in which they arrive."""
    arrived: asyncio.Queue[list[Item] | None] = asyncio.Queue(2 * segments)

    async def read(segment: int) -> None:
        request = {"TableName": name, "ConsistentRead": True}
        if segments > 1:
            request |= {"Segment": segment, "TotalSegments": segments}
        async for items in pages(client, "Scan", request):
            await arrived.put(items)

    async def read_all() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for segment in range(segments):
                    group.create_task(read(segment))
        finally:
            # After an error, too: the loop below must end, and then raises it.
            await arrived.put(None)

    reading = asyncio.create_task(read_all())
    try:
        while (items := await arrived.get()) is not None:
            yield items
        await _first_error(reading)
    finally:
        reading.cancel()


async def _first_error(task: asyncio.Task[None]) -> None:
    # A task group raises its errors in a group, but commands show a single one.
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
    """Yields the name of a table with the state of table `name` at a moment; None means now.

    A past state is restored into a temporary table, which is deleted afterwards.
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
        # Reading everything at once would be throttled with a small provisioned capacity.
        "BillingModeOverride": "PAY_PER_REQUEST",
    }
    if not has_indexes:
        # Without indexes the restore is faster.
        request |= {"GlobalSecondaryIndexOverride": [], "LocalSecondaryIndexOverride": []}
    await client.call("dynamodb", "RestoreTableToPointInTime", request)
    try:
        await until_active(client, copy)
        yield copy
    finally:
        await _delete(client, copy)


async def _check_moment(client: Client, name: str, moment: float) -> None:
    answer = await client.call("dynamodb", "DescribeContinuousBackups", {"TableName": name})
    recovery = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        raise PartitaError(
            f"Table {name} has no past states because point-in-time recovery is off; "
            "`aws dynamodb update-continuous-backups` switches it on from now on."
        )
    earliest, latest = (
        recovery.get(f"{which}RestorableDateTime", moment + 1) for which in ("Earliest", "Latest")
    )
    if not earliest <= moment <= latest + 1:
        raise PartitaError(
            f"Table {name} cannot be restored to {format_moment(moment)}: choose a time from "
            f"{format_moment(earliest)} to {format_moment(latest)}."
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
    """Deletes the temporary table even if the command is being cancelled."""
    await asyncio.shield(asyncio.ensure_future(_delete_when_active(client, name)))


async def _delete_when_active(client: Client, name: str) -> None:
    # DeleteTable refuses a table that is being restored.
    await until_active(client, name)
    await client.call("dynamodb", "DeleteTable", {"TableName": name})
