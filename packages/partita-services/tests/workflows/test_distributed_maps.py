"""Distributed Map states: over arrays, objects and tables; tolerated failures, results, kills."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testkit.servers.processes import Server

from .conftest import events, finished, function, states_client, types, write_functions
from .test_state_machines import refused

Run = Callable[..., Any]
READ = "arn:aws:states:::s3:getObject"


def distributed(type: str = "STANDARD", **fields: Any) -> dict[str, Any]:
    """A machine that doubles every item."""
    task = {"Type": "Task", "Resource": function("double"), "End": True}
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": type},
        "StartAt": "Double",
        "States": {"Double": task},
    }
    state = {"Type": "Map", "Label": "All", "ItemProcessor": processor, "End": True, **fields}
    return {"StartAt": "Each", "States": {"Each": state}}


def numbers(*values: int) -> list[dict[str, int]]:
    return [{"n": value} for value in values]


@pytest.mark.parametrize("type", ["STANDARD", "EXPRESS"])
def test_every_item_of_an_array_is_an_execution(
    states: Any, create: Run, output: Run, type: str
) -> None:
    machine = distributed(type, ItemsPath="$.items", MaxConcurrency=2)
    assert output(machine, {"items": numbers(1, 2, 3)}) == numbers(2, 4, 6)


def test_its_history_tells_of_the_run_and_not_of_the_items(states: Any, create: Run) -> None:
    started = states.start_execution(
        stateMachineArn=create(distributed()), input=json.dumps(numbers(1, 2))
    )
    finished(states, started["executionArn"])
    found = events(states, started["executionArn"])
    assert types(found) == [
        "ExecutionStarted",
        "MapStateEntered",
        "MapStateStarted",
        "MapRunStarted",
        "MapRunSucceeded",
        "MapStateSucceeded",
        "MapStateExited",
        "ExecutionSucceeded",
    ]
    arn = found[3]["mapRunStartedEventDetails"]["mapRunArn"]
    assert ":mapRun:" in arn
    assert "/All:" in arn


def test_map_runs_are_listed_and_described(states: Any, create: Run) -> None:
    machine = create(
        distributed(ItemBatcher={"MaxItemsPerBatch": 2}, ToleratedFailureCount=3, MaxConcurrency=7)
    )
    items = [*numbers(1, 2, 3), {"n": None}, {"n": 5}]
    started = states.start_execution(stateMachineArn=machine, input=json.dumps(items))
    arn = started["executionArn"]
    finished(states, arn)
    (listed,) = states.list_map_runs(executionArn=arn)["mapRuns"]
    assert (listed["executionArn"], listed["stateMachineArn"]) == (arn, machine)
    assert listed["stopDate"] >= listed["startDate"]
    described = states.describe_map_run(mapRunArn=listed["mapRunArn"])
    assert (described["status"], described["maxConcurrency"]) == ("SUCCEEDED", 7)
    assert described["toleratedFailureCount"] == 3
    assert described["itemCounts"]["total"] == 5
    counts = described["executionCounts"]
    assert counts["total"] == counts["succeeded"] + counts["failed"] == 3
    assert (counts["pending"], counts["running"]) == (0, 0)


def test_map_runs_that_failed_or_are_not_there(states: Any, create: Run) -> None:
    started = states.start_execution(
        stateMachineArn=create(distributed()), input=json.dumps([{"n": 1}, {"wrong": 1}])
    )
    finished(states, started["executionArn"])
    (listed,) = states.list_map_runs(executionArn=started["executionArn"])["mapRuns"]
    described = states.describe_map_run(mapRunArn=listed["mapRunArn"])
    assert (described["status"], described["executionCounts"]["failed"]) == ("FAILED", 1)
    with pytest.raises(states.exceptions.ResourceNotFound):
        states.describe_map_run(mapRunArn=f"{listed['mapRunArn']}0")


def test_the_rows_of_a_csv_object_are_items(output: Run, folder: Path) -> None:
    (folder / "reports").mkdir(exist_ok=True)
    (folder / "reports" / "orders.csv").write_text('id;amount\n1;"2"\n2;3\n3;4\n')
    machine = distributed(
        ItemReader={
            "Resource": READ,
            "ReaderConfig": {
                "InputType": "CSV",
                "CSVHeaderLocation": "FIRST_ROW",
                "CSVDelimiter": "SEMICOLON",
                "MaxItemsPath": "$.most",
            },
            "Parameters": {"Bucket": "reports", "Key.$": "$.key"},
        },
        ItemSelector={"n.$": "States.StringToJson($$.Map.Item.Value.amount)"},
    )
    assert output(machine, {"key": "orders.csv", "most": 2}) == numbers(4, 6)


@pytest.mark.parametrize(
    ("content", "config"),
    [
        (json.dumps(numbers(1, 2)), {"InputType": "JSON"}),
        (json.dumps({"a": {"b": numbers(1, 2)}}), {"InputType": "JSON", "ItemsPointer": "/a/b"}),
        ('{"n": 1}\n{"n": 2}\n', {"InputType": "JSONL"}),
        ("1\n2\n", {"InputType": "CSV", "CSVHeaderLocation": "GIVEN", "CSVHeaders": ["text"]}),
    ],
)
def test_objects_of_several_forms_have_items(
    output: Run, folder: Path, content: str, config: Any
) -> None:
    (folder / "reports").mkdir(exist_ok=True)
    (folder / "reports" / "items").write_text(content)
    selector: dict[str, Any] = {}
    if config["InputType"] == "CSV":
        selector = {"ItemSelector": {"n.$": "States.StringToJson($$.Map.Item.Value.text)"}}
    machine = distributed(
        ItemReader={
            "Resource": READ,
            "ReaderConfig": config,
            "Parameters": {"Bucket": "reports", "Key": "items"},
        },
        **selector,
    )
    assert output(machine) == numbers(2, 4)


def test_the_items_of_a_table_are_items(output: Run, server: Server) -> None:
    client = server.client()
    client.create_table(
        TableName="prices",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for number in range(30):
        item = {
            "id": {"S": str(number)},
            "price": {"N": str(number)},
            "filling": {"S": "x" * 90_000},
        }
        client.put_item(TableName="prices", Item=item)
    machine = distributed(
        "EXPRESS",
        ItemReader={
            "Resource": "arn:aws:states:::aws-sdk:dynamodb:scan",
            "Parameters": {"TableName": "prices"},
        },
        ItemSelector={"n.$": "States.StringToJson($$.Map.Item.Value.price.N)"},
    )
    found = output(machine)
    assert sorted(one["n"] for one in found) == [2 * number for number in range(30)]


def test_failures_are_tolerated_up_to_a_threshold(run: Run, output: Run) -> None:
    items = numbers(1, -1, 2, -2)
    assert output(distributed(ToleratedFailureCount=2), items) == numbers(2, 4)
    assert output(distributed(ToleratedFailurePercentage=50), items) == numbers(2, 4)
    failed = run(distributed(ToleratedFailureCount=1), items)
    assert failed["error"] == "States.ExceedToleratedFailureThreshold"


def test_results_are_written_to_a_bucket(output: Run, folder: Path) -> None:
    machine = distributed(
        ToleratedFailureCount=1,
        ResultWriter={
            "Resource": "arn:aws:states:::s3:putObject",
            "Parameters": {"Bucket": "reports", "Prefix": "results"},
        },
    )
    answer = output(machine, numbers(1, -1))
    details = answer["ResultWriterDetails"]
    manifest = json.loads((folder / "reports" / details["Key"]).read_text())
    (good,), (bad,) = (manifest["ResultFiles"][status] for status in ("SUCCEEDED", "FAILED"))
    (succeeded,) = json.loads((folder / "reports" / good["Key"]).read_text())
    (failed,) = json.loads((folder / "reports" / bad["Key"]).read_text())
    assert (succeeded["Output"], failed["Error"]) == ('{"n":2}', "OutOfStock")


def test_batches_are_the_inputs_of_executions(output: Run) -> None:
    machine = distributed(ItemBatcher={"MaxItemsPerBatch": 2})
    machine["States"]["Each"]["ItemProcessor"]["States"]["Double"] = {"Type": "Pass", "End": True}
    assert output(machine, numbers(1, 2, 3)) == [
        {"Items": numbers(1, 2)},
        {"Items": numbers(3)},
    ]


def test_an_object_that_is_not_there_fails_the_reader(run: Run) -> None:
    reader = {"Resource": READ, "Parameters": {"Bucket": "reports", "Key": "none"}}
    assert run(distributed(ItemReader=reader))["error"] == "States.ItemReaderFailed"


def test_a_run_goes_on_after_a_kill_and_repeats_nothing_that_has_ended(
    serve: Any, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    settings = write_functions(tmp_path)
    (tmp_path / "slow.py").write_text(f"""
import time

def handle(event, context):
    with open("{calls}", "a") as file:
        file.write(str(event["n"]) + "\\n")
    time.sleep(0.1)
    return event
""")
    with settings.open("a") as file:
        file.write('\n[[functions]]\nname = "slow"\nhandler = "slow:handle"\nconcurrency = 2\n')
    machine = distributed(MaxConcurrency=2)
    machine["States"]["Each"]["ItemProcessor"]["States"]["Double"]["Resource"] = function("slow")
    arguments = ("serve", "--port", "0", "--data", tmp_path / "data", "--config", settings)
    server = serve(*arguments)
    states = states_client(server.url)
    arn = states.create_state_machine(
        name="m", definition=json.dumps(machine), roleArn="arn:aws:iam::123456789012:role/r"
    )["stateMachineArn"]
    started = states.start_execution(stateMachineArn=arn, input=json.dumps(numbers(*range(12))))
    deadline = time.monotonic() + 60
    while not calls.exists() or len(calls.read_text().splitlines()) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(server.process.pid, signal.SIGKILL)
    server.ended()
    states = states_client(serve(*arguments).url)
    execution = finished(states, started["executionArn"])
    assert json.loads(execution["output"]) == numbers(*range(12))
    called = [int(line) for line in calls.read_text().splitlines()]
    assert set(called) == set(range(12))
    assert len(called) <= 12 + 4, "what had ended ran again"


def test_the_limits_of_a_map_run_change_while_it_runs(states: Any, create: Run) -> None:
    machine = distributed(MaxConcurrency=1)
    wait = {"Type": "Wait", "Seconds": 20, "End": True}
    machine["States"]["Each"]["ItemProcessor"]["States"]["Double"] = wait
    started = states.start_execution(
        stateMachineArn=create(machine), input=json.dumps(numbers(*range(8)))
    )
    arn, deadline = started["executionArn"], time.monotonic() + 30
    while not (listed := states.list_map_runs(executionArn=arn)["mapRuns"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    run = listed[0]["mapRunArn"]
    assert states.describe_map_run(mapRunArn=run)["executionCounts"]["running"] <= 1
    states.update_map_run(
        mapRunArn=run, maxConcurrency=7, toleratedFailureCount=3, toleratedFailurePercentage=12.5
    )
    described = states.describe_map_run(mapRunArn=run)
    assert (described["maxConcurrency"], described["toleratedFailureCount"]) == (7, 3)
    assert described["toleratedFailurePercentage"] == 12.5
    while states.describe_map_run(mapRunArn=run)["executionCounts"]["running"] < 6:
        assert time.monotonic() < deadline, "it does not use the new limit"
        time.sleep(0.02)
    assert finished(states, arn)["status"] == "SUCCEEDED"
    change = {"maxConcurrency": 1}
    update = states.update_map_run
    assert "SUCCEEDED" in refused(states, update, "ValidationException", mapRunArn=run, **change)
    refused(states, update, "ResourceNotFound", mapRunArn=f"{run}0", **change)
    wrong = {"toleratedFailurePercentage": 101.0}
    refused(states, update, "ValidationException", mapRunArn=run, **wrong)


def test_a_map_run_tolerates_more_failures_once_it_is_told_to(
    states: Any, create: Run, folder: Path
) -> None:
    """The items only fail after the limit was changed."""
    machine = distributed(MaxConcurrency=1)
    states_of = machine["States"]["Each"]["ItemProcessor"]["States"]
    states_of["Wait"] = {"Type": "Wait", "Seconds": 6, "Next": "Double"}
    machine["States"]["Each"]["ItemProcessor"]["StartAt"] = "Wait"
    started = states.start_execution(
        stateMachineArn=create(machine), input=json.dumps(numbers(-1, -2, 3))
    )
    arn, deadline = started["executionArn"], time.monotonic() + 30
    while not (listed := states.list_map_runs(executionArn=arn)["mapRuns"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    states.update_map_run(mapRunArn=listed[0]["mapRunArn"], toleratedFailureCount=2)
    assert json.loads(finished(states, arn)["output"]) == numbers(6)
