"""The page of streams: changes as they happen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.processes import Server

from .person import Person


def test_changes_appear_with_what_they_changed(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    name = table(StreamSpecification=view)
    person.open("#/streams")
    person.sees(name, "#streams")
    person.clicks(name)
    person.sees("No changes yet")
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "n": {"N": "1"}, "same": {"S": "x"}})
    person.sees("INSERT", "#records")
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "n": {"N": "2"}, "same": {"S": "x"}})
    person.sees("MODIFY", "#records")
    assert person.cells("#records article:first-child") == [["n", "1", "2"]]
    client.delete_item(TableName=name, Key={"pk": {"S": "a"}})
    person.sees("REMOVE", "#records")
    person.photographs(pictures / "streams.png")


def test_a_table_without_a_stream_says_so(person: Person, table: Callable[..., str]) -> None:
    name = table()
    person.open(f"#/streams/{name}")
    person.sees(f"{name} has no stream: switch one on in its settings.")


def test_records_of_a_kinesis_stream_appear_with_the_shards_they_came_from(
    person: Person, server: Server, pictures: Path
) -> None:
    kinesis = server.client("kinesis")
    kinesis.create_stream(StreamName="clicks", ShardCount=2)
    kinesis.get_waiter("stream_exists").wait(StreamName="clicks", WaiterConfig={"Delay": 1})
    person.open("#/streams")
    person.clicks("clicks")
    person.sees("No records yet")
    kinesis.put_record(StreamName="clicks", PartitionKey="p1", Data=b'{"page": "<b>/a</b>"}')
    person.sees('"page": "<b>/a</b>"', "#records")
    kinesis.put_record(StreamName="clicks", PartitionKey="p2", Data=b"\xff\x00")
    person.sees("ff 00", "#records")
    assert [row[1] for row in person.cells("#shards")] == ["open", "open"]
    person.photographs(pictures / "kinesis.png")
