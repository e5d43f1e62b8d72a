"""Requests that several parts make: creating a table, and reading all pages of a Query."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from partita.client import Client, ClientError

POLL_SECONDS = 0.2


async def create_table(client: Client, description: dict[str, Any], *, expires: bool) -> None:
    """Creates a table unless it exists, and returns when it is active. Several parts may do so at
    the same time. With `expires`, items end at the time in their attribute `expirationTime`."""
    name = description["TableName"]
    try:
        await client.call("dynamodb", "CreateTable", description)
    except ClientError as error:
        if error.code != "ResourceInUseException":
            raise
    while True:
        answer = await client.call("dynamodb", "DescribeTable", {"TableName": name})
        if answer["Table"]["TableStatus"] == "ACTIVE":
            break
        await asyncio.sleep(POLL_SECONDS)
    if expires:
        await _expire(client, name)


async def _expire(client: Client, name: str) -> None:
    answer = await client.call("dynamodb", "DescribeTimeToLive", {"TableName": name})
    if answer["TimeToLiveDescription"]["TimeToLiveStatus"] in ("ENABLED", "ENABLING"):
        return
    specification = {"AttributeName": "expirationTime", "Enabled": True}
    try:
        await client.call(
            "dynamodb",
            "UpdateTimeToLive",
            {"TableName": name, "TimeToLiveSpecification": specification},
        )
    except ClientError as error:
        # DynamoDB answers ValidationException when another part has enabled it meanwhile.
        if error.code != "ValidationException":
            raise


async def query_all(client: Client, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Yields the items of a Query, page after page."""
    while True:
        page = await client.call("dynamodb", "Query", request)
        for item in page["Items"]:
            yield item
        if "LastEvaluatedKey" not in page:
            return
        request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}
