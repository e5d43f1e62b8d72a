"""What a Task's Resource names: a function, an activity, or an operation of a service."""

from __future__ import annotations

import re
from typing import NamedTuple

from partita.server.protocol import model
from partita.workflows.language import Diagnostic, InvalidDefinition, StateMachine
from partita.workflows.running import arns
from partita.workflows.running.records import EXPRESS

LAMBDA, ACTIVITY, INVOKE, START = "lambda", "activity", "lambda:invoke", "states:startExecution"
DYNAMODB, SDK = "dynamodb", "aws-sdk"
SYNC, SYNC_2, TOKEN = ".sync", ".sync:2", ".waitForTaskToken"

DYNAMODB_OPERATIONS = ("getItem", "putItem", "updateItem", "deleteItem")
_SERVICE = re.compile(r"arn:aws[\w-]*:states:[\w-]*:\d*:(?:(aws-sdk):)?([\w-]+):(\w+)(\.[\w:]+)?")


class SdkService(NamedTuple):
    wire: str
    """What the client calls it."""
    errors: str
    """How the names of its errors begin."""
    model: str


SDK_SERVICES = {
    "dynamodb": SdkService("dynamodb", "DynamoDb", model.DYNAMODB),
    "kinesis": SdkService("kinesis", "Kinesis", model.KINESIS),
    "sfn": SdkService("states", "Sfn", model.STEP_FUNCTIONS),
}
"""By their names in a Resource."""


class Integration(NamedTuple):
    kind: str
    name: str
    """Of the function or the activity, or the operation as the Resource has it."""
    pattern: str = ""
    """Whether a task waits for more than the answer."""
    service: str = ""

    @property
    def operation(self) -> str:
        """As the service itself calls it: PutItem for putItem."""
        return self.name[0].upper() + self.name[1:]


def integration_of(resource: str) -> Integration | None:
    """None for what is not built."""
    if is_activity(resource):
        return Integration(ACTIVITY, arns.activity_name(resource))
    match = _SERVICE.fullmatch(resource)
    if match is None:
        is_function = resource.startswith(("arn:aws:lambda:", "arn:aws-", "${"))
        name = arns.function_name(resource) if is_function else None
        return None if name is None else Integration(LAMBDA, name)
    sdk, service, operation, pattern = match.groups(default="")
    if sdk and service in SDK_SERVICES and pattern in ("", TOKEN):
        return Integration(SDK, operation, pattern, service)
    if service == DYNAMODB and operation in DYNAMODB_OPERATIONS and not pattern:
        return Integration(DYNAMODB, operation)
    named = f"{service}:{operation}"
    if not sdk and pattern in _PATTERNS.get(named, ()):
        return Integration(named, operation, pattern)
    return None


def is_activity(resource: str) -> bool:
    return arns.kind_of(resource) == arns.ACTIVITY


_PATTERNS = {INVOKE: ("", TOKEN), START: ("", SYNC, SYNC_2, TOKEN)}


def check_resources(machine: StateMachine, type: str) -> None:
    """An InvalidDefinition when a machine wants what is not built, or not for its type."""
    refused = [
        Diagnostic("ERROR", "SCHEMA_VALIDATION_FAILED", reason, location)
        for location, resource in machine.tasks()
        if (reason := _refusal(resource, type))
    ]
    if refused:
        raise InvalidDefinition(refused)


def _is_known(integration: Integration) -> bool:
    if integration.kind != SDK:
        return True
    return integration.operation in model.load(SDK_SERVICES[integration.service].model).inputs


def _refusal(resource: str, type: str) -> str:
    integration = integration_of(resource)
    if integration is None or not _is_known(integration):
        return f"The resource {resource!r} is not one that this server can call"
    if type == EXPRESS and integration.kind == ACTIVITY:
        return "Express state machine does not support Activity ARN"
    if type == EXPRESS and integration.pattern:
        return f"Express state machine does not support '{integration.pattern}' service integration"
    return ""
