"""The rights that the operations of Step Functions need.

Rights are checked before the companion validates a request, so members may be missing or malformed
here: a request that names no resource needs the right on all of them. Whoever gives a role to a
machine needs `iam:PassRole`, because the machine can do whatever the role can.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from partita.database.operations.operation_context import DatabaseService
from partita.server.security.rights.pass_role import pass_role
from partita.server.security.rights.requested_rights import (
    Keys,
    Request,
    RequestedRight,
    Rights,
    request_tags,
)
from partita_services.rights.lambda_rights import text_of

PASSED_TO: Final = "states.amazonaws.com"
_ARN: Final = re.compile(r"arn:aws[\w-]*:states:[\w-]*:\d*:(\w+):(.+)", re.DOTALL)
_QUALIFIED: Final = re.compile(r"([^:]+):([^:]+)")
ANY: Final = "*"


def _arn(service: DatabaseService, rest: str) -> str:
    return f"arn:aws:states:{service.region}:{service.account_id}:{rest}"


def _resource(service: DatabaseService, arn: str) -> tuple[str, Keys]:
    """The ARN of a resource with our own region and account, and keys for conditions. A version or
    an alias has the ARN of its machine, with the qualifier as a key."""
    match = _ARN.fullmatch(arn)
    if match is None:
        return ANY, {}
    kind, name = match[1], match[2]
    qualified = _QUALIFIED.fullmatch(name) if kind == "stateMachine" else None
    if qualified is None:
        return _arn(service, f"{kind}:{name}"), {}
    keys = {"states:statemachinequalifier": (qualified[2],)}
    return _arn(service, f"stateMachine:{qualified[1]}"), keys


def _tags(request: Request) -> dict[str, str]:
    tags: Any = request.get("tags")
    if not isinstance(tags, list):
        return {}
    return {
        str(tag.get("key", "")): str(tag.get("value", "")) for tag in tags if isinstance(tag, dict)
    }


def _with_tags(keys: Keys, tags: dict[str, str]) -> Keys:
    return {**keys, **request_tags(tags)}


def _passed_role(service: DatabaseService, request: Request) -> list[RequestedRight]:
    return pass_role(service, text_of(request, "roleArn"), PASSED_TO)


def _on(operation: str, *members: str) -> Rights:
    """The rights of an operation on the resources that its members name; without any, on all
    resources."""

    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        resource_arns = [arn for member in members if (arn := text_of(request, member)) is not None]
        needs = []
        for arn in resource_arns or [""]:
            resource, keys = _resource(service, arn)
            tagged = partial(_with_tags, keys, _tags(request))
            needs.append(RequestedRight(f"states:{operation}", resource, tagged))
        return [*needs, *_passed_role(service, request)]

    return rights


def _created(operation: str, kind: str) -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        name = text_of(request, "name")
        resource = ANY if name is None else _arn(service, f"{kind}:{name}")
        tags = _tags(request)
        needs = [RequestedRight(f"states:{operation}", resource, lambda: request_tags(tags))]
        if tags:
            needs.append(RequestedRight("states:TagResource", resource, lambda: request_tags(tags)))
        return [*needs, *_passed_role(service, request)]

    return rights


def create_alias(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    """The rights on the machines of the versions that the alias routes to."""
    routes: Any = request.get("routingConfiguration")
    needs = []
    for route in routes if isinstance(routes, list) else []:
        arn = route.get("stateMachineVersionArn") if isinstance(route, dict) else None
        resource, _ = _resource(service, arn if isinstance(arn, str) else "")
        needs.append(RequestedRight("states:CreateStateMachineAlias", resource))
    return needs or [RequestedRight("states:CreateStateMachineAlias", ANY)]


RIGHTS: Final[dict[str, Rights]] = {
    "CreateActivity": _created("CreateActivity", "activity"),
    "CreateStateMachine": _created("CreateStateMachine", "stateMachine"),
    "CreateStateMachineAlias": create_alias,
    **{
        operation: _on(operation, *members)
        for members, operations in {
            ("activityArn",): ("DeleteActivity", "DescribeActivity", "GetActivityTask"),
            ("stateMachineArn",): (
                *("DeleteStateMachine", "DescribeStateMachine", "ListStateMachineAliases"),
                *("ListStateMachineVersions", "PublishStateMachineVersion", "StartExecution"),
                *("StartSyncExecution", "UpdateStateMachine"),
            ),
            ("mapRunArn",): ("DescribeMapRun", "UpdateMapRun"),
            ("stateMachineArn", "mapRunArn"): ("ListExecutions",),
            ("stateMachineAliasArn",): (
                *("DeleteStateMachineAlias", "DescribeStateMachineAlias"),
                "UpdateStateMachineAlias",
            ),
            ("stateMachineVersionArn",): ("DeleteStateMachineVersion",),
            ("executionArn",): (
                *("DescribeExecution", "DescribeStateMachineForExecution", "GetExecutionHistory"),
                *("ListMapRuns", "RedriveExecution", "StopExecution"),
            ),
            ("resourceArn",): ("ListTagsForResource", "TagResource", "UntagResource"),
            (): (
                *("ListActivities", "ListStateMachines", "SendTaskFailure", "SendTaskHeartbeat"),
                *("SendTaskSuccess", "TestState", "ValidateStateMachineDefinition"),
            ),
        }.items()
        for operation in operations
    },
}
