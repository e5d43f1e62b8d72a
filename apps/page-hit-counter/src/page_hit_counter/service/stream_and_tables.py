"""Creates the stream and the tables that the parts share. The first part that starts does it."""

from __future__ import annotations

import asyncio
from typing import Any

from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.storing.closed_windows import UNSTORED
from partita.client import Client, ClientError

POLL_SECONDS = 0.2


async def create(client: Client, settings: PageHitSettings) -> None:
    """Creates what is missing. Several parts may do so at the same time."""
    for description in descriptions(settings):
        await _create(client, "dynamodb", "CreateTable", description)
    names = [description["TableName"] for description in descriptions(settings)]
    for name in names:
        await _wait_for_table(client, name)
    expiring = (
        settings.table,
        settings.state_table,
        settings.windows_table,
        settings.malformed_table,
    )
    for name in expiring:
        await _expire(client, name)
    streams = [settings.stream, *([settings.delivery.stream] if settings.delivery.is_on else [])]
    for name in streams:
        stream = {"StreamName": name, "ShardCount": settings.shards}
        await _create(client, "kinesis", "CreateStream", stream)
        await _wait_for_stream(client, name)


def descriptions(settings: PageHitSettings) -> list[dict[str, Any]]:
    return [
        _table(settings.table, {"hashKey": "S", "rangeKey": "S"}),
        _table(settings.assets_table, {"assetId": "N"}),
        _table(settings.state_table, {"name": "S", "number": "N"}),
        {
            **_table(settings.windows_table, {"name": "S", "start": "N"}),
            "AttributeDefinitions": _definitions(
                {"name": "S", "start": "N", "unstored": "S", "closedAt": "N"}
            ),
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": UNSTORED,
                    "KeySchema": _schema(("unstored", "closedAt")),
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        },
        _table(settings.malformed_table, {"recordId": "S"}),
    ]


def _table(name: str, keys: dict[str, str]) -> dict[str, Any]:
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": _definitions(keys),
        "KeySchema": _schema(tuple(keys)),
    }


def _definitions(types: dict[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def _schema(names: tuple[str, ...]) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


async def _create(
    client: Client, service: str, operation: str, description: dict[str, Any]
) -> None:
    try:
        await client.call(service, operation, description)
    except ClientError as error:
        if error.code != "ResourceInUseException":
            raise


async def _wait_for_table(client: Client, name: str) -> None:
    while True:
        answer = await client.call("dynamodb", "DescribeTable", {"TableName": name})
        if answer["Table"]["TableStatus"] == "ACTIVE":
            return
        await asyncio.sleep(POLL_SECONDS)


async def _wait_for_stream(client: Client, name: str) -> None:
    while True:
        answer = await client.call("kinesis", "DescribeStreamSummary", {"StreamName": name})
        if answer["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE":
            return
        await asyncio.sleep(POLL_SECONDS)


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
