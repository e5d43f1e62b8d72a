"""A table of records on the server, over the wire: the store of functions and of workflows.

A record is JSON that people can read. A long one is compressed, and cut into several items.

    PARTITION / SORT       a record
    PARTITION / rest#ID#0  a further item of a record that is too long for one
"""

from __future__ import annotations

import asyncio
import base64
import sys
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
"""A write in a transaction."""
Record = TypeVar("Record", bound=msgspec.Struct)

TABLE_SECONDS = 0.05
BATCH_DELETES_MAX = 25
PLAIN_BYTES_MAX = 64 * KB
"""Longer records are compressed."""
PIECE_BYTES_MAX = 350 * KB
THREAD_BYTES = 1 * MB
"""Longer records are compressed in a thread, so that the event loop goes on."""


class RecordConflict(Exception):
    """Raised when the condition of a write failed: the record is not new, or another write came
    first."""


class RecordTable:
    """`definition` has the parameters of CreateTable; the keys of the table are `pk` and `sk`."""

    def __init__(self, client: Client, definition: Item) -> None:
        self._client = client
        self._definition = definition
        self._name: str = definition["TableName"]

    async def prepare(self) -> None:
        """Create the table, unless it exists."""
        try:
            await self._client.call("dynamodb", "CreateTable", self._definition)
        except ClientError as error:
            if error.code != "ResourceInUseException":
                raise
        named = {"TableName": self._name}
        while True:
            described = await self._client.call("dynamodb", "DescribeTable", named)
            if described["Table"]["TableStatus"] == "ACTIVE":
                return
            await asyncio.sleep(TABLE_SECONDS)

    # Records

    async def find(self, partition: str, sort: str, kind: type[Record]) -> Record | None:
        item = await self.get(partition, sort)
        return None if item is None else msgspec.json.decode(await self.record(item), type=kind)

    async def all(self, partition: str, kind: type[Record]) -> list[Record]:
        return (await self.page(partition, kind, sys.maxsize))[0]

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

    async def erase(self, partition: str, sort: str) -> None:
        """Delete a record with its further items."""
        item = await self.get(partition, sort)
        if item is not None:
            await self.delete_all([key(partition, sort), *rest_keys(item)])

    async def erase_all(self, partition: str) -> None:
        await self.delete_all(await self.keys(partition))

    # Writes of a transaction

    async def put(
        self,
        partition: str,
        sort: str,
        record: bytes,
        attributes: Item | None = None,
        condition: Item | None = None,
    ) -> Action:
        """Returns the action that writes a record, after writing what does not fit into its
        item."""
        if len(record) > THREAD_BYTES:
            # zlib releases the interpreter's lock while it compresses.
            item, rest = await asyncio.to_thread(pack, partition, sort, record, attributes or {})
        else:
            item, rest = pack(partition, sort, record, attributes or {})
        if rest:
            await asyncio.gather(*(self.call("PutItem", {"Item": item}) for item in rest))
        return {"Put": {"TableName": self._name, "Item": item, **(condition or {})}}

    def delete(self, partition: str, sort: str, condition: Item | None = None) -> Action:
        named = {"TableName": self._name, "Key": key(partition, sort)}
        return {"Delete": {**named, **(condition or {})}}

    # Items

    async def delete_all(self, keys: Sequence[Item]) -> None:
        for start in range(0, len(keys), BATCH_DELETES_MAX):
            batch = keys[start : start + BATCH_DELETES_MAX]
            requests: Any = {self._name: [{"DeleteRequest": {"Key": key}} for key in batch]}
            while requests:
                answer = await self.send("BatchWriteItem", {"RequestItems": requests})
                requests = answer.get("UnprocessedItems")

    async def get(self, partition: str, sort: str) -> Item | None:
        request = {"Key": key(partition, sort), "ConsistentRead": True}
        item: Item | None = (await self.call("GetItem", request)).get("Item")
        return item

    async def record(self, item: Item) -> bytes:
        """The whole record of an item; its further items are read."""
        keys = rest_keys(item)
        rest = await asyncio.gather(*(self.get(key["pk"]["S"], key["sk"]["S"]) for key in keys))
        return unpack(item, [item for item in rest if item is not None])

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
        """Call an operation on this table."""
        return await self.send(operation, {"TableName": self._name, **request})

    async def send(self, operation: str, request: Item) -> dict[str, Any]:
        """Call an operation whose request names this table.

        If somebody has deleted the table, everything in it is gone, and it is created again.
        """
        try:
            return await self._client.call("dynamodb", operation, request)
        except ClientError as error:
            if error.code != "ResourceNotFoundException":
                raise
        await self.prepare()
        return await self._client.call("dynamodb", operation, request)

    async def keys(self, partition: str) -> list[Item]:
        request = {**query("pk = :pk", {":pk": partition}), "ProjectionExpression": "pk, sk"}
        return [item async for item in self.each(request)]


def definition(table: str, *more_attributes: str, indexes: Sequence[Item] = ()) -> Item:
    """The parameters of CreateTable. `more_attributes` are keys of indexes."""
    described: Item = {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", *more_attributes)
        ],
        "KeySchema": key_schema("pk", "sk"),
    }
    return {**described, "GlobalSecondaryIndexes": list(indexes)} if indexes else described


def key_schema(*names: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


def versions_of(name: str) -> str:
    """The partition of the versions of a machine or a function."""
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
    """The item of a record, and further items if the record is too long for one.

    The further items have new, random keys. They are written first, and nobody sees them until the
    item that names them is written.
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
    """The keys of the further items of a record."""
    if "rest" not in item:
        return []
    partition, name = item["pk"]["S"], item["rest"]["S"]
    return [key(partition, f"{name}#{number}") for number in range(int(item["pieces"]["N"]))]


def unpack(item: Item, rest: Sequence[Item]) -> bytes:
    """The record of an item and its further items, in order."""
    if "record" in item:
        text: str = item["record"]["S"]
        return text.encode()
    return zlib.decompress(
        b"".join(base64.b64decode(part["packed"]["B"]) for part in (item, *rest))
    )


def action_bytes(action: Action) -> int:
    """The approximate size of a write."""
    item = action["Put"]["Item"] if "Put" in action else {}
    content = item.get("record") or item.get("packed") or {}
    return sum(map(len, content.values())) + KB


ABSENT: Item = {"ConditionExpression": "attribute_not_exists(pk)"}
