"""The page of streams: changes as they happen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.functions.packages import create
from tests.processes import Server

from .person import Person, wait_for
from .test_shell import audit


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
    kinesis.get_waiter("stream_exists").wait(
        StreamName="clicks", WaiterConfig={"Delay": 0.02, "MaxAttempts": 3000}
    )
    person.open("#/streams")
    person.clicks("clicks")
    person.sees("No records yet")
    kinesis.put_record(StreamName="clicks", PartitionKey="p1", Data=b'{"page": "<b>/a</b>"}')
    person.sees('"page": "<b>/a</b>"', "#records")
    kinesis.put_record(StreamName="clicks", PartitionKey="p2", Data=b"\xff\x00")
    person.sees("ff 00", "#records")
    assert [row[1] for row in person.cells("#shards")] == ["open", "open"]
    person.photographs(pictures / "kinesis.png")


FAILING = """
def handler(event, context):
    raise ValueError("cannot")
"""
COUNTING = """
def handler(event, context):
    return None
"""


def test_functions_that_read_a_stream_say_how_far_behind_they_are_and_that_they_fail(
    person: Person, server: Server, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    view = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    name = table(StreamSpecification=view)
    arn = client.describe_table(TableName=name)["Table"]["LatestStreamArn"]
    person.open(f"#/streams/{name}")
    person.sees("No function is called with these records.")
    functions = server.client("lambda")
    for function, source in (("failing", FAILING), ("counting", COUNTING)):
        create(functions, function, source)
        functions.create_event_source_mapping(
            EventSourceArn=arn,
            FunctionName=function,
            StartingPosition="TRIM_HORIZON",
            MaximumRetryAttempts=3 if function == "counting" else -1,
        )
    for n in range(3):
        client.put_item(TableName=name, Item={"pk": {"S": str(n)}})

    def rows() -> dict[str, list[str]]:
        return {row[0].split()[0]: row for row in person.cells("#mappings")}

    wait_for(lambda: len(rows()) == 2, "both functions")
    wait_for(lambda: rows()["failing"][2] == "PROBLEM: Function call failed", "the failure")
    wait_for(
        lambda: rows()["failing"][3].startswith("3 records, "), "what the failing one has not read"
    )
    wait_for(lambda: rows()["counting"][3] == "nothing", "that the other has read all")
    assert rows()["counting"][2] == "OK"
    assert rows()["counting"][4] == "given up after 3 retries"
    assert rows()["failing"][4] == "tried again for ever"
    person.clicks("Shards: 4")
    assert [row[1] for row in person.cells("#shards")] == ["open"] * 4
    person.photographs(pictures / "consumers.png")
    audit(person)
    for one in functions.list_event_source_mappings()["EventSourceMappings"]:
        functions.delete_event_source_mapping(UUID=one["UUID"])


def test_workers_that_share_a_kinesis_stream_are_shown_with_their_leases_and_lag(
    person: Person, server: Server, client: Any, table: Callable[..., str]
) -> None:
    kinesis = server.client("kinesis")
    kinesis.create_stream(StreamName="leased", ShardCount=1)
    kinesis.get_waiter("stream_exists").wait(
        StreamName="leased", WaiterConfig={"Delay": 0.02, "MaxAttempts": 3000}
    )
    sent = [kinesis.put_record(StreamName="leased", PartitionKey="p", Data=b"1") for _ in range(5)]
    leases = table("stream", "shard")
    lease = {
        "stream": {"S": "leased"},
        "shard": {"S": sent[0]["ShardId"]},
        "owner": {"S": "worker-1"},
        "counter": {"N": "7"},
        "checkpoint": {"S": sent[1]["SequenceNumber"]},
    }
    client.put_item(TableName=leases, Item=lease)
    person.open("#/streams/kinesis/leased")
    person.sees("No function is called with these records.")
    articles = "document.querySelectorAll('#records article').length"
    wait_for(lambda: person.browser.evaluate(articles) == 5, "the records")
    person.fills("Table of leases", leases)
    person.clicks("Show leases")
    wait_for(lambda: person.cells("#leases"), "the lease")
    shard, worker, checkpoint, behind = person.cells("#leases")[0]
    assert (shard, worker) == (sent[0]["ShardId"], "worker-1")
    assert checkpoint == sent[1]["SequenceNumber"] and behind.startswith("3 records, ")
    assert f"leases={leases}" in person.browser.evaluate("location.hash")
