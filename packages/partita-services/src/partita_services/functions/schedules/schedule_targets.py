"""The targets of schedules: a function, a machine, a stream, a sink, or an operation of a
service."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from partita.client import Client, ClientError
from partita.errors import RestError, ValidationException
from partita.server.protocol import service_model
from partita_services.functions import function_arns
from partita_services.functions.destinations import Destinations
from partita_services.functions.function_catalog import FunctionCatalog
from partita_services.functions.invocation_queue import InvocationQueue
from partita_services.functions.message_sinks import SendFailed, event_of_bus

BUS = re.compile(r"arn:aws[\w-]*:events:[\w-]*:\d*:event-bus/.+")
MACHINE = re.compile(r"arn:aws[\w-]*:states:[\w-]*:\d*:stateMachine:.+")
UNIVERSAL = re.compile(r"arn:aws[\w-]*:scheduler:::aws-sdk:(\w+):(\w+)")
SERVICES = {"dynamodb": "dynamodb", "kinesis": "kinesis", "sfn": "states"}
"""The services whose operations a schedule can call: their SDK names, and the client's names."""
READING = (
    *("get", "describe", "list", "poll", "receive", "search", "scan", "query", "select", "read"),
    *("lookup", "discover", "validate", "batchGet", "batchDescribe", "batchRead", "transactGet"),
)
"""The beginnings of operation names that a schedule cannot call. (EventBridge Scheduler guide,
"Using universal targets")"""


class ScheduleFailed(Exception):
    """Raised when a schedule did not reach its target; its text is the reason."""


class ScheduleTargets:
    """`operations` are those that the server implements, by their names in its registry."""

    def __init__(
        self,
        client: Client,
        catalog: FunctionCatalog,
        queue: InvocationQueue,
        destinations: Destinations,
        operations: Collection[str],
    ) -> None:
        self._client = client
        self._catalog = catalog
        self._queue = queue
        self._destinations = destinations
        self._operations = frozenset(operations)

    def check(self, target: dict[str, Any]) -> None:
        """Refuse a target that cannot be called."""
        arn = target["Arn"]
        if (BUS.fullmatch(arn) is not None) != ("EventBridgeParameters" in target):
            raise ValidationException(
                "EventBridgeParameters are required for an event bus, and only there."
            )
        if function_arns.is_function(arn) or MACHINE.fullmatch(arn):
            return
        universal = UNIVERSAL.fullmatch(arn)
        if universal is not None:
            if self._can_call(*universal.groups()):
                return
            raise ValidationException(f"The target {arn} is not supported by this server.")
        try:
            self._destinations.check(arn)
        except RestError as error:
            raise ValidationException(error.message) from None

    def _can_call(self, service: str, operation: str) -> bool:
        name = _wire_name(operation)
        if service == "lambda":
            return operation == "invoke"
        if service not in SERVICES or operation.startswith(READING):
            return False
        if service == "sfn":
            return name in service_model.load(service_model.STEP_FUNCTIONS).inputs
        prefix = service_model.KINESIS_NAMES if service == "kinesis" else ""
        return prefix + name in self._operations

    async def run(self, target: dict[str, Any], text: str, execution: str, role: str = "") -> None:
        """Returns when the target has accepted the call; raises RunFailed when it has not.

        A repeated run starts a machine only once, because `execution` is the same. Without a role,
        the call has the server's own rights.
        """
        arn, client = target["Arn"], self._client.acting_for(role)
        try:
            if function_arns.is_function(arn):
                function = function_arns.qualified(arn)
                await _check_function(client, arn)
                await self._catalog.version(function)
                await self._queue.add(function, _one_line(text))
            elif MACHINE.fullmatch(arn):
                request = {"stateMachineArn": arn, "input": text, "name": execution}
                await client.call("states", "StartExecution", request)
            elif (universal := UNIVERSAL.fullmatch(arn)) is not None:
                await self._call(client, universal[1], universal[2], json.loads(text))
            else:
                if (event := target.get("EventBridgeParameters")) is not None:
                    detail = json.loads(text)
                    text = json.dumps(event_of_bus(event["Source"], event["DetailType"], detail))
                key = target.get("KinesisParameters", {}).get("PartitionKey", execution)
                await self._destinations.acting_for(role).send(arn, text.encode(), key)
        except ClientError as error:
            if error.code != "ExecutionAlreadyExists":
                raise ScheduleFailed(str(error)) from error
        except (RestError, SendFailed, ValueError) as error:
            raise ScheduleFailed(str(error)) from error

    async def _call(
        self, client: Client, service: str, operation: str, request: dict[str, Any]
    ) -> None:
        if service == "lambda":
            payload = request.get("Payload", "{}")
            function = function_arns.qualified(str(request.get("FunctionName", "")))
            await _check_function(client, str(request["FunctionName"]))
            await self._catalog.version(function)
            text = payload if isinstance(payload, str) else json.dumps(payload)
            await self._queue.add(function, _one_line(text))
            return
        if service == "sfn":
            request = {name[:1].lower() + name[1:]: value for name, value in request.items()}
        await client.call(SERVICES[service], _wire_name(operation), request)


def _wire_name(operation: str) -> str:
    return operation[:1].upper() + operation[1:]


async def _check_function(client: Client, name_or_arn: str) -> None:
    function = function_arns.qualified(name_or_arn)
    suffix = "" if function.qualifier == function_arns.LATEST else function.qualifier
    arn = function_arns.function_arn(function.name, suffix)
    await client.check_own_right("lambda:InvokeFunction", arn)


def _one_line(text: str) -> bytes:
    return json.dumps(json.loads(text)).encode()
