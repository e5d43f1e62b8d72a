"""Asynchronous invocations: retries, destinations, dead letters, and kills."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testkit.packaging.function_packages import create, wait_for

QUEUE = "arn:aws:sqs:us-east-1:123456789012:dead-letters"
TOPIC = "arn:aws:sns:us-east-1:123456789012:news"
COUNT = """
def handler(event, context):
    with open("{path}", "a") as file:
        file.write("x")
    {then}
"""


@pytest.fixture
def counted(functions: Any, name: str, tmp_path: Path) -> Callable[..., Path]:
    """Creates a function that leaves a letter for each call, and then does something else."""

    def make(then: str, **more: Any) -> Path:
        path = tmp_path / "calls"
        create(functions, name, COUNT.format(path=path, then=then), **more)
        return path

    return make


def lines(path: Path, request: str) -> list[Any]:
    text = path.read_text() if path.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    return [one for one in found if request in json.dumps(one)]


def test_an_event_that_fails_is_tried_twice_more_and_then_given_up(
    functions: Any, name: str, counted: Any, folder: Path
) -> None:
    calls = counted("raise ValueError('never')")
    functions.put_function_event_invoke_config(
        FunctionName=name, DestinationConfig={"OnFailure": {"Destination": QUEUE}}
    )
    payload = json.dumps({"n": name})
    answer = functions.invoke(FunctionName=name, InvocationType="Event", Payload=payload)
    assert (answer["StatusCode"], answer["Payload"].read()) == (202, b"")
    (record,) = wait_for(lambda: lines(folder / "dead-letters", name))
    assert calls.read_text() == "xxx"
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestContext"]["approximateInvokeCount"] == 3
    assert record["requestContext"]["functionArn"].endswith(f":function:{name}:$LATEST")
    assert record["requestPayload"] == {"n": name}
    assert record["responseContext"]["functionError"] == "Unhandled"
    assert record["responsePayload"]["errorType"] == "ValueError"


def test_what_succeeded_goes_to_its_destination(
    functions: Any, name: str, counted: Any, folder: Path
) -> None:
    counted("return event")
    functions.put_function_event_invoke_config(
        FunctionName=name,
        MaximumRetryAttempts=0,
        DestinationConfig={"OnSuccess": {"Destination": TOPIC}},
    )
    functions.invoke(FunctionName=name, InvocationType="Event", Payload=f'{{"n": "{name}"}}')
    (record,) = wait_for(lambda: lines(folder / "news", name))
    assert record["requestContext"]["condition"] == "Success"
    assert record["responsePayload"] == {"n": name}


def test_a_destination_can_be_a_function(
    functions: Any, name: str, counted: Any, tmp_path: Path
) -> None:
    counted("return 42")
    receiver = f"{name}-receiver"
    seen = tmp_path / "seen"
    source = f"""
import json, os

def handler(event, context):
    with open("{seen}.part", "w") as file:
        json.dump(event, file)
    os.rename("{seen}.part", "{seen}")
"""
    arn = create(functions, receiver, source)["FunctionArn"]
    functions.put_function_event_invoke_config(
        FunctionName=name, DestinationConfig={"OnSuccess": {"Destination": arn}}
    )
    functions.invoke(FunctionName=name, InvocationType="Event")
    text = wait_for(lambda: seen.read_text() if seen.exists() else "")
    assert json.loads(text)["responsePayload"] == 42


def test_dead_letters_are_the_events_themselves(
    functions: Any, name: str, counted: Any, folder: Path
) -> None:
    counted("raise ValueError", DeadLetterConfig={"TargetArn": QUEUE})
    functions.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=0)
    functions.invoke(FunctionName=name, InvocationType="Event", Payload=f'{{"n": "{name}"}}')
    assert wait_for(lambda: lines(folder / "dead-letters", name)) == [{"n": name}]


def test_the_configuration_is_read_changed_listed_and_deleted(functions: Any, name: str) -> None:
    create(functions, name, "def handler(event, context): pass")
    functions.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=1)
    functions.update_function_event_invoke_config(FunctionName=name, MaximumEventAgeInSeconds=60)
    got = functions.get_function_event_invoke_config(FunctionName=name)
    assert (got["MaximumRetryAttempts"], got["MaximumEventAgeInSeconds"]) == (1, 60)
    listed = functions.list_function_event_invoke_configs(FunctionName=name)
    assert len(listed["FunctionEventInvokeConfigs"]) == 1
    functions.delete_function_event_invoke_config(FunctionName=name)
    with pytest.raises(functions.exceptions.ResourceNotFoundException):
        functions.get_function_event_invoke_config(FunctionName=name)


def test_an_event_that_was_accepted_survives_a_kill(serve: Any, name: str, tmp_path: Path) -> None:
    done, blocked = tmp_path / "done", tmp_path / "blocked"
    blocked.touch()
    source = f"""
import os, time

def handler(event, context):
    open("{tmp_path}/begun", "w").close()
    while os.path.exists("{blocked}"):
        time.sleep(0.05)
    open("{done}", "a").write(event["n"])
"""
    arguments = ("serve", "--port", "0", "--data", tmp_path / "data")
    server = serve(*arguments)
    create(server.client("lambda"), name, source)
    server.client("lambda").invoke(
        FunctionName=name, InvocationType="Event", Payload=b'{"n": "once"}'
    )
    wait_for((tmp_path / "begun").exists)
    server.kill()
    blocked.unlink()
    serve(*arguments)
    assert wait_for(lambda: done.read_text() if done.exists() else "") == "once"
