"""Checkpoints of the counter, which can be killed at any moment and continues from the last one.

Counts are written as *segments*. A segment holds what was counted in one window since the segment
before it. One item, the manifest, names the valid segments and the position in the stream that they
reach. A segment is written first, and is ignored until the manifest names it.

The manifest's version is a fencing token. Writing the manifest is conditional on the version that
the writer has read, so a counter that was believed dead and comes back cannot overwrite the work of
its successor.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from page_hit_counter.counting.segment_manifest import CountSegment, SegmentManifest
from page_hit_counter.service.concurrency import run_all
from page_hit_counter.service.table_requests import query_all
from partita.client import Client, ClientError
from partita.errors import PartitaError

MANIFEST = {"name": {"S": "manifest"}, "number": {"N": "0"}}
SEGMENTS_PER_LIFE = 10**9
WRITES_AT_A_TIME = 8
READS_AT_A_TIME = 8
BATCH_WRITES_MAX = 25


class CheckpointReplaced(PartitaError):
    """Raised when another counter has taken over."""


class CountingProgress(NamedTuple):
    """The part of the manifest that lists need."""

    closed_until: float = 0.0
    edition: int = 0
    brands: tuple[str, ...] = ()
    counts: Mapping[str, int] = MappingProxyType({})


class CheckpointTable:
    """Reads and writes the manifest and the segments, which are items of one table."""

    def __init__(self, client: Client, table: str) -> None:
        self._client = client
        self._table = table

    async def read_manifest(self) -> SegmentManifest:
        answer = await self._client.call(
            "dynamodb",
            "GetItem",
            {"TableName": self._table, "Key": MANIFEST, "ConsistentRead": True},
        )
        if "Item" not in answer:
            return SegmentManifest()
        state = zlib.decompress(b64decode(answer["Item"]["state"]["B"]))
        return msgspec.json.decode(state, type=SegmentManifest)

    async def begin(self) -> SegmentManifest:
        """Returns the manifest for a counter that starts, and fences off earlier counters by
        writing it."""
        manifest = await self.read_manifest()
        manifest.life += 1
        # Each life numbers its segments from a new start, so that a fenced counter cannot overwrite
        # segments of its successor.
        manifest.next_segment = manifest.life * SEGMENTS_PER_LIFE
        await self.write_manifest(manifest)
        return manifest

    async def write_manifest(self, manifest: SegmentManifest) -> None:
        """Writes the manifest as its next version. Raises CheckpointReplaced when another counter
        has written one."""
        manifest.version += 1
        request = {
            "TableName": self._table,
            "Item": {
                **MANIFEST,
                "version": {"N": str(manifest.version)},
                "closedUntil": {"N": str(manifest.closed_until)},
                "edition": {"N": str(manifest.edition)},
                "counts": {"M": {name: {"N": str(n)} for name, n in _totals(manifest).items()}},
                "brands": {"L": [{"S": brand} for brand in sorted(manifest.brands)]},
                # There are many similar segments and marks; compressed, those of a day fit an item.
                "state": {"B": _compressed(msgspec.json.encode(manifest))},
            },
            "ConditionExpression": "attribute_not_exists(#name) OR version = :read",
            "ExpressionAttributeNames": {"#name": "name"},
            "ExpressionAttributeValues": {":read": {"N": str(manifest.version - 1)}},
        }
        try:
            await self._client.call("dynamodb", "PutItem", request)
        except ClientError as error:
            if error.code != "ConditionalCheckFailedException":
                raise
            # The client repeats a request whose answer was lost. The condition then fails because
            # the first attempt was written, which is no conflict.
            if await self.read_manifest() != manifest:
                raise CheckpointReplaced(
                    "Another counter reads the stream; this one stops, so that nothing is "
                    "counted twice."
                ) from error

    async def write(self, number: int, data: bytes) -> None:
        item = {
            "name": {"S": "segment"},
            "number": {"N": str(number)},
            "data": {"B": b64encode(data).decode()},
        }
        await self._client.call("dynamodb", "PutItem", {"TableName": self._table, "Item": item})

    async def write_all(self, segments: list[tuple[int, bytes]]) -> None:
        await run_all((self.write(*segment) for segment in segments), WRITES_AT_A_TIME)

    async def read(self, number: int) -> bytes:
        key = {"name": {"S": "segment"}, "number": {"N": str(number)}}
        answer = await self._client.call(
            "dynamodb",
            "GetItem",
            {"TableName": self._table, "Key": key, "ConsistentRead": True},
        )
        if "Item" not in answer:
            raise PartitaError(
                f"The counter's state in {self._table} lacks its segment {number}: restore the "
                "table from a backup, or delete it to count again from the start of the stream."
            )
        return b64decode(answer["Item"]["data"]["B"])

    async def read_all(self, segments: list[CountSegment]) -> list[tuple[CountSegment, bytes]]:
        data = await run_all((self.read(each.number) for each in segments), READS_AT_A_TIME)
        return list(zip(segments, data, strict=True))

    async def delete_unnamed(self, manifest: SegmentManifest) -> None:
        """Deletes the segments that the manifest does not name."""
        named = {segment.number for segment in manifest.segments}
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#name = :segment",
            "ProjectionExpression": "#number",
            "ExpressionAttributeNames": {"#name": "name", "#number": "number"},
            "ExpressionAttributeValues": {":segment": {"S": "segment"}},
        }
        items = query_all(self._client, request)
        await self.delete({int(item["number"]["N"]) async for item in items} - named)

    async def delete(self, numbers: set[int]) -> None:
        """Deletes segments. What a failure leaves behind, `delete_unnamed` deletes at the next
        start."""
        ordered = sorted(numbers)
        for first in range(0, len(ordered), BATCH_WRITES_MAX):
            keys = (
                {"name": {"S": "segment"}, "number": {"N": str(number)}}
                for number in ordered[first : first + BATCH_WRITES_MAX]
            )
            requests = [{"DeleteRequest": {"Key": key}} for key in keys]
            await self._client.call(
                "dynamodb", "BatchWriteItem", {"RequestItems": {self._table: requests}}
            )


async def read_progress(client: Client, table: str) -> CountingProgress | None:
    """Returns the counter's progress, or None when this counter has never run."""
    request = {
        "TableName": table,
        "Key": MANIFEST,
        "ProjectionExpression": "closedUntil, edition, brands, #counts",
        "ExpressionAttributeNames": {"#counts": "counts"},
    }
    item = (await client.call("dynamodb", "GetItem", request)).get("Item")
    if item is None:
        return None
    return CountingProgress(
        float(item["closedUntil"]["N"]),
        int(item["edition"]["N"]),
        tuple(brand["S"] for brand in item["brands"]["L"]),
        {name: int(n["N"]) for name, n in item["counts"]["M"].items()},
    )


def _totals(manifest: SegmentManifest) -> dict[str, int]:
    return {
        "counted": manifest.counted,
        "late": manifest.late,
        "repeated": manifest.repeated,
        "malformed": manifest.malformed,
    }


def _compressed(data: bytes) -> str:
    return b64encode(zlib.compress(data)).decode()
