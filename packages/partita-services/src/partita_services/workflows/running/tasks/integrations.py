"""Integrations: what the Resource of a Task stands for: a function, an activity, or an operation of
a service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from partita.server.protocol import service_model
from partita_services.workflows.language import Diagnostic, InvalidDefinition, StateMachine
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.storage.workflow_records import EXPRESS
from partita_services.workflows.running.tasks.services import job_tasks
from partita_services.workflows.running.tasks.services.s3_objects import OPERATIONS as S3_OPERATIONS

LAMBDA, ACTIVITY, INVOKE, START = "lambda", "activity", "lambda:invoke", "states:startExecution"
DYNAMODB, SDK, S3, STAND_IN = "dynamodb", "aws-sdk", "s3", "stand-in"
HTTP, API = "http:invoke", "apigateway:invoke"
MESSAGES = ("sns:publish", "sqs:sendMessage", "events:putEvents")
SDK_MESSAGES = {
    "sns:publish": "sns:publish",
    "sqs:sendMessage": "sqs:sendMessage",
    "eventbridge:putEvents": "events:putEvents",
}
"""Operations of aws-sdk tasks that do the same as optimized ones."""
SYNC, SYNC_2, TOKEN = ".sync", ".sync:2", ".waitForTaskToken"

DYNAMODB_OPERATIONS = ("getItem", "putItem", "updateItem", "deleteItem")
REST = ("lambda", "scheduler")
_PARTITION = rf"arn:(?:aws[\w-]*|{state_machine_arns.PLACEHOLDER}):states:"
"""The partition may be a placeholder of CloudFormation."""
_STATES = re.compile(_PARTITION + r"[\w-]*:\d*:")
_SERVICE = re.compile(_PARTITION + r"[\w-]*:\d*:(?:(aws-sdk):)?([\w-]+):(\w+)(\.[\w:]+)?")


STATES_NAMES = "States."


class SdkService(NamedTuple):
    wire: str
    """The name of the service in our client."""
    errors: str
    """The prefix of the names of its errors."""
    model: str
    names: str = ""
    """The prefix of its operations in the server's registry."""


SDK_SERVICES = {
    "dynamodb": SdkService("dynamodb", "DynamoDb", service_model.DYNAMODB),
    "kinesis": SdkService("kinesis", "Kinesis", service_model.KINESIS, service_model.KINESIS_NAMES),
    "sfn": SdkService("states", "Sfn", service_model.STEP_FUNCTIONS, STATES_NAMES),
    "lambda": SdkService("lambda", "Lambda", service_model.LAMBDA, "lambda."),
    "scheduler": SdkService("scheduler", "Scheduler", service_model.SCHEDULER, "scheduler."),
}
"""The services, by their names in a Resource."""


class ServerAbilities(NamedTuple):
    """The operations and stand-ins with which this server can do tasks."""

    operations: frozenset[str] | None = None
    """The operations that the server implements, by their names in its registry; None when they are
    unknown."""
    may_call: bool = True
    """True when machines may send HTTP requests to other hosts."""
    stand_ins: Mapping[str, str] = {}
    """Functions that replace services that are not implemented, by resource."""


class Integration(NamedTuple):
    """A Resource, parsed."""

    kind: str
    name: str
    """The function, the activity, or the operation as spelled in the Resource."""
    pattern: str = ""
    """The suffix by which a task waits for more than the answer, such as .sync."""
    service: str = ""

    @property
    def operation(self) -> str:
        """The operation as the service spells it: PutItem for putItem."""
        return self.name[0].upper() + self.name[1:]


def integration_of(resource: str) -> Integration | None:
    """Parses a Resource; None when it is not supported."""
    if is_activity(resource):
        return Integration(ACTIVITY, state_machine_arns.activity_name(resource))
    match = _SERVICE.fullmatch(resource)
    if match is None:
        is_function = resource.startswith(("arn:", "${"))
        name = state_machine_arns.function_name(resource) if is_function else None
        return None if name is None else Integration(LAMBDA, name)
    sdk, service, operation, pattern = match.groups(default="")
    if sdk and (service, operation, pattern) == ("lambda", "invoke", ""):
        return Integration(INVOKE, operation, pattern, SDK)
    if sdk and service in SDK_SERVICES and pattern in ("", TOKEN):
        return Integration(SDK, operation, pattern, service)
    if sdk and service == S3 and operation in S3_OPERATIONS and not pattern:
        return Integration(S3, operation)
    if sdk and pattern in ("", TOKEN) and f"{service}:{operation}" in SDK_MESSAGES:
        return Integration(SDK_MESSAGES[f"{service}:{operation}"], operation, pattern, SDK)
    if service == DYNAMODB and operation in DYNAMODB_OPERATIONS and not pattern:
        return Integration(DYNAMODB, operation)
    named = f"{service}:{operation}"
    if not sdk and pattern in _PATTERNS.get(named, ()):
        return Integration(named, operation, pattern)
    return None


def stand_in(resource: str, functions: Mapping[str, str]) -> Integration | None:
    """The function that stands in for the service of a Resource, if the settings name one. The
    function also answers for jobs that a task waits for."""
    match = _STATES.match(resource)
    name = None if match is None else _named(functions, resource[match.end() :])
    if name is None:
        return None
    return Integration(STAND_IN, name, TOKEN if resource.endswith(TOKEN) else "")


def _named(functions: Mapping[str, str], resource: str) -> str | None:
    """The function for a resource. A pattern without `*` wins, then the longest one."""
    patterns = sorted(functions, key=lambda pattern: ("*" in pattern, -len(pattern)))
    best = next((pattern for pattern in patterns if fnmatchcase(resource, pattern)), None)
    return None if best is None else functions[best]


def is_activity(resource: str) -> bool:
    return state_machine_arns.kind_of(resource) == state_machine_arns.ACTIVITY


_PATTERNS = {
    INVOKE: ("", TOKEN),
    START: ("", SYNC, SYNC_2, TOKEN),
    **dict.fromkeys(MESSAGES, ("", TOKEN)),
    HTTP: ("",),
    API: ("", TOKEN),
    **dict.fromkeys(job_tasks.KINDS, ("", SYNC)),
    "ecs:runTask": ("", SYNC, TOKEN),
    job_tasks.MODEL: ("",),
}


def check_resources(machine: StateMachine, type: str, abilities: ServerAbilities) -> None:
    """Raises InvalidDefinition for resources that this server does not support, or not for this
    type of machine."""
    refused = [
        Diagnostic("ERROR", "SCHEMA_VALIDATION_FAILED", reason, location)
        for location, resource in machine.tasks()
        if (reason := _refusal(resource, type, abilities))
    ]
    if refused:
        raise InvalidDefinition(refused)


def _is_built(integration: Integration, abilities: ServerAbilities) -> bool:
    if integration.kind != SDK:
        return True
    service = SDK_SERVICES[integration.service]
    if abilities.operations is not None:
        return service.names + integration.operation in abilities.operations
    return integration.operation in service_model.load(service.model).inputs


def _refusal(resource: str, type: str, abilities: ServerAbilities) -> str:
    integration = stand_in(resource, abilities.stand_ins) or integration_of(resource)
    if integration is None or not _is_built(integration, abilities):
        return f"The resource {resource!r} is not supported by this server"
    if integration.kind in (HTTP, API) and not abilities.may_call:
        return (
            f"The resource {resource!r} is not supported by a server that others can reach, "
            "unless it is started with --allow-function-uploads"
        )
    if type == EXPRESS and integration.kind == ACTIVITY:
        return "Express state machine does not support Activity ARN"
    if type == EXPRESS and integration.pattern:
        return f"Express state machine does not support '{integration.pattern}' service integration"
    return ""
