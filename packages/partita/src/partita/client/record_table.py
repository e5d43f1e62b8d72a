"""Records in a table, over the wire: readable JSON, or compressed and in pieces when it is long.

PARTITION / SORT       a record
PARTITION / rest#ID#0  a further item of a record that is too long for one item
"""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections.abc import AsyncIterator, Sequence
from secrets import token_hex
from typing import Any, TypeVar

import msgspec

from partita.client.aws_client import Client
from partita.client.client_errors import ClientError
from partita.foundation.service_limits import KB, MB

Item = dict[str, Any]
Action = dict[str, Any]
"""A write in TransactWriteItems, such as `{"Put": {...}}`."""
Record = TypeVar("Record", bound=msgspec.Struct)

TABLE_SECONDS = 0.05
BATCH_DELETES_MAX = 25
PLAIN_BYTES_MAX = 64 * KB
"""Longer records are compressed."""
PIECE_BYTES_MAX = 350 * KB
THREAD_BYTES = 1 * MB
"""Longer records are compressed in a thread, so that the event loop is not blocked."""


class RecordTable:
    """A table of records. `definition` is what CreateTable takes; its keys are `pk` and `sk`."""

    def __init__(self, client: Client, definition: Item) -> None:
        self._client = client
        self._definition = definition
        self._name: str = definition["TableName"]

    async def prepare(self) -> None:
        """Create the table, unless it exists."""
        try:
            await self.call("CreateTable", self._definition)
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
        """Returns the action that writes a record; items for the rest of it are written first."""
        if len(record) > THREAD_BYTES:
            item, rest = await asyncio.to_thread(pack, partition, sort, record, attributes or {})
        else:
            item, rest = pack(partition, sort, record, attributes or {})
        if rest:
            await asyncio.gather(*(self.call("PutItem", {"Item": part}) for part in rest))
        return {"Put": {"TableName": self._name, "Item": item, **(condition or {})}}

    def delete(self, partition: str, sort: str, condition: Item | None = None) -> Action:
        named = {"TableName": self._name, "Key": key(partition, sort)}
        return {"Delete": {**named, **(condition or {})}}

    async def remove(self, partition: str, name: str) -> None:
        await self.call("DeleteItem", {"Key": key(partition, name)})

    async def delete_all(self, keys: Sequence[Item]) -> None:
        for start in range(0, len(keys), BATCH_DELETES_MAX):
            batch = keys[start : start + BATCH_DELETES_MAX]
            requests: Any = {self._name: [{"DeleteRequest": {"Key": key}} for key in batch]}
            while requests:
                response = await self._client.call(
                    "dynamodb", "BatchWriteItem", {"RequestItems": requests}
                )
                requests = response.get("UnprocessedItems")

    async def read(self, partition: str, sort: str, kind: type[Record]) -> Record | None:
        item = await self.get(partition, sort)
        return None if item is None else msgspec.json.decode(await self.record(item), type=kind)

    async def get(self, partition: str, sort: str) -> Item | None:
        request = {"Key": key(partition, sort), "ConsistentRead": True}
        item: Item | None = (await self.call("GetItem", request)).get("Item")
        return item

    async def record(self, item: Item) -> bytes:
        keys = rest_keys(item)
        rest = await asyncio.gather(*(self.get(key["pk"]["S"], key["sk"]["S"]) for key in keys))
        return unpack(item, [part for part in rest if part is not None])

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
        """Returns records of a partition in order of sort keys, and the sort key to go on after."""
        request = query("pk = :pk", {":pk": partition})
        request["ScanIndexForward"] = not is_reverse
        if after is not None:
            request["ExclusiveStartKey"] = key(partition, after)
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


def definition(table: str, *more_attributes: str, indexes: Sequence[Item] = ()) -> Item:
    """Returns CreateTable's parameters for a table of records, and indexes on more attributes."""
    parameters: Item = {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", *more_attributes)
        ],
        "KeySchema": key_schema("pk", "sk"),
    }
    return {**parameters, "GlobalSecondaryIndexes": list(indexes)} if indexes else parameters


def key_schema(*names: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


def versions_of(name: str) -> str:
    """Returns the partition key of the versions of a function or a state machine."""
    return f"versions#{name}"


def aliases_of(name: str) -> str:
    return f"aliases#{name}"


def version_sort(number: int) -> str:
    return f"{number:010d}"


def query(condition: str, values: dict[str, str]) -> dict[str, Any]:
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {name: {"S": value} for name, value in values.items()},
    }


def key(partition: str, sort: str) -> Item:
    return {"pk": {"S": partition}, "sk": {"S": sort}}


def pack(partition: str, sort: str, record: bytes, attributes: Item) -> tuple[Item, list[Item]]:
    """Returns the item of a record, and further items if it is too long for one.

    The further items have new random keys. They can be written first, because no reader sees them
    before the item that names them is written.
    """
    named = {**key(partition, sort), **attributes}
    if len(record) <= PLAIN_BYTES_MAX:
        return {**named, "record": {"S": record.decode()}}, []
    packed = zlib.compress(record, 1)
    first, *others = (
        {"packed": {"B": base64.b64encode(packed[start : start + PIECE_BYTES_MAX]).decode()}}
        for start in range(0, len(packed), PIECE_BYTES_MAX)
    )
    if not others:
        return {**named, **first}, []
    name = f"rest#{token_hex(8)}"
    rest = {"rest": {"S": name}, "pieces": {"N": str(len(others))}}
    return {**named, **rest, **first}, [
        {**key(partition, f"{name}#{number}"), **other} for number, other in enumerate(others)
    ]


def rest_keys(item: Item) -> list[Item]:
    """Returns the keys of the further items of a record."""
    if "rest" not in item:
        return []
    partition, name = item["pk"]["S"], item["rest"]["S"]
    return [key(partition, f"{name}#{number}") for number in range(int(item["pieces"]["N"]))]


def unpack(item: Item, rest: Sequence[Item]) -> bytes:
    """Returns the record in an item and its further items, which must be in order."""
    if "record" in item:
        text: str = item["record"]["S"]
        return text.encode()
    pieces = (base64.b64decode(part["packed"]["B"]) for part in (item, *rest))
    return zlib.decompress(b"".join(pieces))


def action_bytes(action: Action) -> int:
    """Returns the approximate size of a write."""
    item = action["Put"]["Item"] if "Put" in action else {}
    content = item.get("record") or item.get("packed") or {}
    return sum(map(len, content.values())) + KB


ABSENT: Item = {"ConditionExpression": "attribute_not_exists(pk)"}
