"""Kinesis: PutRecord and PutRecords. Every record is in its shard, once, in order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from partita.foundation.service_limits import (
    EVENT_RECORD_BYTES_MAX,
    EVENT_RECORD_KIB_MAX,
    KB,
    PUT_RECORDS_BYTES_MAX,
)

from .event_reading import ACCOUNT, HASH_KEYS, open_shards, put, records_in, records_of
from .refusals import refusal

Create = Callable[..., str]
INVALID, VALIDATION = "InvalidArgumentException", "ValidationException"
SERIALIZATION = "SerializationException"


def test_a_record_comes_back_as_it_was_put(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    data, key = bytes(range(256)), 'schl\u00fcssel "\\\u2028\n'
    answer = kinesis.put_record(StreamName=name, Data=data, PartitionKey=key)
    [record] = records_of(kinesis, name)
    assert record.pop("ApproximateArrivalTimestamp").timestamp() > 0
    assert record == {
        "SequenceNumber": answer["SequenceNumber"],
        "Data": data,
        "PartitionKey": key,
    }
    assert answer["ShardId"] == "shardId-000000000000"


def test_a_record_may_be_empty(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    put(kinesis, name, b"")
    assert [record["Data"] for record in records_of(kinesis, name)] == [b""]


def test_the_hash_of_the_key_chooses_the_shard(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(5)
    shards = open_shards(kinesis, name)
    keys = [f"key {number} \u00e9" for number in range(50)]
    answer = kinesis.put_records(
        StreamName=name, Records=[{"Data": b"x", "PartitionKey": key} for key in keys]
    )
    for key, receipt in zip(keys, answer["Records"], strict=True):
        hashed = int.from_bytes(hashlib.md5(key.encode()).digest(), "big")
        [expected] = [
            shard["ShardId"]
            for shard in shards
            if int(shard["HashKeyRange"]["StartingHashKey"])
            <= hashed
            <= int(shard["HashKeyRange"]["EndingHashKey"])
        ]
        assert receipt["ShardId"] == expected


def test_an_explicit_hash_key_goes_before_it(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(4)
    for shard in open_shards(kinesis, name):
        for hash_key in shard["HashKeyRange"].values():
            answer = kinesis.put_record(
                StreamName=name, Data=b"x", PartitionKey="k", ExplicitHashKey=hash_key
            )
            assert answer["ShardId"] == shard["ShardId"]


@pytest.mark.parametrize("operation", ["put_record", "put_records"])
def test_an_explicit_hash_key_has_128_bits(
    kinesis: Any, event_stream: Create, operation: str
) -> None:
    name = event_stream()
    record = {"Data": b"x", "PartitionKey": "k", "ExplicitHashKey": str(HASH_KEYS)}
    request = record if operation == "put_record" else {"Records": [record]}
    assert refusal(getattr(kinesis, operation), StreamName=name, **request) == (
        INVALID,
        "Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. "
        f"Specified value was {HASH_KEYS}",
    )
    assert records_of(kinesis, name) == []


def test_receipts_are_in_the_order_of_the_request(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(3)
    sent = [{"Data": b"%d" % number, "PartitionKey": str(number)} for number in range(500)]
    answer = kinesis.put_records(StreamName=name, Records=sent)
    assert answer["FailedRecordCount"] == 0
    found = {record["SequenceNumber"]: record for record in records_of(kinesis, name)}
    assert len(found) == 500
    for record, receipt in zip(sent, answer["Records"], strict=True):
        assert found[receipt["SequenceNumber"]]["Data"] == record["Data"]
        assert receipt.keys() == {"SequenceNumber", "ShardId"}


def test_sequence_numbers_rise_within_a_shard(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(2)
    for number in range(20):
        put(kinesis, name, *[b"%d" % number] * 7, key=f"{number % 3}")
    for shard in open_shards(kinesis, name):
        records = records_in(kinesis, name, shard["ShardId"])
        first = int(shard["SequenceNumberRange"]["StartingSequenceNumber"])
        numbers = [first, *(int(record["SequenceNumber"]) for record in records)]
        assert numbers == sorted(set(numbers))
        assert all(len(record["SequenceNumber"]) == 56 for record in records)


def test_many_writers_keep_the_order_of_their_keys(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(2)
    writers, rounds = 6, 15

    def write(writer: int) -> None:
        for number in range(rounds):
            put(kinesis, name, *(b"%d" % (number * 3 + one) for one in range(3)), key=f"w{writer}")

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    by_key: dict[str, list[int]] = {}
    for record in records_of(kinesis, name):
        by_key.setdefault(record["PartitionKey"], []).append(int(record["Data"]))
    assert by_key == {f"w{writer}": list(range(rounds * 3)) for writer in range(writers)}


def test_ordering_takes_a_number_of_the_past(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    record = {"StreamName": name, "Data": b"x", "PartitionKey": "k"}
    first = kinesis.put_record(**record)["SequenceNumber"]
    second = kinesis.put_record(**record, SequenceNumberForOrdering=first)["SequenceNumber"]
    assert int(second) > int(first)
    # The short numbers of the service's first years still are (kinesalite).
    kinesis.put_record(**record, SequenceNumberForOrdering="0")
    no_version, too_large = int(first) - 1, int(first) + (1 << 143)
    no_shard, in_future = int(first) + (1 << 35), int(first) + (1 << 60)
    for wrong in map(str, (no_version, too_large, no_shard, in_future)):
        assert refusal(kinesis.put_record, **record, SequenceNumberForOrdering=wrong) == (
            INVALID,
            f"ExclusiveMinimumSequenceNumber {wrong} used in PutRecord on stream {name} under "
            f"account {ACCOUNT} is invalid.",
        )


def test_a_record_has_a_megabyte(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    most = EVENT_RECORD_KIB_MAX * KB - len("k")
    kinesis.put_record(StreamName=name, Data=b"x" * most, PartitionKey="k")
    too_large = {"Data": b"x" * (most + 1), "PartitionKey": "k"}
    assert refusal(kinesis.put_record, StreamName=name, **too_large)[0] == INVALID
    small = {"Data": b"small", "PartitionKey": "k"}
    code, text = refusal(kinesis.put_records, StreamName=name, Records=[small, too_large])
    assert code == INVALID
    assert "1024 KiB" in text
    assert [len(record["Data"]) for record in records_of(kinesis, name)] == [most]


def test_a_stream_may_take_larger_records(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(MaxRecordSizeInKiB=2048)
    data = b"x" * (2 << 20)
    assert refusal(kinesis.put_record, StreamName=name, Data=data, PartitionKey="k")[0] == INVALID
    arn = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    kinesis.update_max_record_size(StreamARN=arn, MaxRecordSizeInKiB=10_240)
    kinesis.put_record(StreamName=name, Data=data, PartitionKey="k")
    assert [record["Data"] for record in records_of(kinesis, name)] == [data]
    beyond = b"x" * (EVENT_RECORD_BYTES_MAX + 1)
    refused = refusal(kinesis.put_record, StreamName=name, Data=beyond, PartitionKey="k")
    assert refused == (
        VALIDATION,
        "1 validation error detected: Value at 'data' failed to satisfy constraint: "
        "Member must have length less than or equal to 10485760",
    )


def test_a_request_has_ten_megabytes(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    size = PUT_RECORDS_BYTES_MAX // 16 - len("k")
    records = [{"Data": b"x" * size, "PartitionKey": "k"} for _ in range(16)]
    assert refusal(
        kinesis.put_records,
        StreamName=name,
        Records=[*records[1:], {"Data": b"x" * (size + 1), "PartitionKey": "k"}],
    ) == (INVALID, "Records size exceeds 10 MB limit")
    put(kinesis, name, b"small")
    kinesis.put_records(StreamName=name, Records=records)
    assert len(records_of(kinesis, name)) == 17


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ([], VALIDATION),
        ([{"Data": b"", "PartitionKey": "k"}] * 501, VALIDATION),
        ([{"PartitionKey": "k"}], VALIDATION),
        ([{"Data": b""}], VALIDATION),
        ([{"Data": b"", "PartitionKey": ""}], VALIDATION),
        ([{"Data": b"", "PartitionKey": "k" * 257}], VALIDATION),
        ([{"Data": b"", "PartitionKey": "k", "ExplicitHashKey": "01"}], VALIDATION),
        ([{"Data": b"", "PartitionKey": 1}], SERIALIZATION),
    ],
)
def test_what_are_no_records(
    kinesis: Any, event_stream: Create, records: list[Any], code: str
) -> None:
    name = event_stream()
    assert refusal(kinesis.put_records, StreamName=name, Records=records)[0] == code
    assert records_of(kinesis, name) == []


def test_too_many_records_are_not_repeated(kinesis: Any, event_stream: Create) -> None:
    records = [{"Data": b"x", "PartitionKey": "k"}] * 501
    assert refusal(kinesis.put_records, StreamName=event_stream(), Records=records) == (
        VALIDATION,
        "1 validation error detected: Value at 'records' failed to satisfy constraint: "
        "Member must have length less than or equal to 500",
    )


def test_data_is_base64(raw: Any, event_stream: Create) -> None:
    headers = {
        "X-Amz-Target": "Kinesis_20131202.PutRecord",
        "Content-Type": "application/x-amz-json-1.1",
    }
    record = {"StreamName": event_stream(), "PartitionKey": "k"}
    wrong: Any
    for wrong in ("a", "a===", "----", 1, {}, "YQ"):
        answer = raw("", {**record, "Data": wrong}, headers=headers)
        assert (answer.status, answer.body["__type"]) == (400, SERIALIZATION)
    assert raw("", {**record, "Data": "YQ=="}, headers=headers).status == 200


def test_a_dry_run_writes_nothing(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    record = {"Data": b"x", "PartitionKey": "k"}
    code = "DryRunOperationException"
    assert refusal(kinesis.put_record, StreamName=name, DryRun=True, **record)[0] == code
    assert refusal(kinesis.put_records, StreamName=name, DryRun=True, Records=[record])[0] == code
    assert records_of(kinesis, name) == []
