"""Requests with very many values are decided in a process beside the server, as drafts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testkit import ROOT
from testkit.servers import processes

from .conftest import Serve

MEMBERS = 60_000
EVERYTHING_IS_LARGE = (sys.executable, "-m", "testkit.servers.everything_is_large")


def large_list() -> dict[str, Any]:
    return {"L": [{"N": "1"}] * MEMBERS}


def put_lists(client: Any, count: int, **more: Any) -> Any:
    items = [{"pk": {"S": f"large-{number}"}, "list": large_list()} for number in range(count)]
    return client.batch_write_item(
        RequestItems={"things": [{"PutRequest": {"Item": item}} for item in items]}, **more
    )


def create_table(client: Any, **more: Any) -> None:
    client.create_table(
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        **more,
    )


def worker_of(server: processes.Server) -> int:
    """The process for large requests, which is the server's only child."""
    pid = server.process.pid
    (worker,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(worker)


def ticks_of(pid: int) -> int:
    """The CPU time of a process in user mode, in hundredths of a second."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


@pytest.fixture
def beside() -> Any:
    """`beside(function, *given)`: called on another thread."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit


Beside = Callable[..., "Future[Any]"]


@pytest.mark.soak
def test_others_are_answered_while_a_large_request_is_decided(
    serve: Serve, tmp_path: Path, beside: Beside
) -> None:
    server = serve(tmp_path / "data")
    client, other = server.client(), server.client()
    create_table(client)
    large = beside(put_lists, client, 20)
    answered = 0
    while not large.done():
        other.put_item(TableName="things", Item={"pk": {"S": f"small-{answered}"}})
        answered += 1
    assert large.result()["UnprocessedItems"] == {}
    # A server that decided it itself would have answered none of them in between.
    assert answered > 100
    stored = client.get_item(TableName="things", Key={"pk": {"S": "large-19"}})["Item"]
    assert len(stored["list"]["L"]) == MEMBERS


@pytest.mark.soak
def test_counts_and_stream_are_right_when_others_write_meanwhile(
    serve: Serve, tmp_path: Path, beside: Beside, assert_clean: Callable[[Path], None]
) -> None:
    server = serve(tmp_path / "data")
    client, other = server.client(), server.client()
    create_table(client, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    small = 0
    for _ in range(3):
        large = beside(put_lists, client, 4)
        while not large.done():
            other.put_item(TableName="things", Item={"pk": {"S": f"small-{small}"}})
            small += 1
        large.result()
    keys = [record["Keys"]["pk"]["S"] for record in all_changes(server)]
    # Putting the same list again changes nothing, so that no change is logged.
    expected = [f"large-{number}" for number in range(4)] + [f"small-{n}" for n in range(small)]
    assert sorted(keys) == sorted(expected)
    assert client.describe_table(TableName="things")["Table"]["ItemCount"] == small + 4
    server.terminate()
    assert_clean(tmp_path / "data")


def all_changes(server: processes.Server) -> list[dict[str, Any]]:
    streams = server.client("dynamodbstreams")
    arn = streams.list_streams(TableName="things")["Streams"][0]["StreamArn"]
    changes = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            page = streams.get_records(ShardIterator=iterator)
            numbers = [int(one["dynamodb"]["SequenceNumber"]) for one in page["Records"]]
            assert numbers == sorted(set(numbers))
            changes += [one["dynamodb"] for one in page["Records"]]
            iterator = page.get("NextShardIterator")
            if not page["Records"]:
                break
    return changes


def test_no_update_is_lost_when_a_draft_is_overtaken(
    serve: Serve, tmp_path: Path, beside: Beside
) -> None:
    server = serve(tmp_path / "data")
    client, other = server.client(), server.client()
    create_table(client)
    put_lists(client, 3)
    increment = {
        "TableName": "things",
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    counter = {"pk": {"S": "counter"}}
    lists = [{"pk": {"S": f"large-{number}"}} for number in range(3)]
    actions = [{"Update": {**increment, "Key": key}} for key in [*lists, counter]]
    rounds, small = 2, 0
    for _ in range(rounds):
        large = beside(client.transact_write_items, TransactItems=actions)
        while not large.done():
            try:
                other.update_item(Key=counter, **increment)
            except other.exceptions.TransactionConflictException:
                continue
            small += 1
        large.result()
    stored = client.get_item(TableName="things", Key=counter, ConsistentRead=True)["Item"]
    assert int(stored["n"]["N"]) == rounds + small
    for key in lists:
        projected = client.get_item(TableName="things", Key=key, ProjectionExpression="n")["Item"]
        assert projected == {"n": {"N": str(rounds)}}


def test_a_refusal_is_the_same_for_a_large_request(serve: Serve, tmp_path: Path) -> None:
    client = serve(tmp_path / "data").client()
    create_table(client)
    item = {"pk": {"S": "large-0"}, "list": large_list()}
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as refused:
        client.put_item(TableName="things", Item=item, ConditionExpression="attribute_exists(pk)")
    assert refused.value.response["Error"]["Message"] == "The conditional request failed"
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.put_item(TableName="nothing", Item=item)
    with pytest.raises(client.exceptions.ClientError, match="Item size has exceeded"):
        client.put_item(TableName="things", Item={**item, "more": {"S": "x" * 300_000}})


@pytest.mark.soak
def test_capacity_of_large_requests_is_charged_once(serve: Serve, tmp_path: Path) -> None:
    client = serve(tmp_path / "data", "--capacity", "enforce").client()
    create_table(client)
    client.update_table(
        TableName="things",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 200},
    )
    # No burst capacity is saved up yet: a list costs 176 units, so that about one fits into a
    # second.
    lists = 20
    answer = put_lists(client, lists, ReturnConsumedCapacity="TOTAL")
    written = lists - len(answer["UnprocessedItems"]["things"])
    (consumed,) = answer["ConsumedCapacity"]
    assert written > 0
    assert consumed["CapacityUnits"] == 176 * written


def test_a_killed_process_costs_one_request(serve: Serve, tmp_path: Path, beside: Beside) -> None:
    server = serve(tmp_path / "data")
    client = server.client()
    create_table(client)
    put_lists(client, 1)
    worker = worker_of(server)
    before = ticks_of(worker)
    deciding = beside(put_lists, client, 20)
    while ticks_of(worker) < before + 10:
        time.sleep(0.01)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(client.exceptions.InternalServerError):
        deciding.result()
    assert put_lists(client, 2)["UnprocessedItems"] == {}


def test_a_process_that_is_killed_while_it_is_idle_costs_none(serve: Serve, tmp_path: Path) -> None:
    server = serve(tmp_path / "data")
    client = server.client()
    create_table(client)
    for _ in range(3):
        put_lists(client, 1)
        worker = worker_of(server)
        os.kill(worker, signal.SIGKILL)
        while Path(f"/proc/{worker}").exists():
            time.sleep(0.01)
    assert put_lists(client, 2)["UnprocessedItems"] == {}


@pytest.mark.soak
def test_every_request_may_be_decided_as_a_large_one_is() -> None:
    """Runs the black-box tests of the data plane with all requests decided by the process."""
    environment = {**processes.ENVIRONMENT, "PARTITA_PURE": "1"}
    with processes.starting() as start:
        server = start(
            *("serve", "--port", "0", "--in-memory"),
            command=EVERYTHING_IS_LARGE,
            cwd=ROOT,
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        chosen = "not kinesis and not describe and not list_t and not browsers"
        completed = subprocess.run(
            [sys.executable, "-m", "pytest", "packages/partita/tests/wire", "-q", "-k", chosen],
            cwd=ROOT,
            env={**os.environ, "PARTITA_ENDPOINT": server.url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert completed.returncode == 0, completed.stdout[-5000:]


def test_the_process_has_nothing_of_the_server_open_and_ends_with_it(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(tmp_path / "data")
    client = server.client()
    create_table(client)
    put_lists(client, 1)
    worker = worker_of(server)
    descriptors = Path(f"/proc/{worker}/fd")
    assert sorted(os.readlink(one) for one in descriptors.iterdir() if int(one.name) > 2) == []
    # In the middle of a request, it would not notice that the server has ended.
    os.kill(worker, signal.SIGSTOP)
    server.kill()
    deadline = time.monotonic() + 30
    while descriptors.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
