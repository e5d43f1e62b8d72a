"""The table of workflows, over the wire: put, read and list records of any kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

import msgspec

from partita.client import Client, ClientError
from partita.workflows.running.storage import items
from partita.workflows.running.storage.items import Action, Item

Record = TypeVar("Record", bound=msgspec.Struct)

TABLE_SECONDS = 0.05
BATCH_DELETES_MAX = 25


class Table:
    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    async def prepare(self) -> None:
        """Create the table, unless it exists."""
        try:
            await self.call("CreateTable", items.table_definition(self._name))
        except ClientError as error:
            if error.code != "ResourceInUseException":
                raise
        while True:
            described = await self.call("DescribeTable", {})
            if described["Table"]["TableStatus"] == "ACTIVE":
                return
            await asyncio.sleep(TABLE_SECONDS)

    async def put(
        self,
        partition: str,
        sort: str,
        record: bytes,
        attributes: Item | None = None,
        condition: Item | None = None,
    ) -> Action:
        """The action that writes a record; what does not fit into its item is written before."""
        item, rest = items.pack(partition, sort, record, attributes or {})
        if rest:
            await asyncio.gather(*(self.call("PutItem", {"Item": one}) for one in rest))
        return {"Put": {"TableName": self._name, "Item": item, **(condition or {})}}

    def delete(self, partition: str, sort: str, condition: Item | None = None) -> Action:
        key = items.key(partition, sort)
        return {"Delete": {"TableName": self._name, "Key": key, **(condition or {})}}

    async def remove(self, partition: str, name: str) -> None:
        await self.call("DeleteItem", {"Key": items.key(partition, name)})

    async def delete_all(self, keys: Sequence[Item]) -> None:
        for start in range(0, len(keys), BATCH_DELETES_MAX):
            batch = keys[start : start + BATCH_DELETES_MAX]
            requests: Any = {self._name: [{"DeleteRequest": {"Key": one}} for one in batch]}
            while requests:
                answer = await self._client.call(
                    "dynamodb", "BatchWriteItem", {"RequestItems": requests}
                )
                requests = answer.get("UnprocessedItems")

    async def read(self, partition: str, sort: str, kind: type[Record]) -> Record | None:
        item = await self.get(partition, sort)
        return None if item is None else msgspec.json.decode(await self.record(item), type=kind)

    async def get(self, partition: str, sort: str) -> Item | None:
        request = {"Key": items.key(partition, sort), "ConsistentRead": True}
        item: Item | None = (await self.call("GetItem", request)).get("Item")
        return item

    async def record(self, item: Item) -> bytes:
        keys = items.rest_keys(item)
        rest = await asyncio.gather(*(self.get(key["pk"]["S"], key["sk"]["S"]) for key in keys))
        return items.unpack(item, [one for one in rest if one is not None])

    async def each(self, request: Item, operation: str = "Query") -> AsyncIterator[Item]:
        if "IndexName" not in request:
            request = {**request, "ConsistentRead": True}
        while True:
            page = await self.call(operation, request)
            for item in page["Items"]:
                yield item
            if "LastEvaluatedKey" not in page:
                return
            request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}

    async def call(self, operation: str, request: Item) -> dict[str, Any]:
        return await self._client.call("dynamodb", operation, {"TableName": self._name, **request})

    async def page(
        self,
        partition: str,
        kind: type[Record],
        limit: int,
        after: str | None = None,
        *,
        is_reverse: bool = False,
    ) -> tuple[list[Record], str | None]:
        """Records of a partition in order of sort keys, and the sort key to continue after."""
        request = query("pk = :pk", {":pk": partition})
        request["ScanIndexForward"] = not is_reverse
        if after is not None:
            request["ExclusiveStartKey"] = items.key(partition, after)
        records: list[Record] = []
        last = ""
        async for item in self.each(request):
            if item["sk"]["S"].startswith("rest#"):
                continue
            if len(records) == limit:
                return records, last
            content = await self.record(item)
            records.append(msgspec.json.decode(content, type=kind))
            last = item["sk"]["S"]
        return records, None

    async def keys(self, partition: str) -> list[Item]:
        request = {**query("pk = :pk", {":pk": partition}), "ProjectionExpression": "pk, sk"}
        return [item async for item in self.each(request)]


def query(condition: str, values: dict[str, str]) -> dict[str, Any]:
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {name: {"S": value} for name, value in values.items()},
    }
