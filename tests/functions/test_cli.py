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
        str(answer),
    )  # fmt: skip
    assert (invoked["StatusCode"], answer.read_text()) == (200, "42")
    server.client("kinesis").create_stream(StreamName=name, ShardCount=1)
    mapping = aws(
        server, "lambda", "create-event-source-mapping", "--function-name", name,
        "--event-source-arn", f"arn:aws:kinesis:us-east-1:123456789012:stream/{name}",
        "--starting-position", "LATEST",
    )  # fmt: skip
    assert (mapping["State"], mapping["FunctionArn"]) == ("Creating", created["FunctionArn"])
    target = json.dumps({"Arn": created["FunctionArn"], "RoleArn": ROLE})
    schedule = aws(
        server, "scheduler", "create-schedule", "--name", name, "--target", target,
        "--schedule-expression", "rate(1 day)", "--flexible-time-window", "Mode=OFF",
    )  # fmt: skip
    assert schedule["ScheduleArn"].endswith(f"/default/{name}")
