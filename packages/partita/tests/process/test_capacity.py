"""`partita serve --capacity`, and the commands that look at a running server."""

from __future__ import annotations

import json
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError


def create(client: Any) -> None:
    client.create_table(
        TableName="votes",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )


def vote(client: Any, times: int) -> int:
    """Writes `times` times. Returns how many of the writes were throttled."""
    throttled = 0
    for _ in range(times):
        try:
            client.put_item(TableName="votes", Item={"id": {"S": "C1"}})
        except ClientError as error:
            code = error.response["Error"]["Code"]
            assert code == "ProvisionedThroughputExceededException"
            throttled += 1
    return throttled


def vote_until(client: Any, is_over: threading.Event) -> None:
    while not is_over.is_set():
        vote(client, 10)


@pytest.mark.parametrize(
    ("mode", "throttles"), [("off", False), ("observe", False), ("enforce", True)]
)
def test_only_enforced_capacity_throttles(serve: Any, mode: str, throttles: bool) -> None:
    server = serve("serve", "--port", "0", "--in-memory", "--capacity", mode)
    create(server.client())
    assert (vote(server.client(), 50) > 0) is throttles


def test_looking_at_a_server(serve: Any, run: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory", "--capacity", "observe")
    client = server.client()
    create(client)
    hint = run("insights", "votes", "--endpoint", server.url)
    assert "not enabled" in hint.stdout
    client.update_contributor_insights(TableName="votes", ContributorInsightsAction="ENABLE")
    vote(client, 30)

    shown = run("insights", "votes", "--endpoint", server.url)
    assert shown.returncode == 0, shown.stderr
    assert "votes: Most accessed partition keys (capacity units, 30 in all)" in shown.stdout
    assert "30  100%  C1" in shown.stdout

    drawn = run("partitions", "votes", "--endpoint", server.url)
    assert drawn.returncode == 0, drawn.stderr
    assert "votes: 1 partition\n" in drawn.stdout
    assert "0000000000000000..ffffffffffffffff" in drawn.stdout
    assert "C1 100%" in drawn.stdout

    is_over = threading.Event()
    with ThreadPoolExecutor() as voters:
        votes = voters.submit(vote_until, client, is_over)
        try:
            top = run("top", "--once", "--seconds", "1", "--endpoint", server.url)
        finally:
            is_over.set()
        votes.result()
    assert top.returncode == 0, top.stderr
    assert "capacity observe" in top.stdout
    assert "PutItem" in top.stdout
    (line,) = [line for line in top.stdout.splitlines() if line.startswith("votes")]
    consumed, throttled = float(line.split()[4]), float(line.split()[6])
    assert consumed > throttled > 0


def test_pages_are_json(serve: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    create(server.client())
    with urllib.request.urlopen(f"{server.url}/partitions?table=votes") as response:
        assert response.headers["content-type"] == "application/json"
        assert json.load(response)["Capacity"] == "off"


@pytest.mark.parametrize(
    "command", [("top", "--once"), ("partitions", "votes"), ("insights", "votes")]
)
def test_a_server_that_is_not_there_is_told_in_a_sentence(run: Any, command: Any) -> None:
    ended = run(*command, "--endpoint", "http://127.0.0.1:1")
    assert ended.returncode == 1
    assert ended.stderr.startswith("partita: No answer from http://127.0.0.1:1: ")
    assert "Traceback" not in ended.stderr


def test_a_table_that_is_not_there_is_told_in_a_sentence(serve: Any, run: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    ended = run("partitions", "nope", "--endpoint", server.url)
    assert (ended.returncode, ended.stderr) == (
        1,
        "partita: Requested resource not found: Table: nope not found.\n",
    )


@pytest.mark.parametrize(
    ("gigabytes", "line"),
    [
        ("50", "partitions     5, each with 200 RCU and 100 WCU"),
        ("500", "partitions     50, each with 20 RCU and 10 WCU"),
    ],
)
def test_the_arithmetic_needs_no_server(run: Any, gigabytes: str, line: str) -> None:
    ended = run("partitions", "--rcu", "1000", "--wcu", "500", "--gb", gigabytes)
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[-1] == line


@pytest.mark.parametrize("arguments", [(), ("votes", "--rcu", "5")])
def test_a_table_or_figures_but_not_both(run: Any, arguments: Any) -> None:
    assert run("partitions", *arguments).returncode == 2


def test_settings_of_a_table_survive_a_restart(serve: Any, tmp_path: Any) -> None:
    first = serve("serve", "--port", "0", "--data", tmp_path / "data")
    create(first.client())
    first.client().update_contributor_insights(
        TableName="votes", ContributorInsightsAction="ENABLE"
    )
    policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70}}
    first.client().update_table_replica_auto_scaling(
        TableName="votes",
        ProvisionedWriteCapacityAutoScalingUpdate={
            "MinimumUnits": 7,
            "MaximumUnits": 9,
            "ScalingPolicyUpdate": policy,
        },
    )
    before = first.client().describe_contributor_insights(TableName="votes")
    first.terminate()
    client = serve("serve", "--port", "0", "--data", tmp_path / "data").client()
    after = client.describe_contributor_insights(TableName="votes")
    names = "ContributorInsightsRuleList"
    assert after[names] == before[names]
    described = client.describe_table(TableName="votes")["Table"]["ProvisionedThroughput"]
    assert described["WriteCapacityUnits"] == 7


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (
            'table = "votes"\nschedule = "at eight"\nwrite_minimum = 5',
            "A schedule must be at(...), rate(...) or cron(...), not 'at eight'.",
        ),
        (
            'table = "votes"\nschedule = "rate(1 day)"',
            "The schedule of table votes changes nothing: give it read_minimum or read_maximum or "
            "write_minimum or write_maximum.",
        ),
    ],
)
def test_a_wrong_schedule_in_the_settings_is_told_in_a_sentence(
    run: Any, tmp_path: Any, entry: str, told: str
) -> None:
    config = tmp_path / "partita.toml"
    config.write_text(f"[[capacity.schedule]]\n{entry}\n")
    ended = run("serve", "--in-memory", "--port", "0", "--config", config)
    assert (ended.returncode, ended.stderr) == (1, f"partita: {told}\n")


def test_capacity_in_the_settings(serve: Any, tmp_path: Any) -> None:
    config = tmp_path / "partita.toml"
    config.write_text(
        '[serve]\ncapacity = "enforce"\n\n[[capacity.schedule]]\ntable = "votes"\n'
        'schedule = "cron(0 8 ? * MON-FRI *)"\nwrite_minimum = 5\n'
    )
    server = serve("serve", "--in-memory", "--port", "0", "--config", config)
    create(server.client())
    assert vote(server.client(), 50) > 0
