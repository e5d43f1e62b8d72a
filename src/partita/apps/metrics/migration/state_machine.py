"""The state machine of figure 5.11 (`state_machine.json`), on a workflow engine of its own.

The engine keeps executions in a table beside the catalogue: after a kill they are found there and
go on.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from partita.apps.metrics.dynamodb.tables import Tables
from partita.apps.metrics.mariadb.connections import PASSWORD
from partita.apps.metrics.migration.functions import ENDPOINT, MYSQL, TABLE
from partita.errors import PartitaError
from partita.server import frames
from partita.settings import Function
from partita.workflows.companion import Workflows
from partita.workflows.language import strip_comments
from partita.workflows.running.tasks.functions import LocalFunctions

DEFINITION = Path(__file__).with_name("state_machine.json")
NAME = "MetricMetadataMigration"
ROLE = "arn:aws:iam::000000000000:role/metrics"
SUCCEEDED = "SUCCEEDED"
ALREADY_EXISTS = "StateMachineAlreadyExists"
HANDLERS = {
    "MigrateOneMetricLambda": "partita.apps.metrics.migration.functions:migrate_one_metric",
    "CleanUpDynamoDbFromMigratedMetricMetadataLambda": (
        "partita.apps.metrics.migration.functions:clean_up"
    ),
}


@asynccontextmanager
async def opened(mysql: str, endpoint: str, tables: Tables) -> AsyncIterator[Machine]:
    """Resumes all executions that were under way."""
    environment = {MYSQL: mysql, ENDPOINT: endpoint, TABLE: tables.metrics}
    if PASSWORD in os.environ:
        environment[PASSWORD] = os.environ[PASSWORD]
    functions = tuple(
        Function(name=name, handler=handler, environment=environment)
        for name, handler in HANDLERS.items()
    )
    start = frames.Start(endpoint=endpoint, folder=str(Path.cwd()))
    engine = Workflows(start, f"{tables.metrics}-migration", LocalFunctions(functions, Path.cwd()))
    await engine.open()
    try:
        machine = Machine(engine)
        await machine.put(strip_comments(DEFINITION.read_text()))
        yield machine
    finally:
        await engine.close()


class Machine:
    def __init__(self, engine: Workflows) -> None:
        self._engine = engine
        self._arn = ""

    async def put(self, definition: str) -> None:
        """Create the machine, or update its definition."""
        request = {"name": NAME, "definition": definition, "roleArn": ROLE}
        status, answer = await self._ask("CreateStateMachine", request)
        if status != 200 and answer["__type"].endswith(ALREADY_EXISTS):
            listed = await self._answer("ListStateMachines", {})
            arns = {
                machine["name"]: machine["stateMachineArn"] for machine in listed["stateMachines"]
            }
            self._arn = arns[NAME]
            update = {"stateMachineArn": self._arn, "definition": definition}
            await self._answer("UpdateStateMachine", update)
        elif status != 200:
            raise _refused("CreateStateMachine", answer)
        else:
            self._arn = answer["stateMachineArn"]

    async def start(self, metric: str) -> str:
        """Start an execution that migrates a metric; returns its ARN."""
        started = await self._engine.service.executions.start(
            self._arn, str(uuid.uuid4()), json.dumps({"metricName": metric})
        )
        return str(started["executionArn"])

    async def finished(self, arn: str) -> tuple[str, str | None]:
        """The metric and its outcome; None when it failed and was cleaned up."""
        execution = await self._engine.service.executions.finished(arn)
        metric = json.loads(execution.input)["metricName"]
        if execution.status != SUCCEEDED:
            return metric, None
        return metric, json.loads(execution.output or "{}")["outcome"]

    async def reason(self, arn: str) -> str:
        """Why the first function of a failed execution failed."""
        request = {"executionArn": arn, "maxResults": 100}
        for event in (await self._answer("GetExecutionHistory", request))["events"]:
            if (details := event.get("lambdaFunctionFailedEventDetails")) is not None:
                cause = json.loads(details.get("cause") or "{}")
                return f"{details.get('error')}: {cause.get('errorMessage')}"
        return "unknown: no function failed in its history"

    async def running(self) -> AsyncIterator[str]:
        """The ARNs of the executions that were under way."""
        request: dict[str, Any] = {"stateMachineArn": self._arn, "statusFilter": "RUNNING"}
        while True:
            answer = await self._answer("ListExecutions", request)
            for execution in answer["executions"]:
                yield execution["executionArn"]
            if "nextToken" not in answer:
                return
            request["nextToken"] = answer["nextToken"]

    async def _answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        status, answer = await self._ask(operation, request)
        if status != 200:
            raise _refused(operation, answer)
        return answer

    async def _ask(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, body = await self._engine.api.answer(operation, json.dumps(request).encode())
        return status, json.loads(body)


def _refused(operation: str, answer: dict[str, Any]) -> PartitaError:
    return PartitaError(f"{operation} was refused: {answer.get('message', answer['__type'])}")
