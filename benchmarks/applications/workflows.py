"""`python -m benchmarks.applications.workflows`: executions per second, from StartExecution to
their end.

One durable server; one machine of two Pass states, and one with a Task that calls a Python
function. The clock stops when the last execution has ended.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.run import say
from partita.client import Client

EXECUTIONS = 2_000
STARTERS = 32
POLL_SECONDS = 0.05
ROLE = "arn:aws:iam::123456789012:role/any"
MODULE = "def answer(event, context):\n    return {'answer': event}\n"
SETTINGS = '[[functions]]\nname = "answer"\nhandler = "functions:answer"\n'
LAST = {"Type": "Pass", "End": True}
MACHINES: dict[str, dict[str, Any]] = {
    "pass": {"First": {"Type": "Pass", "Next": "Last"}, "Last": LAST},
    "function": {
        "First": {
            "Type": "Task",
            "Resource": "arn:aws:lambda:us-east-1:123456789012:function:answer",
            "Next": "Last",
        },
        "Last": LAST,
    },
}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="workflows-") as name, _serving(Path(name)) as url:
        for kind, states in MACHINES.items():
            rate = asyncio.run(_measure(url, kind, states))
            say(f"{kind}: {rate:,.0f} executions per second")


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    (folder / "functions.py").write_text(MODULE)
    (folder / "partita.toml").write_text(SETTINGS)
    options = ("--port", "0", "--data", folder / "data", "--config", folder / "partita.toml")
    command = [sys.executable, "-m", "partita.cli", "serve", *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ready = re.search(r"http://\S+", process.stdout.readline())
        assert ready, "the server did not start"
        yield ready[0]
    finally:
        process.terminate()
        process.communicate()


async def _measure(url: str, kind: str, states: dict[str, Any]) -> float:
    client = Client(url, connections=STARTERS)
    definition = json.dumps({"StartAt": "First", "States": states})
    machine = {"name": kind, "definition": definition, "roleArn": ROLE}
    created = await client.call("states", "CreateStateMachine", machine)
    arn = {"stateMachineArn": created["stateMachineArn"]}
    await client.call("states", "StartExecution", arn)
    await _ended(client, arn)
    numbers = iter(range(EXECUTIONS))

    async def start() -> None:
        for number in numbers:
            await client.call("states", "StartExecution", {**arn, "input": f'{{"n":{number}}}'})

    began = time.perf_counter()
    await asyncio.gather(*(start() for _ in range(STARTERS)))
    await _ended(client, arn)
    seconds = time.perf_counter() - began
    await client.close()
    return EXECUTIONS / seconds


async def _ended(client: Client, arn: dict[str, str]) -> None:
    asked = {**arn, "statusFilter": "RUNNING", "maxResults": 1}
    while (await client.call("states", "ListExecutions", asked))["executions"]:
        await asyncio.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
