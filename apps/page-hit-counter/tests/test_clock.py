"""Time comes from the clock that a part receives, never from the machine's."""

from __future__ import annotations

import asyncio
from typing import Any

from page_hit_counter.counting.visit_stream import SETTLE_SECONDS, StreamReader
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.spam.quarantine import DAY_SECONDS, Quarantine
from page_hit_counter.spam.spam_cases import CaseEvidence, WithheldHits
from page_hit_counter.storing.window_consumer import SET_ASIDE_SECONDS, deliver
from partita.client import Client
from partita.client.consumer.kinesis_source import KinesisRecord

NOON = 1_588_766_400.0


def noon() -> float:
    return NOON


class Recorder(Client):
    """Answers from a table instead of a server, and remembers the requests."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._answers = answers

    async def call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((operation, request))
        return self._answers.get(operation, {})


def test_a_malformed_record_expires_by_the_consumers_clock() -> None:
    client = Recorder()
    event = {"records": [{"recordId": "1", "data": "%%%"}]}
    asyncio.run(deliver(client, PageHitSettings(), event, clock=noon))
    ((operation, request),) = client.asked
    assert operation == "PutItem"
    assert request["Item"]["expirationTime"] == {"N": str(int(NOON) + SET_ASIDE_SECONDS)}


def test_the_watermark_of_a_stream_follows_the_readers_clock() -> None:
    client = Recorder(
        ListShards={"Shards": [{"ShardId": "a"}, {"ShardId": "b"}]},
        GetShardIterator={"ShardIterator": "i"},
        GetRecords={"Records": [], "NextShardIterator": "j", "MillisBehindLatest": 0},
    )
    reader = StreamReader(client, "pagehits", {}, [], noon)
    taken: list[KinesisRecord] = []
    outcome = asyncio.run(reader.read(lambda record, watermark: taken.append(record)))
    assert (outcome.has_moved, outcome.is_behind, taken) == (False, False, [])
    assert reader.watermark == NOON - SETTLE_SECONDS


def test_a_case_expires_by_the_quarantines_clock() -> None:
    client = Recorder()
    withheld = WithheldHits(
        brand="abc",
        reason="reload",
        subject="ann",
        time=int(NOON),
        evidence=CaseEvidence(rows=[], visits=[]),
    )
    asyncio.run(Quarantine(client, retention_days=3, clock=noon).keep([withheld]))
    by_operation = dict(client.asked)
    expected = {"N": str(int(NOON) + 3 * DAY_SECONDS)}
    assert by_operation["PutItem"]["Item"]["expirationTime"] == expected
    values = by_operation["UpdateItem"]["ExpressionAttributeValues"]
    assert values[":expirationTime"] == expected
