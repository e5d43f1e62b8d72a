"""The streams page: changes as they happen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from testkit.browser.accessibility import audit
from testkit.browser.person import Person, wait_for
from testkit.packaging.function_packages import create
from testkit.requirements import needs_services
from testkit.servers.processes import Server


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
    assert person.cells("#records article:first-child") == [["n", "N 1", "N 2"]]
    client.delete_item(TableName=name, Key={"pk": {"S": "a"}})
    person.sees("REMOVE", "#records")
    person.photographs(pictures / "streams.png")


LONG = "x" * 500
BEFORE = {
    "type": {"S": "1"},
    "map": {"M": {"deep": {"L": [{"N": "1"}, {"S": "same"}]}, "a.b": {"BOOL": True}}},
    "blank": {"S": "a"},
    "long": {"S": f"{LONG}old"},
    "set": {"SS": ["a", "b"]},
    "bytes": {"B": b"\x00" * 100 + b"\x01"},
    "script": {"S": "<b>old</b>"},
    "gone": {"S": ""},
}
AFTER = {
    "type": {"N": "1"},
    "map": {"M": {"deep": {"L": [{"S": "1"}, {"S": "same"}, {"NULL": True}]}, "a.b": {"N": "1"}}},
    "blank": {"S": "a "},
    "long": {"S": f"{LONG}new"},
    "set": {"NS": ["1", "2"]},
    "bytes": {"B": b"\x00" * 100 + b"\x02"},
    "script": {"S": "<b>new</b>"},
}
SHOWN = [
    ["type", "S 1 string", "N 1 number"],
    ["map.deep[0]", "N 1 number", "S 1 string"],
    ["map.deep[2]", "\u2013", "NULL null"],
    ['map."a.b"', "BOOL true boolean", "N 1 number"],
    ["blank", 'S "a"', 'S "a "'],
    ["long", "S \u2026xxxxxxxxxxxxxxxxxxxxold", "S \u2026xxxxxxxxxxxxxxxxxxxxnew"],
    ["set", "SS {a, b} string set", "NS {1, 2} number set"],
    [
        "bytes",
        "B \u2026 at byte 96: 00 00 00 00 01 \u00b7\u00b7\u00b7\u00b7\u00b7",
        "B \u2026 at byte 96: 00 00 00 00 02 \u00b7\u00b7\u00b7\u00b7\u00b7",
    ],
    ["script", "S <b>old</b>", "S <b>new</b>"],
    ["gone", "S (empty)", "\u2013"],
]


def test_a_change_shows_where_values_and_types_differ(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    name = table(StreamSpecification=view)
    for attributes in (BEFORE, AFTER):
        client.put_item(TableName=name, Item={"pk": {"S": "a"}, **attributes})
    person.open(f"#/streams/{name}")
    person.sees("MODIFY", "#records")
    assert sorted(person.cells("#records article:first-child")) == sorted(SHOWN)
    audit(person)
    person.photographs(pictures / "typed.png")


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


@needs_services
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
    assert rows()["failing"][4] == "retried forever"
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
