"""Kinesis in CBOR, as Java's clients speak it: bytes as they are, times in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import cbor2
import pytest

CBOR = "application/x-amz-cbor-1.1"
TIME_TAG = 1
Ask = Callable[[str, Any], Any]


@pytest.fixture
def ask(raw: Any) -> Ask:
    """`ask("PutRecord", {...})`: in CBOR and back; bytes are sent untouched."""

    def post(operation: str, content: Any) -> Any:
        headers = {
            "X-Amz-Target": f"Kinesis_20131202.{operation}",
            "Content-Type": CBOR,
            "Accept-Encoding": "gzip",
        }
        body = content if isinstance(content, bytes) else cbor2.dumps(content)
        answer = raw("", body, headers=headers)
        assert answer.headers["content-type"] == CBOR
        assert "content-encoding" not in answer.headers
        tags = {TIME_TAG: lambda value, _: cbor2.CBORTag(TIME_TAG, value)}
        return cbor2.loads(answer.body, semantic_decoders=tags) if answer.body else None

    return post


def test_a_record_there_and_back(ask: Ask, event_stream: Callable[..., str]) -> None:
    name, data = event_stream(), bytes(range(256)) * 20
    before_ms = int(time.time() * 1000)
    ask("PutRecord", {"StreamName": name, "Data": data, "PartitionKey": "schl\u00fcssel"})
    asked = {
        "StreamName": name,
        "ShardId": "shardId-000000000000",
        "ShardIteratorType": "AT_TIMESTAMP",
        "Timestamp": cbor2.CBORTag(TIME_TAG, before_ms),
    }
    [record] = ask("GetRecords", ask("GetShardIterator", asked))["Records"]
    assert (record["Data"], record["PartitionKey"]) == (data, "schl\u00fcssel")
    assert before_ms <= record["ApproximateArrivalTimestamp"].value <= time.time() * 1000


def test_a_refusal(ask: Ask) -> None:
    refused = ask("DescribeStreamSummary", {"StreamName": "no-stream"})
    assert refused["__type"] == "ResourceNotFoundException"
    assert "no-stream" in refused["message"]


@pytest.mark.parametrize("content", [b"\xff", b"\x80", b"\xf6"])
def test_what_is_no_request(ask: Ask, content: bytes) -> None:
    assert ask("ListStreams", content) == {"__type": "SerializationException"}
