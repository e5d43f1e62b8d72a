"""The AWS CLI speaks to functions, mappings and schedules as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..processes import Server
from .packages import ROLE, zipped


def aws(server: Server, *arguments: str) -> Any:
    """What the AWS CLI prints."""
    done = subprocess.run(
        [Path(sys.executable).parent / "aws", *arguments, "--endpoint-url", server.url],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": "us-east-1",
        },
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


def test_a_function_is_created_invoked_and_mapped(
    server: Server, name: str, tmp_path: Path
) -> None:
    package, answer = tmp_path / "package.zip", tmp_path / "answer"
    package.write_bytes(zipped(app="def handler(event, context): return event['n'] + 1"))
    created = aws(
        server, "lambda", "create-function", "--function-name", name, "--runtime", "python3.12",
        "--handler", "app.handler", "--role", ROLE, "--zip-file", f"fileb://{package}",
    )  # fmt: skip
    invoked = aws(
        server, "lambda", "invoke", "--function-name", name, "--payload", '{"n": 41}',
        *cli_binary_format(), str(answer),
    )  # fmt: skip
    assert (invoked["StatusCode"], answer.read_text()) == (200, "42")
    aws(server, "kinesis", "create-stream", "--stream-name", name, "--shard-count", "1")
    mapping = aws(
        server, "lambda", "create-event-source-mapping", "--function-name", name,
        "--event-source-arn", f"arn:aws:kinesis:us-east-1:123456789012:stream/{name}",
        "--starting-position", "LATEST",
    )  # fmt: skip
    assert (mapping["State"], mapping["FunctionArn"]) == ("Creating", created["FunctionArn"])
    target = json.dumps({"Arn": created["FunctionArn"], "RoleArn": ROLE})
    aws(
        server, "scheduler", "create-schedule", "--name", name, "--target", target,
        "--schedule-expression", "rate(1 day)", "--flexible-time-window", "Mode=OFF",
    )  # fmt: skip
    got = aws(server, "scheduler", "get-schedule", "--name", name)
    assert got["ScheduleExpression"] == "rate(1 day)"


def cli_binary_format() -> tuple[str, ...]:
    """Version 2 of the CLI takes payloads as base64 unless told otherwise."""
    done = subprocess.run(
        [Path(sys.executable).parent / "aws", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    is_second = "aws-cli/2" in done.stdout + done.stderr
    return ("--cli-binary-format", "raw-in-base64-out") if is_second else ()
