"""Counts of open windows as items, so that a counter can be killed at any moment.

Counts are written as *segments*, each what was counted in one window since the segment before it.
One item, the manifest, names the segments that count, together with the position in the stream up
to which they do: a segment is written first and means nothing until the manifest names it, so
counts and position change in one write. The manifest carries a version, and whoever writes it says
which one it read: a counter that was thought dead and comes back cannot spoil the work of its
successor.
"""

from __future__ import annotations

import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from partita.apps.pagehits.together import together
from partita.apps.pagehits.windows import FACET_BITS, Counts, Facet, Facets, Window
from partita.client import Client, ClientError
from partita.errors import PartitaError

MANIFEST = {"name": {"S": "manifest"}, "number": {"N": "0"}}
SEGMENTS_PER_LIFE = 10**9
SEGMENT_BYTES_MAX = 360_000
"""Before compression, so that a segment stays below the 400 KB of an item whatever it holds."""
SEGMENT_IDS_MAX = 2_500
"""Each of up to 128 characters."""
COUNT_BYTES = 12
FACET_BYTES = 64
"""Of a facet without its names, encoded."""
CHARACTER_BYTES_MAX = 4
WRITES_AT_A_TIME = 8
READS_AT_A_TIME = 8
BATCH_WRITES_MAX = 25
COMPRESSION_LEVEL = 1
IDS = -1
"""The level of segments that hold ids of records instead of counts."""


class Replaced(PartitaError):
    """Another counter has taken over."""


class Segment(msgspec.Struct, array_like=True):
    number: int
    level: int
    start: int

    @property
    def window(self) -> Window:
        return Window(self.level, self.start)


class Replay(msgspec.Struct, array_like=True):
    """History that is being told."""

    number: int
    """Of the last batch that was counted."""
    clock: float
    """The latest time of a visit that was counted."""
    began: float
    heard: float
    is_done: bool = False


class Amendment(msgspec.Struct, array_like=True):
    """Hits that belong to a window that is closed."""

    id: str
    window: Window
    asset_id: int
    facet: Facet
    hits: int


class Manifest(msgspec.Struct, rename="camel"):
    version: int = 0
    life: int = 0
    """How many counters there have been, one after the other."""
    next_segment: int = 1
    positions: dict[str, str] = {}
    """The sequence number of the last record that was counted, by shard."""
    read_shards: list[str] = []
    """Shards of which nothing is left to read."""
    segments: list[Segment] = []
    replays: dict[str, Replay] = {}
    closed: set[Window] = set()
    """Windows that are closed, while visits may still come for them."""
    closing: set[Window] = set()
    """Those of them that are being handed over."""
    closed_until: float = 0.0
    """Whatever ended this long ago, with the lateness, is closed and can be asked for."""
    edition: int = 0
    """Changes when a window changes that was there to be read before."""
    amendments: list[Amendment] = []
    """What is owed to closed windows."""
    adjustments: dict[str, int] = {}
    """The marks of those that were counted, with when they arrived."""
    late: int = 0
    """Visits that came too late for all windows."""
    counted: int = 0
    repeated: int = 0
    """Records that came twice."""
    malformed: int = 0
    brands: set[str] = set()
    """Of all windows that were handed over."""


class Progress(NamedTuple):
    """What readers of lists need of the manifest."""

    closed_until: float = 0.0
    edition: int = 0
    brands: tuple[str, ...] = ()
    counts: Mapping[str, int] = MappingProxyType({})


class Segments:
    """The table of the counter's state."""

    def __init__(self, client: Client, table: str) -> None:
        self._client = client
        self._table = table

    async def read_manifest(self) -> Manifest:
        answer = await self._client.call(
            "dynamodb",
            "GetItem",
            {"TableName": self._table, "Key": MANIFEST, "ConsistentRead": True},
        )
        if "Item" not in answer:
            return Manifest()
        state = zlib.decompress(b64decode(answer["Item"]["state"]["B"]))
        return msgspec.json.decode(state, type=Manifest)

    async def begin(self) -> Manifest:
        """For a counter that begins: nothing that an earlier one is still writing can matter."""
        manifest = await self.read_manifest()
        manifest.life += 1
        manifest.next_segment = manifest.life * SEGMENTS_PER_LIFE
        await self.write_manifest(manifest)
        return manifest

    async def write_manifest(self, manifest: Manifest) -> None:
        """Makes it the next version, if nobody else has."""
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
                # Segments and marks are many and look alike; compressed, a day of them fits.
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
            # An answer that was lost is asked for again, and then finds its own version.
            found = await self.read_manifest()
            if found != manifest:
                raise Replaced(
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
        await together((self.write(*segment) for segment in segments), WRITES_AT_A_TIME)

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
                "table, or delete it to count from the start of the stream."
            )
        return b64decode(answer["Item"]["data"]["B"])

    async def read_all(self, segments: list[Segment]) -> list[tuple[Segment, bytes]]:
        data = await together((self.read(each.number) for each in segments), READS_AT_A_TIME)
        return list(zip(segments, data, strict=True))

    async def delete_unnamed(self, manifest: Manifest) -> None:
        """What no manifest names any more, or never did."""
        named = {segment.number for segment in manifest.segments}
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#name = :segment",
            "ProjectionExpression": "#number",
            "ExpressionAttributeNames": {"#name": "name", "#number": "number"},
            "ExpressionAttributeValues": {":segment": {"S": "segment"}},
        }
        while True:
            answer = await self._client.call("dynamodb", "Query", request)
            numbers = {int(item["number"]["N"]) for item in answer["Items"]}
            await self.delete(numbers - named)
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def delete(self, numbers: set[int]) -> None:
        """What stays behind is found by `delete_unnamed`."""
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


async def read_progress(client: Client, table: str) -> Progress | None:
    """None where no counter of ours has begun."""
    request = {
        "TableName": table,
        "Key": MANIFEST,
        "ProjectionExpression": "closedUntil, edition, brands, #counts",
        "ExpressionAttributeNames": {"#counts": "counts"},
    }
    item = (await client.call("dynamodb", "GetItem", request)).get("Item")
    if item is None:
        return None
    return Progress(
        float(item["closedUntil"]["N"]),
        int(item["edition"]["N"]),
        tuple(brand["S"] for brand in item["brands"]["L"]),
        {name: int(n["N"]) for name, n in item["counts"]["M"].items()},
    )


def _totals(manifest: Manifest) -> dict[str, int]:
    return {
        "counted": manifest.counted,
        "late": manifest.late,
        "repeated": manifest.repeated,
        "malformed": manifest.malformed,
    }


def encode_counts(counts: Counts, facets: Facets) -> Iterator[bytes]:
    """In pieces that fit an item: for each facet, its assets and their hits as machine numbers."""
    by_facet: dict[Facet, tuple[array[int], array[int]]] = {}
    size_bytes = 0
    # In order, neighbours look alike, which compresses well.
    for key in sorted(counts):
        asset_id, facet = facets.spell_out(key)
        columns = by_facet.get(facet)
        if columns is None:
            columns = by_facet[facet] = (array("q"), array("i"))
            size_bytes += _facet_bytes_max(facet)
        columns[0].append(asset_id)
        columns[1].append(counts[key])
        size_bytes += COUNT_BYTES
        if size_bytes >= SEGMENT_BYTES_MAX:
            yield _encode_columns(by_facet)
            by_facet, size_bytes = {}, 0
    if by_facet:
        yield _encode_columns(by_facet)


def decode_counts(data: bytes, facets: Facets) -> Counts:
    columns = msgspec.msgpack.decode(
        zlib.decompress(data), type=list[tuple[str, int, str, str, bytes, bytes]]
    )
    counts: Counts = {}
    for brand, section_id, paid_type, resource_type, assets, hits in columns:
        number = facets.number(brand, section_id, paid_type, resource_type)
        for asset_id, n in zip(array("q", assets), array("i", hits), strict=True):
            counts[asset_id << FACET_BITS | number] = n
    return counts


def encode_ids(ids: list[str]) -> Iterator[bytes]:
    for first in range(0, len(ids), SEGMENT_IDS_MAX):
        some = ids[first : first + SEGMENT_IDS_MAX]
        yield zlib.compress(msgspec.msgpack.encode(some), COMPRESSION_LEVEL)


def decode_ids(data: bytes) -> list[str]:
    return msgspec.msgpack.decode(zlib.decompress(data), type=list[str])


def _facet_bytes_max(facet: Facet) -> int:
    characters = len(facet.brand) + len(facet.paid_type) + len(facet.resource_type)
    return FACET_BYTES + CHARACTER_BYTES_MAX * characters


def _compressed(data: bytes) -> str:
    return b64encode(zlib.compress(data)).decode()


def _encode_columns(by_facet: dict[Facet, tuple[array[int], array[int]]]) -> bytes:
    columns = [
        (*facet, assets.tobytes(), hits.tobytes()) for facet, (assets, hits) in by_facet.items()
    ]
    return zlib.compress(msgspec.msgpack.encode(columns), COMPRESSION_LEVEL)
