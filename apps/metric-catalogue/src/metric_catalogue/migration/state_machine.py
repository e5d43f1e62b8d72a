"""The state machine of figure 5.11 (`state_machine.json`) and its functions, on the server that has
the tables: Step Functions' API shows the migration, and the server goes on with it whatever
becomes of the command. On Amazon they come from a template (`cloudformation`).
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
from urllib.parse import quote

from metric_catalogue.dynamodb.tables import Tables
from metric_catalogue.mariadb.connections import PASSWORD
from metric_catalogue.migration.functions import ENDPOINT, MACHINE, MYSQL, TABLE
from partita.client import Client, ClientError
from partita.errors import PartitaError
from partita_services.workflows.language import strip_comments, substitute

DEFINITION = Path(__file__).with_name("state_machine.json")
NAME = "MetricMetadataMigration"
MIGRATE_ONE = "MigrateOneMetricLambda"
CLEAN_UP = "CleanUpDynamoDbFromMigratedMetricMetadataLambda"
INVOKER = "MetricMigrationInvoker"
HANDLERS = {
    MIGRATE_ONE: "metric_catalogue.migration.functions.migrate_one_metric",
    CLEAN_UP: "metric_catalogue.migration.functions.clean_up",
    INVOKER: "metric_catalogue.migration.functions.invoke",
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


class Started(NamedTuple):
    arn: str
    metric: str


class Ended(NamedTuple):
    metric: str
    outcome: str | None
    """None when it failed and was cleaned up."""


def named(base: str, tables: Tables) -> str:
    """One catalogue has the names of the thesis; others on the same server add their table's."""
    if tables == Tables():
        return base
    name = f"{base}-{tables.metrics}"
    if len(name) <= FUNCTION_CHARS_MAX and re.fullmatch(r"[\w-]+", name):
        return name
    return f"{base}-{sha256(tables.metrics.encode()).hexdigest()[:12]}"


@asynccontextmanager
async def opened(
    client: Client, mysql: str, endpoint: str, tables: Tables
) -> AsyncIterator[Machine]:
    """Created where that is missing."""
    if AMAZON.match(endpoint) is None:
        yield await _created(client, mysql, endpoint, tables)
        return
    region = os.environ.get("AWS_DEFAULT_REGION") or endpoint.split(".")[1]
    amazon = Client(None, region)
    try:
        found = await _machines(amazon)
        name = named(NAME, tables)
        if name not in found:
            raise PartitaError(
                f"There is no state machine {name}: deploy the template that `partita metrics "
                "cloudformation` prints first."
            )
        yield Machine(amazon, found[name], named(INVOKER, tables))
    finally:
        await amazon.close()


async def _created(client: Client, mysql: str, endpoint: str, tables: Tables) -> Machine:
    environment = {MYSQL: mysql, ENDPOINT: endpoint, TABLE: tables.metrics}
    if PASSWORD in os.environ:
        environment[PASSWORD] = os.environ[PASSWORD]
    try:
        arns = {
            f"{base}Arn": await _put_function(client, named(base, tables), base, environment)
            for base in (MIGRATE_ONE, CLEAN_UP)
        }
        definition = substitute(strip_comments(DEFINITION.read_text()), arns)
        arn = await _put_machine(client, named(NAME, tables), definition)
        invoker = named(INVOKER, tables)
        await _put_function(client, invoker, INVOKER, {**environment, MACHINE: arn})
    except ClientError as error:
        raise PartitaError(
            f"{endpoint} does not take the migration's functions and state machine: {error}"
        ) from error
    return Machine(client, arn, invoker)


async def _put_function(client: Client, name: str, base: str, environment: dict[str, str]) -> str:
    """Returns its ARN."""
    described = {
        "Handler": HANDLERS[base],
        "Role": ROLE,
        "Runtime": RUNTIME,
        "Timeout": TIMEOUT_SECONDS,
        "Environment": {"Variables": environment},
    }
    try:
        request = {**described, "FunctionName": name, "Code": {"ZipFile": _package()}}
        answer = await _lambda(client, "POST", FUNCTIONS, request)
    except ClientError as error:
        if error.code not in EXISTS:
            raise
        answer = await _lambda(client, "PUT", f"{FUNCTIONS}/{name}/configuration", described)
    return str(answer["FunctionArn"])


def _package() -> str:
    """The code is installed where the server runs; Lambda's API wants some all the same."""
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
    """ARNs by name."""
    found: dict[str, str] = {}
    request: dict[str, Any] = {"maxResults": PAGE}
    while True:
        answer = await client.call("states", "ListStateMachines", request)
        found |= {one["name"]: one["stateMachineArn"] for one in answer["stateMachines"]}
        if "nextToken" not in answer:
            return found
        request["nextToken"] = answer["nextToken"]


class Machine:
    def __init__(self, client: Client, arn: str, invoker: str) -> None:
        self._client = client
        self._arn = arn
        self._invoker = invoker
        self._places = asyncio.Semaphore(AT_ONCE)

    async def invoke(self, leave_out: Iterable[str] = ()) -> list[Started]:
        """Start executions for some of the metrics that are not migrated; none when none are."""
        path = f"{FUNCTIONS}/{quote(self._invoker)}/invocations"
        event = json.dumps({"leaveOut": sorted(leave_out)}).encode()
        answer = await self._client.request("lambda", "POST", path, event, seconds_max=300.0)
        content = json.loads(answer.content)
        if "errorType" in content:
            raise InvokerFailed(f"{content['errorType']}: {content['errorMessage']}")
        return [Started(*one) for one in content["started"]]

    async def running(self) -> set[str]:
        """The ARNs of all executions that have not ended."""
        found: set[str] = set()
        request: dict[str, Any] = {
            "stateMachineArn": self._arn,
            "statusFilter": RUNNING,
            "maxResults": PAGE,
        }
        while True:
            answer = await self._client.call("states", "ListExecutions", request)
            found |= {one["executionArn"] for one in answer["executions"]}
            if "nextToken" not in answer:
                return found
            request["nextToken"] = answer["nextToken"]

    async def ended(self, arn: str) -> Ended | None:
        """None while it runs: lists of Amazon's are behind."""
        async with self._places:
            request = {"executionArn": arn}
            found = await self._client.call("states", "DescribeExecution", request)
        if found["status"] == RUNNING:
            return None
        metric = json.loads(found["input"])["metricName"]
        if found["status"] != SUCCEEDED:
            return Ended(metric, None)
        return Ended(metric, json.loads(found["output"])["outcome"])

    async def reason(self, arn: str) -> str:
        """Why the first function of a failed execution failed."""
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
    pass
