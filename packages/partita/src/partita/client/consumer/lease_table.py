"""A table of leases: the owner and the checkpoint of each shard, which outlive the workers.

A lease belongs to the worker that last incremented its counter. A worker that sees a counter stand
still for a while takes the lease by incrementing it. From then on all writes of the old owner fail,
so only one worker at a time can save checkpoints. Clocks of different machines are never compared.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from partita.client.aws_client import Client
from partita.client.client_errors import ClientError
from partita.client.consumer.consumer_worker import ConsumerLeaseLost

SHARD_END = "SHARD_END"
"""The checkpoint of a shard whose records have all been processed."""
NOBODY = "-"
TABLE_POLL_SECONDS = 0.2
REFUSED = "ConditionalCheckFailedException"
NAMES = {"#owner": "owner", "#counter": "counter", "#checkpoint": "checkpoint"}


@dataclass(slots=True)
class StoredLease:
    shard_id: str
    owner: str
    counter: int
    checkpoint: str
    is_lost: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Serializes renewals and checkpoints, since each increments the counter."""

    @property
    def is_over(self) -> bool:
        return self.checkpoint == SHARD_END


class LeaseTable:
    """The leases of one stream. Several streams can share a table."""

    def __init__(self, client: Client, table: str, stream: str) -> None:
        self._client = client
        self._table = table
        self._stream = stream

    async def create(self) -> None:
        """Creates the table unless it exists."""
        try:
            await self._call(
                "CreateTable",
                KeySchema=[
                    {"AttributeName": "stream", "KeyType": "HASH"},
                    {"AttributeName": "shard", "KeyType": "RANGE"},
                ],
                AttributeDefinitions=[
                    {"AttributeName": name, "AttributeType": "S"} for name in ("stream", "shard")
                ],
                BillingMode="PAY_PER_REQUEST",
            )
        except ClientError as error:
            if error.code != "ResourceInUseException":
                raise
        while (await self._call("DescribeTable"))["Table"]["TableStatus"] == "CREATING":
            await asyncio.sleep(TABLE_POLL_SECONDS)

    async def all(self) -> dict[str, StoredLease]:
        """Returns all leases by shard ID."""
        leases: dict[str, StoredLease] = {}
        page: dict[str, Any] = {}
        while not page or "LastEvaluatedKey" in page:
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]} if page else {}
            page = await self._call(
                "Query",
                KeyConditionExpression="#stream = :stream",
                ExpressionAttributeNames={"#stream": "stream"},
                ExpressionAttributeValues={":stream": {"S": self._stream}},
                ConsistentRead=True,
                **start,
            )
            for item in page["Items"]:
                lease = _lease(item)
                leases[lease.shard_id] = lease
        return leases

    async def add(self, shard_id: str, checkpoint: str) -> None:
        """Adds a lease without an owner, unless the shard has a lease already."""
        item = {
            **self._key(shard_id),
            "owner": {"S": NOBODY},
            "counter": {"N": "0"},
            "checkpoint": {"S": checkpoint},
        }
        try:
            await self._call(
                "PutItem",
                Item=item,
                ConditionExpression="attribute_not_exists(#shard)",
                ExpressionAttributeNames={"#shard": "shard"},
            )
        except ClientError as error:
            if error.code != REFUSED:
                raise

    async def take(self, lease: StoredLease, owner: str) -> StoredLease | None:
        """Takes a lease and returns it; returns None when another worker was faster."""
        taken = StoredLease(lease.shard_id, owner, lease.counter, lease.checkpoint)
        try:
            await self._increment(taken, lease.owner, owner, lease.checkpoint)
        except ConsumerLeaseLost:
            return None
        return taken

    async def renew(self, lease: StoredLease) -> None:
        async with lease.turn:
            await self._increment(lease, lease.owner, lease.owner, lease.checkpoint)

    async def save_checkpoint(self, lease: StoredLease, checkpoint: str) -> None:
        async with lease.turn:
            await self._increment(lease, lease.owner, lease.owner, checkpoint)

    async def give_back(self, lease: StoredLease) -> None:
        """Frees a lease, so that other workers need not wait until it expires."""
        async with lease.turn:
            await self._increment(lease, lease.owner, NOBODY, lease.checkpoint)
            lease.is_lost = True

    async def remove(self, lease: StoredLease) -> None:
        await self._call("DeleteItem", Key=self._key(lease.shard_id))

    async def _increment(
        self, lease: StoredLease, owner: str, new_owner: str, checkpoint: str
    ) -> None:
        if lease.is_lost:
            raise ConsumerLeaseLost(lease.shard_id)
        condition = "#owner = :owner AND #counter = :counter"
        values = {":owner": owner, ":new": new_owner, ":checkpoint": checkpoint}
        numbers = {":counter": lease.counter, ":next": lease.counter + 1}
        try:
            await self._call(
                "UpdateItem",
                Key=self._key(lease.shard_id),
                UpdateExpression="SET #owner = :new, #counter = :next, #checkpoint = :checkpoint",
                ConditionExpression=condition,
                ExpressionAttributeNames=NAMES,
                ExpressionAttributeValues={
                    **{name: {"S": value} for name, value in values.items()},
                    **{name: {"N": str(value)} for name, value in numbers.items()},
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error.code != REFUSED:
                raise
            if not _is_done(error.body.get("Item"), new_owner, lease.counter + 1, checkpoint):
                lease.is_lost = True
                raise ConsumerLeaseLost(lease.shard_id) from None
        lease.counter += 1
        lease.checkpoint = checkpoint

    def _key(self, shard_id: str) -> dict[str, Any]:
        return {"stream": {"S": self._stream}, "shard": {"S": shard_id}}

    async def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        return await self._client.call("dynamodb", operation, {"TableName": self._table, **request})


def _lease(item: dict[str, Any]) -> StoredLease:
    return StoredLease(
        item["shard"]["S"], item["owner"]["S"], int(item["counter"]["N"]), item["checkpoint"]["S"]
    )


def _is_done(item: dict[str, Any] | None, owner: str, counter: int, checkpoint: str) -> bool:
    """True when a refused update had succeeded before: the client retries after a lost response."""
    if item is None:
        return False
    stored = _lease(item)
    return (stored.owner, stored.counter, stored.checkpoint) == (owner, counter, checkpoint)
