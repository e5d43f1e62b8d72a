"""Streams: StreamSpecification, the four operations, and the records that writes leave."""

from __future__ import annotations

from typing import Any

from .notation import (
    ALL_RECORDS,
    ARNS,
    SS,
    THINGS,
    Case,
    N,
    S,
    Step,
    case,
    create,
    delete,
    describe,
    given,
    put,
    send,
    update,
)

VIEW_TYPES = ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")
STREAM, SHARD, ITERATOR = "{stream Things}", "{shard Things}", "{iterator Things}"
NO_STREAM = f"{ARNS}table/Absent/stream/2026-01-01T00:00:00.000"
NUMBER = "000000000000000000001"


def enabled(view_type: str = "NEW_AND_OLD_IMAGES") -> dict[str, Any]:
    return {"StreamEnabled": True, "StreamViewType": view_type}


def streamed(view_type: str = "NEW_AND_OLD_IMAGES", table: str = "Things") -> Step:
    return create(table, "pk:S", StreamSpecification=enabled(view_type))


def specify(table: str = "Things", **specification: Any) -> Step:
    return send("UpdateTable", TableName=table, StreamSpecification=specification)


def records(table: str = "Things") -> Step:
    return send(ALL_RECORDS, TableName=table)


def iterator(kind: str, **more: Any) -> Step:
    asked = {"StreamArn": STREAM, "ShardId": SHARD, "ShardIteratorType": kind, **more}
    return send("GetShardIterator", asked)


WRITES = (
    put({"pk": S("a"), "n": N("1"), "s": SS("x", "y")}),
    put({"pk": S("a"), "n": N("1"), "s": SS("y", "x")}),
    put({"pk": S("a"), "n": N("2")}),
    update({"pk": S("a")}, "SET n = n + :one", values={":one": N("1")}),
    update({"pk": S("a")}, "SET n = :n", values={":n": N("3")}),
    update({"pk": S("b")}, "SET n = :n", values={":n": N("1")}),
    put({"pk": S("c")}),
    delete({"pk": S("a")}),
    delete({"pk": S("absent")}),
    send(
        "BatchWriteItem",
        RequestItems={
            "Things": [
                {"PutRequest": {"Item": {"pk": S("d"), "n": N("1")}}},
                {"PutRequest": {"Item": {"pk": S("c"), "n": N("1")}}},
                {"DeleteRequest": {"Key": {"pk": S("absent")}}},
            ]
        },
    ),
    send(
        "TransactWriteItems",
        TransactItems=[
            {"Put": {"TableName": "Things", "Item": {"pk": S("e")}}},
            {"Delete": {"TableName": "Things", "Key": {"pk": S("c")}}},
            {
                "Update": {
                    "TableName": "Things",
                    "Key": {"pk": S("b")},
                    "UpdateExpression": "SET n = :n",
                    "ExpressionAttributeValues": {":n": N("2")},
                }
            },
        ],
    ),
)


CASES: list[Case] = [
    *(
        one
        for view_type in VIEW_TYPES
        for one in given(streamed(view_type), *WRITES)(case(f"records of {view_type}", records()))
    ),
    case(
        "records of a refused write",
        streamed(),
        put({"pk": S("a")}),
        put({"pk": S("a"), "n": N("1")}, "attribute_not_exists(pk)"),
        records(),
    ),
    case(
        "records of a table with a sort key",
        create("Pairs", "pk:S", "sk:S", StreamSpecification=enabled()),
        put({"pk": S("a"), "sk": S("1"), "n": N("1")}, table="Pairs"),
        put({"pk": S("a"), "sk": S("2")}, table="Pairs"),
        delete({"pk": S("a"), "sk": S("1")}, table="Pairs"),
        records("Pairs"),
    ),
    case(
        "records since a stream was switched on",
        THINGS,
        put({"pk": S("a"), "n": N("1")}),
        specify(**enabled("KEYS_ONLY")),
        put({"pk": S("a"), "n": N("2")}),
        records(),
        describe("Things"),
    ),
    case(
        "a stream that is switched off",
        streamed(table="Paused"),
        put({"pk": S("a")}, table="Paused"),
        specify("Paused", StreamEnabled=False),
        put({"pk": S("b")}, table="Paused"),
        records("Paused"),
        describe("Paused"),
        send("DescribeStream", StreamArn="{stream Paused}"),
        send("ListStreams", TableName="Paused"),
    ),
    case(
        "a stream that is listed",
        streamed(table="Listed"),
        send("ListStreams", TableName="Listed"),
    ),
    case(
        "streams of a table without one",
        create("Unlisted", "pk:S"),
        send("ListStreams", TableName="Unlisted"),
        send("ListStreams", TableName="Absent"),
    ),
    *given(THINGS)(
        case("a stream with a wrong view", specify(StreamEnabled=True, StreamViewType="ALL")),
        case("a stream that there is not", send("DescribeStream", StreamArn=NO_STREAM)),
        case(
            "an iterator of a stream that there is not",
            send(
                "GetShardIterator",
                StreamArn=NO_STREAM,
                ShardId="shardId-" + "0" * 28,
                ShardIteratorType="LATEST",
            ),
        ),
    ),
    *given(streamed())(
        case(
            "a stream is switched off with a view",
            specify(StreamEnabled=False, StreamViewType="KEYS_ONLY"),
        ),
        case("a stream described", send("DescribeStream", StreamArn=STREAM)),
        case("no streams on a page", send("ListStreams", Limit=0)),
        case("too many streams on a page", send("ListStreams", Limit=101)),
        case("no shards on a page", send("DescribeStream", StreamArn=STREAM, Limit=0)),
        case("too many shards on a page", send("DescribeStream", StreamArn=STREAM, Limit=101)),
        case(
            "shards after a name that is too short",
            send("DescribeStream", StreamArn=STREAM, ExclusiveStartShardId="x"),
        ),
        case("no stream described", send("DescribeStream")),
        case("iterators", *(iterator(kind) for kind in ("TRIM_HORIZON", "LATEST"))),
        case("an iterator of no stream", send("GetShardIterator")),
        case(
            "an iterator of a shard that there is not",
            iterator("LATEST", ShardId="shardId-" + "0" * 28),
        ),
        case("an iterator of a wrong kind", iterator("NOWHERE")),
        case("an iterator without its sequence number", iterator("AT_SEQUENCE_NUMBER")),
        case(
            "an iterator with a short sequence number",
            iterator("AT_SEQUENCE_NUMBER", SequenceNumber="1"),
        ),
        case(
            "an iterator with a sequence number that it does not need",
            iterator("LATEST", SequenceNumber=NUMBER),
            iterator("TRIM_HORIZON", SequenceNumber=NUMBER),
        ),
        case("records of an empty shard", send("GetRecords", ShardIterator=ITERATOR)),
        case("records after what is no iterator", send("GetRecords", ShardIterator="x")),
        case("records after nothing", send("GetRecords")),
        case("no records", send("GetRecords", ShardIterator=ITERATOR, Limit=0)),
        case("too many records", send("GetRecords", ShardIterator=ITERATOR, Limit=1001)),
    ),
]
