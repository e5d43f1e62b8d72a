"""Machines on a server, over the wire: create a machine, run it, read its history."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from partita.client import Client, ClientError
from partita.errors import PartitaError
from partita_services.functions.function_arns import OWN_ROLE, role_arn
from partita_services.workflows.running import state_machine_arns

ROLE = role_arn(OWN_ROLE)
TRIES = 4
POLL_SECONDS, POLL_SECONDS_MAX = 0.02, 0.5

Answer = dict[str, Any]


class RemoteMachines:
    def __init__(self, endpoint: str) -> None:
        self._client = Client(endpoint, connections=4, tries=TRIES)

    async def __aenter__(self) -> RemoteMachines:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def call(self, operation: str, **request: Any) -> Answer:
        return await self._client.call("states", operation, request)

    async def put(self, name: str, definition: str) -> str:
        """Create the machine, or update its definition; returns its ARN."""
        try:
            created = await self.call(
                "CreateStateMachine", name=name, definition=definition, roleArn=ROLE
            )
            return str(created["stateMachineArn"])
        except ClientError as error:
            if error.code != "StateMachineAlreadyExists":
                raise
        arn = state_machine_arns.machine_arn(name)
        await self.call("UpdateStateMachine", stateMachineArn=arn, definition=definition)
        return arn

    async def run(self, machine_arn: str, input: str, name: str | None) -> Answer:
        """Run an execution to its end; returns its description (DescribeExecution)."""
        named = {} if name is None else {"name": name}
        started = await self.call(
            "StartExecution", stateMachineArn=machine_arn, input=input, **named
        )
        pause = POLL_SECONDS
        while True:
            execution = await self.call("DescribeExecution", executionArn=started["executionArn"])
            if execution["status"] != "RUNNING":
                return execution
            await asyncio.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS_MAX)

    async def latest(self, machine_arn: str) -> str:
        """The ARN of the latest execution of a machine."""
        listed = await self.call("ListExecutions", stateMachineArn=machine_arn, maxResults=1)
        if not listed["executions"]:
            raise PartitaError(f"{machine_arn} has no executions.")
        return str(listed["executions"][0]["executionArn"])

    async def events(self, execution_arn: str) -> AsyncIterator[Answer]:
        request = {"executionArn": execution_arn, "maxResults": 1000}
        while True:
            page = await self.call("GetExecutionHistory", **request)
            for event in page["events"]:
                yield event
            if "nextToken" not in page:
                return
            request["nextToken"] = page["nextToken"]


@contextmanager
def private_server(config: Path | None, time_scale: float | None) -> Iterator[str]:
    """Runs an in-memory server, and yields its endpoint."""
    options = ["--port", "0", "--in-memory"]
    if config is not None:
        options += ["--config", str(config)]
    if time_scale is not None:
        options += ["--time-scale", str(time_scale)]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "partita.cli", "serve", *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = re.search(r"http://\S+", process.stdout.readline())
        if ready is None:
            raise PartitaError("The private server did not start; its output above says why.")
        yield ready[0]
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
