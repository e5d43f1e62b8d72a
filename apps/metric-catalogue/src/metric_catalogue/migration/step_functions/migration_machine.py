"""Creates the state machine of figure 5.11 (`state_machine.json`) and its functions on the server
that has the tables, starts executions, and asks how they ended.

The server runs the executions, so they go on when the command is killed, and the API of Step
Functions shows them. On AWS the machine and the functions come from a CloudFormation template
instead (`partita metrics cloudformation`), and are only looked up here.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import zipfile
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from metric_catalogue.migration.step_functions.migration_functions import (
    ENDPOINT,
    MACHINE,
    MYSQL,
    TABLE,
)
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables
from metric_catalogue.stores.mariadb.mariadb_connections import PASSWORD
from partita.client import Client, ClientError
from partita.client.lambda_invoke import invoke
from partita.errors import PartitaError
from partita_services.workflows.language import strip_comments, substitute

DEFINITION = Path(__file__).with_name("state_machine.json")
NAME = "MetricMetadataMigration"
MIGRATE_ONE = "MigrateOneMetricLambda"
CLEAN_UP = "CleanUpDynamoDbFromMigratedMetricMetadataLambda"
INVOKER = "MetricMigrationInvoker"
HANDLERS = {
    MIGRATE_ONE: "metric_catalogue.migration.step_functions.migration_functions.migrate_one_metric",
    CLEAN_UP: "metric_catalogue.migration.step_functions.migration_functions.clean_up",
    INVOKER: "metric_catalogue.migration.step_functions.migration_functions.invoke",
}
ROLE = "arn:aws:iam::000000000000:role/metrics"
RUNTIME = "python3.12"
TIMEOUT_SECONDS = 300
FUNCTIONS = "/2015-03-31/functions"
FUNCTION_CHARS_MAX = 64
EXISTS = ("ResourceConflictException", "StateMachineAlreadyExists")
RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"
AT_ONCE = 16
PAGE = 1000
AMAZON = re.compile(r"https://[^/]*\.amazonaws\.com(\.cn)?\b")


class StartedExecution(NamedTuple):
    """An execution that copies a metric."""

    arn: str
    metric: str


class EndedExecution(NamedTuple):
    """An execution that has ended, with what its function returned."""

    metric: str
    outcome: str | None
    """None when the copy failed and was cleaned up."""


def scoped_name(base: str, tables: CatalogueTables) -> str:
    """Returns the name of a function or state machine of this catalogue.

    The catalogue in the table `metrics` has the names of the thesis; others on the same server add
    the name of their table, or its hash where that would not be a valid name."""
    if tables == CatalogueTables():
        return base
    name = f"{base}-{tables.metrics}"
    if len(name) <= FUNCTION_CHARS_MAX and re.fullmatch(r"[\w-]+", name):
        return name
    return f"{base}-{sha256(tables.metrics.encode()).hexdigest()[:12]}"


@asynccontextmanager
async def open_machine(
    client: Client, mysql: str, endpoint: str, tables: CatalogueTables
) -> AsyncIterator[MigrationMachine]:
    """Opens the state machine. On a Partita server it is created or brought up to date first."""
    if AMAZON.match(endpoint) is None:
        yield await _created(client, mysql, endpoint, tables)
        return
    region = os.environ.get("AWS_DEFAULT_REGION") or endpoint.split(".")[1]
    amazon = Client(None, region)
    try:
        arns = await _machines(amazon)
        name = scoped_name(NAME, tables)
        if name not in arns:
            raise PartitaError(
                f"There is no state machine {name}: deploy the template that `partita metrics "
                "cloudformation` prints first."
            )
        yield MigrationMachine(amazon, arns[name], scoped_name(INVOKER, tables))
    finally:
        await amazon.close()


async def _created(
    client: Client, mysql: str, endpoint: str, tables: CatalogueTables
) -> MigrationMachine:
    environment = {MYSQL: mysql, ENDPOINT: endpoint, TABLE: tables.metrics}
    if PASSWORD in os.environ:
        environment[PASSWORD] = os.environ[PASSWORD]
    try:
        arns = {
            f"{base}Arn": await _put_function(client, scoped_name(base, tables), base, environment)
            for base in (MIGRATE_ONE, CLEAN_UP)
        }
        definition = substitute(strip_comments(DEFINITION.read_text()), arns)
        arn = await _put_machine(client, scoped_name(NAME, tables), definition)
        invoker = scoped_name(INVOKER, tables)
        await _put_function(client, invoker, INVOKER, {**environment, MACHINE: arn})
    except ClientError as error:
        raise PartitaError(
            f"{endpoint} does not take the migration's functions and state machine: {error}"
        ) from error
    return MigrationMachine(client, arn, invoker)


async def _put_function(client: Client, name: str, base: str, environment: dict[str, str]) -> str:
    """Creates a function or updates its configuration, and returns its ARN."""
    configuration = {
        "Handler": HANDLERS[base],
        "Role": ROLE,
        "Runtime": RUNTIME,
        "Timeout": TIMEOUT_SECONDS,
        "Environment": {"Variables": environment},
    }
    try:
        request = {**configuration, "FunctionName": name, "Code": {"ZipFile": _package()}}
        answer = await _lambda(client, "POST", FUNCTIONS, request)
    except ClientError as error:
        if error.code not in EXISTS:
            raise
        answer = await _lambda(client, "PUT", f"{FUNCTIONS}/{name}/configuration", configuration)
    return str(answer["FunctionArn"])


def _package() -> str:
    """Returns a zip that holds only a note. The code is installed where the server runs, but
    CreateFunction requires a package."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(zipfile.ZipInfo("README"), "The code is in metric_catalogue.\n")
    return b64encode(content.getvalue()).decode()


async def _lambda(client: Client, method: str, path: str, request: object) -> dict[str, Any]:
    answer = await client.request("lambda", method, path, json.dumps(request).encode())
    content: dict[str, Any] = json.loads(answer.content)
    return content


async def _put_machine(client: Client, name: str, definition: str) -> str:
    request = {"name": name, "definition": definition, "roleArn": ROLE}
    try:
        return str((await client.call("states", "CreateStateMachine", request))["stateMachineArn"])
    except ClientError as error:
        if error.code not in EXISTS:
            raise
    arn = (await _machines(client))[name]
    update = {"stateMachineArn": arn, "definition": definition}
    await client.call("states", "UpdateStateMachine", update)
    return arn


async def _machines(client: Client) -> dict[str, str]:
    """Returns the ARNs of all state machines, by name."""
    machines = await _list_all(client, "ListStateMachines", "stateMachines", {})
    return {machine["name"]: machine["stateMachineArn"] for machine in machines}


async def _list_all(
    client: Client, operation: str, member: str, request: dict[str, Any]
) -> list[dict[str, Any]]:
    """Returns all pages of a List operation of Step Functions as one list."""
    listed: list[dict[str, Any]] = []
    page = {**request, "maxResults": PAGE}
    while True:
        answer = await client.call("states", operation, page)
        listed += answer[member]
        if "nextToken" not in answer:
            return listed
        page["nextToken"] = answer["nextToken"]


class MigrationMachine:
    """The state machine and its invoker, over the APIs of Step Functions and Lambda."""

    def __init__(self, client: Client, arn: str, invoker: str) -> None:
        self._client = client
        self._arn = arn
        self._invoker = invoker
        self._places = asyncio.Semaphore(AT_ONCE)

    async def invoke(self, leave_out: Iterable[str] = ()) -> list[StartedExecution]:
        """Starts executions for up to 500 metrics that are not migrated, and returns them; returns
        an empty list when all metrics are migrated."""
        event = json.dumps({"leaveOut": sorted(leave_out)}).encode()
        invoked = await invoke(self._client, self._invoker, event)
        content = json.loads(invoked.payload)
        if invoked.is_error:
            raise InvokerFailed(f"{content['errorType']}: {content['errorMessage']}")
        return [StartedExecution(*execution) for execution in content["started"]]

    async def running(self) -> set[str]:
        """Returns the ARNs of all executions that have not ended."""
        request = {"stateMachineArn": self._arn, "statusFilter": RUNNING}
        executions = await _list_all(self._client, "ListExecutions", "executions", request)
        return {execution["executionArn"] for execution in executions}

    async def ended(self, arn: str) -> EndedExecution | None:
        """Returns how an execution ended, or None while it runs. Amazon's ListExecutions is
        eventually consistent, so an execution that it no longer lists may still be running."""
        async with self._places:
            request = {"executionArn": arn}
            execution = await self._client.call("states", "DescribeExecution", request)
        if execution["status"] == RUNNING:
            return None
        metric = json.loads(execution["input"])["metricName"]
        if execution["status"] != SUCCEEDED:
            return EndedExecution(metric, None)
        return EndedExecution(metric, json.loads(execution["output"])["outcome"])

    async def reason(self, arn: str) -> str:
        """Returns why the first function of a failed execution failed."""
        request = {"executionArn": arn, "maxResults": 100}
        answer = await self._client.call("states", "GetExecutionHistory", request)
        for event in answer["events"]:
            if (details := event.get("lambdaFunctionFailedEventDetails")) is not None:
                try:
                    cause = json.loads(details.get("cause") or "{}")
                except json.JSONDecodeError:
                    cause = {"errorMessage": details["cause"]}
                return f"{details.get('error')}: {cause.get('errorMessage')}"
        return "unknown: no function failed in its history"


class InvokerFailed(PartitaError):
    """Raised with the error of the invoker's function."""
