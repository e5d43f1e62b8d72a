"""Reading the stream: all shards, parents before children, from a position on.

The counter knows nothing of shards: it gives `read` a function that takes records, saves the
positions that `StreamReader` keeps up to date, and asks for the watermark.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any, NamedTuple

from partita.apps.pagehits.concurrency import run_all
from partita.client import Client, ClientError
from partita.clock import Clock

RECORDS_PER_READ_MAX = 1_000
LIST_SHARDS_SECONDS = 10.0
SETTLE_SECONDS = 0.5
"""A record may have been stamped this long before it can be read."""


class Record(NamedTuple):
    sequence_number: str
    arrived: float
    data: bytes


Take = Callable[[Record, float], None]
"""`take(record, watermark)`, in the order of each shard."""


class Outcome(NamedTuple):
    """Of one read of all shards."""

    has_moved: bool
    """Whether the positions have changed."""
    is_behind: bool
    """Whether there is more to read right now."""


class StreamReader:
    def __init__(
        self,
        client: Client,
        stream: str,
        positions: dict[str, str],
        read_shards: list[str],
        clock: Clock,
    ) -> None:
        """`positions` has the last sequence number that was read of each shard, `read_shards` the
        shards of which nothing is left. Both are kept up to date, for the caller to save."""
        self._client = client
        self._stream = stream
        self._positions = positions
        self._read_shards = read_shards
        self._clock = clock
        self._shards: dict[str, _Shard] = {}
        self._read_until: dict[str, float] = {}
        self._listed_at = 0.0

    @property
    def watermark(self) -> float:
        """Everything that arrived before this moment has been read."""
        return min(self._read_until.values(), default=0.0)

    async def read(self, take: Take) -> Outcome:
        """Read each shard once."""
        if not self._shards or self._clock() - self._listed_at > LIST_SHARDS_SECONDS:
            await self._list_shards()
        names = list(self._shards)
        reads = await run_all((self._shards[name].read() for name in names), len(names) or 1)
        for name, read in zip(names, reads, strict=True):
            self._hand_out(name, read, take)
        has_finished = any(read.is_over for read in reads)
        if has_finished:
            # Before any window closes: the children of a finished shard are not read yet.
            await self._list_shards()
        return Outcome(
            has_moved=has_finished or any(read.records for read in reads),
            is_behind=has_finished or any(read.is_behind for read in reads),
        )

    def _hand_out(self, name: str, read: _Read, take: Take) -> None:
        watermark = self.watermark
        for record in read.records:
            take(record, watermark)
        if read.records:
            self._positions[name] = read.records[-1].sequence_number
        self._read_until[name] = max(self._read_until[name], read.arrived_until)
        if read.is_over:
            self._read_shards.append(name)
            self._positions.pop(name, None)
            del self._shards[name]

    async def _list_shards(self) -> None:
        """Those whose parents are read to their end, and that are not so themselves."""
        listed = await self._listed()
        names = {shard["ShardId"] for shard in listed}
        finished = set(self._read_shards)
        shards = {}
        for shard in listed:
            name = shard["ShardId"]
            parents = {shard.get("ParentShardId"), shard.get("AdjacentParentShardId")}
            if name not in finished and not (parents & names) - finished:
                shards[name] = self._shards.get(name) or self._shard(name)
        self._shards = shards
        self._read_until = {name: self._read_until.get(name, 0.0) for name in shards}
        self._listed_at = self._clock()

    async def _listed(self) -> list[dict[str, Any]]:
        shards: list[dict[str, Any]] = []
        request = {"StreamName": self._stream}
        while True:
            answer = await self._client.call("kinesis", "ListShards", request)
            shards += answer["Shards"]
            if not answer.get("NextToken"):
                return shards
            request = {"NextToken": answer["NextToken"]}

    def _shard(self, name: str) -> _Shard:
        position = self._positions.get(name)
        return _Shard(self._client, self._stream, name, position, self._clock)


class _Read(NamedTuple):
    """What one read of a shard brought."""

    records: list[Record]
    arrived_until: float
    """Nothing will come that arrived before this moment."""
    is_behind: bool
    is_over: bool
    """The shard is closed, and all of it is read."""


class _Shard:
    """One shard, from a position on."""

    def __init__(
        self, client: Client, stream: str, name: str, position: str | None, clock: Clock
    ) -> None:
        self._client = client
        self._stream = stream
        self._name = name
        self._position = position
        self._clock = clock
        self._iterator: str | None = None

    async def read(self) -> _Read:
        if self._iterator is None:
            self._iterator = await self._new_iterator()
        asked = self._clock()
        try:
            answer = await self._client.call(
                "kinesis",
                "GetRecords",
                {"ShardIterator": self._iterator, "Limit": RECORDS_PER_READ_MAX},
            )
        except ClientError as error:
            if error.code != "ExpiredIteratorException":
                raise
            self._iterator = await self._new_iterator()
            return await self.read()
        records = [_record(record) for record in answer["Records"]]
        if records:
            self._position = records[-1].sequence_number
        self._iterator = answer.get("NextShardIterator")
        is_behind = bool(answer.get("MillisBehindLatest", 0))
        if self._iterator is None:
            until = float("inf")
        elif not is_behind:
            until = asked - SETTLE_SECONDS
        else:
            until = records[-1].arrived if records else 0.0
        return _Read(records, until, is_behind, self._iterator is None)

    async def _new_iterator(self) -> str:
        request = {"StreamName": self._stream, "ShardId": self._name}
        if self._position is None:
            request["ShardIteratorType"] = "TRIM_HORIZON"
        else:
            request["ShardIteratorType"] = "AFTER_SEQUENCE_NUMBER"
            request["StartingSequenceNumber"] = self._position
        answer = await self._client.call("kinesis", "GetShardIterator", request)
        return str(answer["ShardIterator"])


def _record(record: dict[str, Any]) -> Record:
    return Record(
        record["SequenceNumber"],
        float(record["ApproximateArrivalTimestamp"]),
        b64decode(record["Data"]),
    )
