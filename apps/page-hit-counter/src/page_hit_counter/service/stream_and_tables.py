"""Creates the stream and the tables that the parts share. The first part that starts does it."""

from __future__ import annotations

import asyncio
from typing import Any

from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.table_requests import POLL_SECONDS, create_table
from page_hit_counter.storing.closed_windows import UNSTORED
from partita.client import Client, ClientError


async def create(client: Client, settings: PageHitSettings) -> None:
    """Creates what is missing. Several parts may do so at the same time."""
    await asyncio.gather(
        *(
            create_table(client, table, expires=table["TableName"] != settings.assets_table)
            for table in descriptions(settings)
        )
    )
    streams = [settings.stream, *([settings.delivery.stream] if settings.delivery.is_on else [])]
    for name in streams:
        await _create_stream(client, {"StreamName": name, "ShardCount": settings.shards})


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


async def _create_stream(client: Client, description: dict[str, Any]) -> None:
    try:
        await client.call("kinesis", "CreateStream", description)
    except ClientError as error:
        if error.code != "ResourceInUseException":
            raise
    name = {"StreamName": description["StreamName"]}
    while True:
        answer = await client.call("kinesis", "DescribeStreamSummary", name)
        if answer["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE":
            return
        await asyncio.sleep(POLL_SECONDS)
