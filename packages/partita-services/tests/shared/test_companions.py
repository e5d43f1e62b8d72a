"""Workflows, functions and triggers run beside the leader, and are reached through every server."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testkit.data.item_tables import create, item
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

SECONDS_MAX = 40
ROLE = "arn:aws:iam::123456789012:role/any"
WATCHER = """
import json, os

def handle(event, context):
    lines = "".join(json.dumps(record["dynamodb"]["Keys"]["pk"]["S"]) + "\\n"
                    for record in event["Records"])
    seen = os.open("seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(seen, lines.encode())
    os.close(seen)
"""
SETTINGS = """
[[triggers]]
name = "watcher"
table = "{table}"
function = "watching:handle"
"""
MACHINE = {
    "StartAt": "Wait",
    "States": {
        "Wait": {"Type": "Wait", "Seconds": 1, "Next": "Done"},
        "Done": {"Type": "Pass", "Result": "done", "End": True},
    },
}


@pytest.mark.soak
def test_a_workflow_and_a_function_are_the_same_on_all_servers_and_outlive_the_leader(
    postgresql: PostgreSQL,
) -> None:
    storage = storage_url(postgresql, "companions")
    assert processes.run("storage", "init", storage).returncode == 0
    with processes.starting() as start:
        leader, *others = [start("serve", "--port", "0", "--storage", storage) for _ in range(3)]
        states = [other.client("stepfunctions") for other in others]
        machine = states[0].create_state_machine(
            name="machine", definition=json.dumps(MACHINE), roleArn=ROLE
        )["stateMachineArn"]
        functions = [other.client("lambda") for other in others]
        functions[0].create_function(
            FunctionName="doubled",
            Runtime="python3.11",
            Role=ROLE,
            Handler="code.handle",
            Code={"ZipFile": _zipped("def handle(event, context):\n    return 2 * event\n")},
        )
        assert (
            json.load(functions[1].invoke(FunctionName="doubled", Payload=b"21")["Payload"]) == 42
        )
        execution = states[1].start_execution(stateMachineArn=machine)["executionArn"]
        leader.kill()
        _wait(lambda: states[0].describe_execution(executionArn=execution)["status"] == "SUCCEEDED")
        assert _invoked(functions[1], b"4") == 8


@pytest.mark.soak
def test_a_trigger_gets_what_all_servers_write_also_when_its_leader_is_killed(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    storage = storage_url(postgresql, "triggers")
    assert processes.run("storage", "init", storage).returncode == 0
    (tmp_path / "watching.py").write_text(WATCHER)
    config = tmp_path / "settings.toml"
    with processes.starting() as start:
        maker = start("serve", "--port", "0", "--storage", storage)
        spec = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        table = create(maker.client(), StreamSpecification=spec)
        maker.terminate()
        config.write_text(SETTINGS.format(table=table))
        servers = [
            start("serve", "--port", "0", "--storage", storage, "--config", config, cwd=tmp_path)
            for _ in range(2)
        ]
        clients = [server.client() for server in servers]
        for place in range(20):
            clients[place % 2].put_item(TableName=table, Item=item(f"k{place}"))
        _wait(lambda: len(_seen(tmp_path)) == 20)
        assert sorted(_seen(tmp_path)) == sorted(f"k{place}" for place in range(20))
        servers[0].kill()
        for place in range(20, 30):
            clients[1].put_item(TableName=table, Item=item(f"k{place}"))
        _wait(lambda: len(set(_seen(tmp_path))) == 30)
        # What was under way when the leader was killed may come twice, all else comes once.
        assert len(_seen(tmp_path)) < 40


def _invoked(client: Any, payload: bytes) -> Any:
    return json.load(client.invoke(FunctionName="doubled", Payload=payload)["Payload"])


def _zipped(code: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("code.py", code)
    return packed.getvalue()


def _seen(folder: Path) -> list[str]:
    path = folder / "seen"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _wait(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)
