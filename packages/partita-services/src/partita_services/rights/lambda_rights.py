"""The rights that the operations of Lambda need.

Rights are checked before the companion validates a request, so members may be missing or malformed
here: a request that names no function needs the right on all of them. Whoever gives a role to a
function needs `iam:PassRole`, because the function can do whatever the role can. (Service
Authorization Reference, "Actions, resources, and condition keys for AWS Lambda")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from partita.database.operations.operation_context import DatabaseService
from partita.server.security.rights.function_arns import ANY, FUNCTION, function_arn, lambda_arn
from partita.server.security.rights.pass_role import pass_role
from partita.server.security.rights.requested_rights import (
    Keys,
    Request,
    RequestedRight,
    Rights,
    request_tags,
)

PREFIX: Final = "lambda:"
PASSED_TO: Final = "lambda.amazonaws.com"
_MAPPING: Final = re.compile(r"arn:aws[\w-]*:lambda:[\w-]*:\d*:event-source-mapping:([\w-]+)")


def text_of(request: Request, member: str) -> str | None:
    value = request.get(member)
    return value if isinstance(value, str) else None


def _unqualified(service: DatabaseService, name_or_arn: str | None) -> str:
    match = FUNCTION.fullmatch(name_or_arn or "")
    return ANY if match is None else lambda_arn(service, f"function:{match[1]}")


def _tags(request: Request) -> dict[str, str]:
    tags: Any = request.get("Tags")
    if not isinstance(tags, dict):
        return {}
    return {str(name): str(value) for name, value in tags.items()}


def create_function(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    resource = _unqualified(service, text_of(request, "FunctionName"))
    tags = _tags(request)
    keys = partial(request_tags, tags)
    needs = [RequestedRight(f"{PREFIX}CreateFunction", resource, keys)]
    if tags:
        needs.append(RequestedRight(f"{PREFIX}TagResource", resource, keys))
    return [*needs, *pass_role(service, text_of(request, "Role"), PASSED_TO)]


def _on_function(operation: str) -> Rights:
    """The rights of an operation on a function as a whole, which may also give it another role."""

    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        resource = _unqualified(service, text_of(request, "FunctionName"))
        needs = [RequestedRight(PREFIX + operation, resource)]
        return [*needs, *pass_role(service, text_of(request, "Role"), PASSED_TO)]

    return rights


def _on_version(action: str) -> Rights:
    """The rights of an operation on a function, or on one of its versions or aliases."""

    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        name, qualifier = text_of(request, "FunctionName"), text_of(request, "Qualifier")
        return (RequestedRight(PREFIX + action, function_arn(service, name, qualifier)),)

    return rights


def _on_mapping(operation: str) -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        uuid = text_of(request, "UUID")
        resource = ANY if uuid is None else lambda_arn(service, f"event-source-mapping:{uuid}")
        return (
            RequestedRight(PREFIX + operation, resource, partial(_function_key, service, request)),
        )

    return rights


def _function_key(service: DatabaseService, request: Request) -> Keys:
    name = text_of(request, "FunctionName")
    return {} if name is None else {f"{PREFIX}functionarn": (function_arn(service, name),)}


def _on_tagged(operation: str) -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        arn = text_of(request, "Resource") or ""
        mapping = _MAPPING.fullmatch(arn)
        if mapping is None:
            resource = _unqualified(service, arn)
        else:
            resource = lambda_arn(service, f"event-source-mapping:{mapping[1]}")
        return (RequestedRight(PREFIX + operation, resource, partial(_tag_keys, request)),)

    return rights


def _tag_keys(request: Request) -> Keys:
    removed = request.get("TagKeys")
    if isinstance(removed, list):
        return {"aws:tagkeys": tuple(map(str, removed))}
    return request_tags(_tags(request))


def _on_all(operation: str) -> Rights:
    return lambda service, request: (RequestedRight(PREFIX + operation, ANY),)


RIGHTS: Final[dict[str, Rights]] = {
    "CreateFunction": create_function,
    "Invoke": _on_version("InvokeFunction"),
    **{
        operation: kind(operation)
        for kind, operations in {
            _on_function: (
                *("CreateAlias", "DeleteAlias", "GetAlias", "ListAliases", "UpdateAlias"),
                *("DeleteFunctionConcurrency", "GetFunctionConcurrency", "PutFunctionConcurrency"),
                *("ListFunctionEventInvokeConfigs", "ListVersionsByFunction", "PublishVersion"),
                *("UpdateFunctionCode", "UpdateFunctionConfiguration"),
            ),
            _on_version: (
                *("DeleteFunction", "GetFunction", "GetFunctionConfiguration"),
                *("DeleteFunctionEventInvokeConfig", "GetFunctionEventInvokeConfig"),
                *("PutFunctionEventInvokeConfig", "UpdateFunctionEventInvokeConfig"),
            ),
            _on_mapping: (
                *("CreateEventSourceMapping", "DeleteEventSourceMapping"),
                *("GetEventSourceMapping", "UpdateEventSourceMapping"),
            ),
            _on_tagged: ("ListTags", "TagResource", "UntagResource"),
            _on_all: ("GetAccountSettings", "ListEventSourceMappings", "ListFunctions"),
        }.items()
        for operation in operations
    },
}
