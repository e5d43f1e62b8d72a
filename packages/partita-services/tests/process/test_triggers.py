"""Triggers of a running server: Python functions and HTTP endpoints, as partita.toml names them."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SECONDS_MAX = 120
TABLE = "orders"

WRITE_DOWN = """
import json

def handle(event, context):
    with open("seen", "a") as seen:
        seen.write(json.dumps(event) + "\\n")
"""


def create_table(client: Any, view_type: str = "NEW_AND_OLD_IMAGES") -> str:
    created = client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": view_type},
    )
    return str(created["TableDescription"]["LatestStreamArn"])


def put(client: Any, key: str, **attributes: Any) -> None:
    client.put_item(TableName=TABLE, Item={"pk": {"S": key}, **attributes})


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "nothing came of it"
        time.sleep(0.02)


def records(folder: Path) -> list[dict[str, Any]]:
    path = folder / "seen"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for event in events for record in event["Records"]]


def keys(folder: Path) -> list[str]:
    return [record["dynamodb"]["Keys"]["pk"]["S"] for record in records(folder)]


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., tuple[str, ...]]:
    """Writes partita.toml and the module `shop`; returns what `serve` is started with."""

    def write(module: str, **trigger: Any) -> tuple[str, ...]:
        trigger = {"name": "trigger", "table": TABLE, **trigger}
        if "endpoint" not in trigger:
            trigger["function"] = "shop:handle"
        (tmp_path / "shop.py").write_text(module)
        lines = [f"{name} = {json.dumps(value)}" for name, value in trigger.items()]
        path = tmp_path / "partita.toml"
        path.write_text("\n".join(["[[triggers]]", *lines]))
        return ("serve", "--port", "0", "--data", str(tmp_path / "data"), "--config", str(path))

    return write


def test_a_function_gets_the_event_that_lambda_gets(
    serve: Any, settings: Any, tmp_path: Path
) -> None:
    server = serve(*settings(WRITE_DOWN))
    client = server.client()
    arn = create_table(client)
    put(client, "a", n={"N": "1"}, b={"B": b"\x00\x01"})
    wait_until(lambda: len(records(tmp_path)) == 1)
    (record,) = records(tmp_path)
    image = {"pk": {"S": "a"}, "n": {"N": "1"}, "b": {"B": "AAE="}}
    assert abs(time.time() - record["dynamodb"].pop("ApproximateCreationDateTime")) < 60
    assert len(record.pop("eventID")) == 32
    assert record == {
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "eventSourceARN": arn,
        "dynamodb": {
            "Keys": {"pk": {"S": "a"}},
            "NewImage": image,
            "SequenceNumber": "100000000000000000001",
            "SizeBytes": 12,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }


def test_a_trigger_is_an_event_source_mapping_of_the_settings(serve: Any, settings: Any) -> None:
    functions = serve(*settings(WRITE_DOWN, batch_size=7)).client("lambda")
    (mapping,) = functions.list_event_source_mappings()["EventSourceMappings"]
    assert (mapping["BatchSize"], mapping["State"]) == (7, "Enabled")
    assert mapping["EventSourceArn"].endswith(f":table/{TABLE}")
    assert mapping["FunctionArn"].endswith(":function:trigger")
    got = functions.get_event_source_mapping(UUID=mapping["UUID"])
    assert got["LastProcessingResult"] == "No records processed"
    with pytest.raises(functions.exceptions.ResourceConflictException, match="settings"):
        functions.delete_event_source_mapping(UUID=mapping["UUID"])


def test_time_to_live_signs_what_it_removes(serve: Any, settings: Any, tmp_path: Path) -> None:
    client = serve(*settings(WRITE_DOWN)).client()
    create_table(client)
    specification = {"Enabled": True, "AttributeName": "ttl"}
    client.update_time_to_live(TableName=TABLE, TimeToLiveSpecification=specification)
    put(client, "a", ttl={"N": str(int(time.time()) - 60)})
    wait_until(lambda: len(records(tmp_path)) == 2)
    identity = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}
    assert records(tmp_path)[1]["userIdentity"] == identity


def test_only_what_matches_a_filter_is_delivered(serve: Any, settings: Any, tmp_path: Path) -> None:
    large = {"n": {"N": [{"numeric": [">", 5]}]}}
    pattern = {"eventName": ["INSERT"], "dynamodb": {"NewImage": large}}
    client = serve(*settings(WRITE_DOWN, filter_patterns=[json.dumps(pattern)])).client()
    create_table(client)
    for number in range(10):
        put(client, str(number), n={"N": str(number)})
    wait_until(lambda: len(records(tmp_path)) == 4)
    assert sorted(keys(tmp_path)) == ["6", "7", "8", "9"]


def test_it_goes_on_after_a_restart(serve: Any, settings: Any, tmp_path: Path) -> None:
    arguments = settings(WRITE_DOWN)
    server = serve(*arguments)
    create_table(server.client())
    put(server.client(), "first")
    wait_until(lambda: "first" in keys(tmp_path))
    put(server.client(), "second")
    wait_until(lambda: "second" in keys(tmp_path))
    # A position is noted after the function has returned: the second may come again.
    server.terminate()
    server = serve(*arguments)
    put(server.client(), "third")
    wait_until(lambda: "third" in keys(tmp_path))
    assert keys(tmp_path) in (["first", "second", "third"], ["first", "second", "second", "third"])


@pytest.mark.parametrize(
    ("starting_position", "expected"),
    [("TRIM_HORIZON", ["before", "after"]), ("LATEST", ["after"])],
)
def test_where_a_new_trigger_begins(
    serve: Any, settings: Any, tmp_path: Path, starting_position: str, expected: list[str]
) -> None:
    arguments = settings(WRITE_DOWN, starting_position=starting_position)
    server = serve(*arguments[:-2])
    create_table(server.client())
    put(server.client(), "before")
    server.terminate()
    server = serve(*arguments)
    put(server.client(), "after")
    wait_until(lambda: "after" in keys(tmp_path))
    assert sorted(keys(tmp_path), reverse=True) == expected


def test_a_slow_function_does_not_stop_the_database(
    serve: Any, settings: Any, tmp_path: Path
) -> None:
    busy = """
import time

def handle(event, context):
    open("begun", "w").close()
    until = time.monotonic() + 50
    while time.monotonic() < until:
        pass
"""
    server = serve(*settings(busy))
    client = server.client()
    create_table(client)
    put(client, "a")
    wait_until((tmp_path / "begun").exists)
    started = time.monotonic()
    for number in range(50):
        put(client, "a", n={"N": str(number)})
    server.terminate()
    assert time.monotonic() - started < 30, "it waited for the function"


@pytest.mark.parametrize(
    ("broken", "timeout_seconds"),
    [
        ("raise RuntimeError('no')", 60),
        ("os._exit(3)", 60),
        ("time.sleep(60)", 1),
        ("return object()", 60),
        ("print('x' * 1000); raise SystemExit", 60),
    ],
)
def test_a_function_that_breaks_is_given_up_and_the_next_batch_comes(
    serve: Any, settings: Any, tmp_path: Path, broken: str, timeout_seconds: int
) -> None:
    module = f"""
import json
import os
import time

def handle(event, context):
    if event["Records"][0]["dynamodb"]["Keys"]["pk"]["S"] == "bad":
        {broken}
    with open("seen", "a") as seen:
        seen.write(json.dumps(event) + "\\n")
"""
    more = {"maximum_retries": 1, "on_failure": "failed", "batch_size": 1}
    client = serve(*settings(module, timeout_seconds=timeout_seconds, **more)).client()
    create_table(client)
    put(client, "bad")
    put(client, "bad", n={"N": "1"})
    client.delete_item(TableName=TABLE, Key={"pk": {"S": "bad"}})
    put(client, "good")
    failed = tmp_path / "failed"
    wait_until(lambda: failed.exists() and len(failed.read_text().splitlines()) == 3)
    wait_until(lambda: keys(tmp_path) == ["good"])
    first = json.loads(failed.read_text().splitlines()[0])
    assert first["requestContext"]["condition"] == "RetryAttemptsExhausted"


def test_a_function_that_is_not_there_is_told_of(serve: Any, settings: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as said:
        client = serve(*settings("", maximum_retries=0), stderr=said).client()
    create_table(client)
    put(client, "a")
    wait_until(lambda: "Runtime.HandlerNotFound" in log.read_text())


def test_triggers_begin_with_streams_that_come_later(
    serve: Any, settings: Any, tmp_path: Path
) -> None:
    client = serve(*settings(WRITE_DOWN, starting_position="LATEST")).client()
    create_table(client)
    put(client, "one")
    client.update_table(TableName=TABLE, StreamSpecification={"StreamEnabled": False})
    put(client, "unseen")
    again = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    client.update_table(TableName=TABLE, StreamSpecification=again)
    put(client, "two")
    client.delete_table(TableName=TABLE)
    create_table(client)
    put(client, "three")
    wait_until(lambda: len(records(tmp_path)) == 3)
    assert keys(tmp_path) == ["one", "two", "three"]


def test_a_stream_that_opened_behind_a_slow_one_is_not_skipped_after_a_restart(
    serve: Any, settings: Any, tmp_path: Path
) -> None:
    blocked = tmp_path / "blocked"
    blocked.touch()
    module = "import os\n" + WRITE_DOWN + "    assert not os.path.exists('blocked')\n"
    arguments = settings(module, starting_position="LATEST")
    server = serve(*arguments)
    client = server.client()
    create_table(client)
    put(client, "one")
    wait_until(lambda: "one" in keys(tmp_path))
    client.update_table(TableName=TABLE, StreamSpecification={"StreamEnabled": False})
    again = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    client.update_table(TableName=TABLE, StreamSpecification=again)
    put(client, "two")
    calls = len(records(tmp_path))
    wait_until(lambda: len(records(tmp_path)) >= calls + 2)
    server.terminate()
    blocked.unlink()
    serve(*arguments)
    wait_until(lambda: "two" in keys(tmp_path))
    assert list(dict.fromkeys(keys(tmp_path))) == ["one", "two"]


class Endpoint:
    """An HTTP server that accepts events, and fails the first ones if a test says so."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.failures_left = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.events.append(json.loads(body))
                is_failure = outer.failures_left > 0
                outer.failures_left -= 1
                self.send_response(500 if is_failure else 200)
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_an_endpoint_is_tried_until_it_succeeds(
    serve: Any, settings: Any, endpoint: Endpoint
) -> None:
    endpoint.failures_left = 2
    client = serve(*settings("", endpoint=endpoint.url)).client()
    create_table(client)
    put(client, "a")
    wait_until(lambda: len(endpoint.events) == 3)
    assert endpoint.events[0] == endpoint.events[2]
    put(client, "b")
    wait_until(lambda: len(endpoint.events) == 4)
    assert endpoint.events[3]["Records"][0]["dynamodb"]["Keys"] == {"pk": {"S": "b"}}


def test_a_server_that_stops_does_not_wait_for_an_endpoint(serve: Any, settings: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        server = serve(*settings("", endpoint=address))
        create_table(server.client())
        put(server.client(), "a")
        accepted, _ = silent.accept()
        started = time.monotonic()
        server.terminate()
        assert time.monotonic() - started < 30
        accepted.close()


def test_failures_can_go_to_an_endpoint(serve: Any, settings: Any, endpoint: Endpoint) -> None:
    broken = "def handle(event, context):\n    raise RuntimeError('no')\n"
    client = serve(*settings(broken, maximum_retries=0, on_failure=endpoint.url)).client()
    create_table(client)
    put(client, "a")
    wait_until(lambda: len(endpoint.events) == 1)
    assert endpoint.events[0]["reason"] == "RuntimeError: no"


# The settings of `serve`.


def test_options_go_before_the_file(serve: Any, tmp_path: Path) -> None:
    path = tmp_path / "partita.toml"
    path.write_text("[serve]\nport = 0\nin_memory = true\n")
    assert "(in memory)" in serve("serve", "--config", path).ready_line
    path.write_text(f'[serve]\nport = 0\ndata = "{tmp_path / "other"}"\n')
    line = serve("serve", "--config", path, "--data", tmp_path / "data").ready_line
    assert f"data in {tmp_path / 'data'}" in line


def test_the_environment_goes_before_the_file(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "partita.toml"
    path.write_text("[serve]\nport = 0\nin_memory = true\n")
    command = ("env", "PARTITA_SERVE_PORT=none", sys.executable, "-m", "partita.cli")
    completed = run("serve", "--config", path, command=command)
    assert completed.returncode == 2
    assert "'none'" in completed.stderr


@pytest.mark.parametrize("text", ["[serve]\ncolour = 1", "[serve]\nport = 'x'", "nonsense"])
def test_wrong_settings_are_refused_in_a_sentence(run: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "partita.toml"
    path.write_text(text)
    completed = run("serve", "--config", str(path))
    assert completed.returncode in (1, 2)
    assert "Traceback" not in completed.stderr
    assert completed.stderr.strip()
