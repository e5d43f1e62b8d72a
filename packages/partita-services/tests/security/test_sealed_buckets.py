"""Objects that workflows write into a folder while encryption is on: sealed, as exports are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.database.storage.sealing.master_keys import new_printed_key
from testkit.servers import processes
from testkit.servers.processes import Server, run

from ..workflows.conftest import ROLE, finished, states_client

SECRET = "wordsinside"
MARK = b"partita sealed 1\n"


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    with processes.starting() as starter:
        yield starter


def outcome(states: Any, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of one operation of S3, in a machine of its own."""
    task = {
        "Type": "Task",
        "Resource": f"arn:aws:states:::aws-sdk:s3:{operation}",
        "Parameters": {"Bucket": "reports", **arguments},
        "End": True,
    }
    machine = {"StartAt": "Only", "States": {"Only": task}}
    name = f"{operation}-{os.urandom(4).hex()}"
    created = states.create_state_machine(name=name, definition=json.dumps(machine), roleArn=ROLE)
    started = states.start_execution(stateMachineArn=created["stateMachineArn"])
    return finished(states, started["executionArn"])


def result(states: Any, operation: str, arguments: dict[str, Any]) -> Any:
    execution = outcome(states, operation, arguments)
    assert execution["status"] == "SUCCEEDED", execution
    return json.loads(execution["output"])


@pytest.mark.parametrize("kind", ["file", "env"])
def test_objects_of_workflows_are_sealed_and_read_back(
    tmp_path: Path, start: Callable[..., Server], kind: str
) -> None:
    key, bucket = tmp_path / "key", tmp_path / "bucket"
    bucket.mkdir()
    key.write_text(new_printed_key())
    key.chmod(0o600)
    settings = tmp_path / "partita.toml"
    settings.write_text(f'[[buckets]]\nname = "reports"\nfolder = "{bucket}"\n')
    source = f"file:{key}" if kind == "file" else "env:VAULT_KEY"
    server = start(
        *("serve", "--port", "0", "--data", tmp_path / "data", "--config", settings),
        *("--encryption-key", source),
        env={**processes.ENVIRONMENT, "VAULT_KEY": key.read_text()},
    )
    states = states_client(server.url)
    tag = result(states, "putObject", {"Key": "day/one.txt", "Body": SECRET})["ETag"]
    path = bucket / "day" / "one.txt"
    content = path.read_bytes()
    assert content.startswith(MARK) and SECRET.encode() not in content

    found = result(states, "getObject", {"Key": "day/one.txt"})
    assert (found["Body"], found["ContentLength"], found["ETag"]) == (SECRET, len(SECRET), tag)
    [listed] = result(states, "listObjectsV2", {})["Contents"]
    assert (listed["Size"], listed["ETag"]) == (len(SECRET), tag)
    copied = {"Key": "copies/two.txt", "CopySource": "reports/day/one.txt"}
    result(states, "copyObject", copied)
    assert (bucket / "copies" / "two.txt").read_bytes().startswith(MARK)
    assert result(states, "getObject", {"Key": "copies/two.txt"})["Body"] == SECRET

    # What others have put there is read as it is.
    (bucket / "plain.txt").write_text("for all")
    assert result(states, "getObject", {"Key": "plain.txt"})["Body"] == "for all"

    opened = run(
        *("keys", "decrypt", bucket, tmp_path / "opened"),
        *("--encryption-key", f"file:{key}"),
    )
    assert opened.returncode == 0, opened.stderr
    assert (tmp_path / "opened" / "day" / "one.txt").read_text() == SECRET

    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    damaged = outcome(states, "getObject", {"Key": "day/one.txt"})
    assert (damaged["status"], damaged["error"]) == ("FAILED", "S3.S3Exception")
    assert SECRET not in damaged["cause"]


def test_results_of_map_runs_are_sealed(tmp_path: Path, start: Callable[..., Server]) -> None:
    key, bucket = tmp_path / "key", tmp_path / "bucket"
    bucket.mkdir()
    key.write_text(new_printed_key())
    key.chmod(0o600)
    settings = tmp_path / "partita.toml"
    settings.write_text(f'[[buckets]]\nname = "reports"\nfolder = "{bucket}"\n')
    server = start(
        *("serve", "--port", "0", "--data", tmp_path / "data", "--config", settings),
        *("--encryption-key", f"file:{key}"),
    )
    states = states_client(server.url)
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    inner = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    each = {
        "Type": "Map",
        "ItemProcessor": {"ProcessorConfig": config, **inner},
        "ResultWriter": {
            "Resource": "arn:aws:states:::s3:putObject",
            "Parameters": {"Bucket": "reports", "Prefix": "out"},
        },
        "End": True,
    }
    machine = {"StartAt": "Each", "States": {"Each": each}}
    created = states.create_state_machine(name="each", definition=json.dumps(machine), roleArn=ROLE)
    started = states.start_execution(
        stateMachineArn=created["stateMachineArn"], input=json.dumps([SECRET, SECRET])
    )
    execution = finished(states, started["executionArn"])
    assert execution["status"] == "SUCCEEDED", execution
    files = [path for path in bucket.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert all(path.read_bytes().startswith(MARK) for path in files)
