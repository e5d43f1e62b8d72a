"""Fixtures for running machines: a server with functions, and boto3's client for it. On that
server, twenty seconds of a machine pass in one real second."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config

from testkit.servers import processes

ROLE = "arn:aws:iam::123456789012:role/workflows"
SECONDS_MAX = 180
TIME_SCALE = "20"

MODULE = '''
import os
import random
import string
import time


def echo(event, context):
    return event


def add_one(event, context):
    return {"n": event["n"] + 1}


def describe(event, context):
    return {
        "function_name": context.function_name,
        "function_version": context.function_version,
        "invoked_function_arn": context.invoked_function_arn,
        "has_request_id": bool(context.aws_request_id),
        "has_time_left": 0 < context.get_remaining_time_in_millis() <= 5000,
        "colour": os.environ.get("COLOUR"),
    }


class OutOfStock(Exception):
    pass


def refuse(event, context):
    raise OutOfStock("nothing left of " + event.get("item", "it"))


def sleep(event, context):
    time.sleep(event.get("seconds", 60))
    return "awake"


def end(event, context):
    os._exit(3)


def await_death(event, context):
    """Tells who it is and sleeps; the next time it succeeds."""
    if os.path.exists(event["file"]):
        return "alive"
    with open(event["file"], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(60)


def count(event, context):
    """Fails as often as it is told to, by a file that it counts in."""
    with open(event["file"], "a+") as file:
        file.write("x")
        file.seek(0)
        if len(file.read()) <= event["failures"]:
            raise OutOfStock("not yet")
    return "at last"


def random_text(event, context):
    chance = random.Random(event["seed"])
    return "".join(chance.choices(string.ascii_letters + string.digits, k=event["length"]))


def forbidden(event, context):
    return object()


def write_down(event, context):
    import json

    with open("written.part", "w") as file:
        json.dump(event, file)
    os.rename("written.part", "written")


def double(event, context):
    if event["n"] < 0:
        raise OutOfStock("negative")
    return {"n": 2 * event["n"]}


def nightly(event, context):
    """A job: writes down what it was given, unless it is told to fail."""
    given = event.get("Parameters") or event.get("Arguments") or event.get("Overrides") or {}
    if given.get("fails"):
        raise OutOfStock("no disk")
    if given.get("file"):
        with open(given["file"], "a") as file:
            file.write("ran\\n")
    return {"Logs": "all well"}


def answer(event, context):
    return {"completion": event["prompt"].upper()}


def label(event, context):
    return {"Labels": [{"Name": event["Image"]["Name"]}]}


def hand_over(event, context):
    event = event.get("Overrides", event)
    with open(event["file"], "w") as file:
        file.write(event["token"])
'''

SETTINGS = """
[[functions]]
name = "describe"
handler = "handlers:describe"
timeout_seconds = 5
environment = {COLOUR = "green"}

[[functions]]
name = "sleep"
handler = "handlers:sleep"
timeout_seconds = 1

[[functions]]
name = "alone"
handler = "handlers:sleep"
concurrency = 1

[[functions]]
name = "not_there"
handler = "handlers:not_there"

[[functions]]
name = "nowhere"
handler = "no_such_module:handle"

[[sinks]]
arn = "arn:aws:sns:us-east-1:123456789012:news"
file = "news"

[[sinks]]
arn = "arn:aws:sqs:us-east-1:123456789012:orders"
file = "orders"

[[sinks]]
arn = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
file = "orders"

[[sinks]]
arn = "arn:aws:sqs:us-east-1:123456789012:called"
function = "write_down"

[[sinks]]
arn = "arn:aws:sqs:us-east-1:123456789012:streamed"
stream = "messages"

[[sinks]]
arn = "arn:aws:events:us-east-1:123456789012:event-bus/default"
file = "bus"

[[stand_ins]]
resource = "athena:startQueryExecution.sync"
function = "echo"

[[stand_ins]]
resource = "aws-sdk:rekognition:*"
function = "label"

[[stand_ins]]
resource = "aws-sdk:rekognition:detectText"
function = "echo"

[[jobs]]
service = "batch"
name = "nightly"
function = "nightly"

[[jobs]]
service = "glue"
name = "nightly"
function = "nightly"

[[jobs]]
service = "codebuild"
name = "nightly"
function = "nightly"

[[jobs]]
service = "ecs"
name = "nightly"
function = "nightly"

[[jobs]]
service = "ecs"
name = "callback"
function = "hand_over"

[[jobs]]
service = "bedrock"
name = "tiny.model-v1:0"
function = "answer"

[[buckets]]
name = "reports"
folder = "reports"
"""
PLAIN = (
    *("echo", "add_one", "refuse", "end", "await_death", "count", "forbidden", "hand_over"),
    *("random_text", "write_down", "double", "nightly", "answer", "label"),
)

Serve = Callable[..., processes.Server]
Json = dict[str, Any]


def write_functions(folder: Path) -> Path:
    """The module of functions, and the settings that name them."""
    (folder / "handlers.py").write_text(MODULE)
    plain = "".join(
        f'[[functions]]\nname = "{name}"\nhandler = "handlers:{name}"\n\n' for name in PLAIN
    )
    settings = folder / "partita.toml"
    settings.write_text(SETTINGS + plain)
    return settings


def states_client(url: str, **more: Any) -> Any:
    """boto3 would call StartSyncExecution at sync-127.0.0.1, which does not exist."""
    return boto3.client(
        "stepfunctions",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(
            retries={"total_max_attempts": 1},
            inject_host_prefix=False,
            read_timeout=90,
            **more,
        ),
    )


def function(name: str) -> str:
    return f"arn:aws:lambda:us-east-1:123456789012:function:{name}"


def one_task(resource: str, **fields: Any) -> Json:
    """A machine of one Task."""
    task = {"Type": "Task", "Resource": resource, "End": True, **fields}
    return {"StartAt": "Only", "States": {"Only": task}}


def finished(states: Any, execution_arn: str) -> Json:
    """The execution, once it has ended."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        execution: Json = states.describe_execution(executionArn=execution_arn)
        if execution["status"] != "RUNNING":
            return execution
        assert time.monotonic() < deadline, f"{execution_arn} is still running"
        time.sleep(0.02)


def events(states: Any, execution_arn: str, **parameters: Any) -> list[Json]:
    pages = states.get_paginator("get_execution_history").paginate(
        executionArn=execution_arn, **parameters
    )
    return [event for page in pages for event in page["events"]]


def types(found: list[Json]) -> list[str]:
    return [event["type"] for event in found]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve("serve", "--port", "0", ...)`: a server that ends with the test."""
    with processes.starting() as start:
        yield start


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the settings, with the files of sinks and buckets."""
    return tmp_path_factory.mktemp("functions")


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[processes.Server]:
    settings = write_functions(folder)
    options = ("--port", "0", "--in-memory", "--time-scale", TIME_SCALE, "--config", settings)
    with processes.starting() as start:
        yield start("serve", *options, stderr=None)


@pytest.fixture(scope="session")
def states(server: processes.Server) -> Any:
    return states_client(server.url)


@pytest.fixture
def create(states: Any) -> Callable[..., str]:
    """`create(definition)`: the ARN of a machine with a name of its own."""

    def create_machine(definition: Json, type: str = "STANDARD", **parameters: Any) -> str:
        name = parameters.pop("name", f"machine-{uuid4()}")
        created = states.create_state_machine(
            name=name, definition=json.dumps(definition), roleArn=ROLE, type=type, **parameters
        )
        return str(created["stateMachineArn"])

    return create_machine


@pytest.fixture
def run(states: Any, create: Callable[..., str]) -> Callable[..., Json]:
    """`run(definition, input)`: the execution of a new machine, once it has ended."""

    def run_machine(definition: Json, input: Any = None) -> Json:
        started = states.start_execution(
            stateMachineArn=create(definition), input=json.dumps(input or {})
        )
        return finished(states, started["executionArn"])

    return run_machine


@pytest.fixture
def output(run: Callable[..., Json]) -> Callable[..., Any]:
    """`output(definition, input)`: the output of an execution that succeeds."""

    def output_of(definition: Json, input: Any = None) -> Any:
        execution = run(definition, input)
        assert execution["status"] == "SUCCEEDED", execution
        return json.loads(execution["output"])

    return output_of
