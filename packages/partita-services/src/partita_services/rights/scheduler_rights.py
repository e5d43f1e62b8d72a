"""The rights that the operations of EventBridge Scheduler need.

Whoever gives a role to a schedule needs `iam:PassRole`, because its target is called with that
role. (Service Authorization Reference, "Actions, resources, and condition keys for Amazon
EventBridge Scheduler")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from partita.database.operations.operation_context import DatabaseService
from partita.server.security.rights.function_arns import ANY
from partita.server.security.rights.pass_role import pass_role
from partita.server.security.rights.requested_rights import (
    Keys,
    Request,
    RequestedRight,
    Rights,
    request_tags,
)
from partita_services.rights.lambda_rights import text_of

PREFIX: Final = "scheduler:"
PASSED_TO: Final = "scheduler.amazonaws.com"
DEFAULT_GROUP: Final = "default"
_GROUP: Final = re.compile(r"arn:aws[\w-]*:scheduler:[\w-]*:\d*:schedule-group/([\w.-]+)")


def _arn(service: DatabaseService, rest: str) -> str:
    return f"arn:aws:scheduler:{service.region}:{service.account_id}:{rest}"


def _on_schedule(operation: str) -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        group = text_of(request, "GroupName") or DEFAULT_GROUP
        name = text_of(request, "Name") or "*"
        needs = [RequestedRight(PREFIX + operation, _arn(service, f"schedule/{group}/{name}"))]
        target = request.get("Target")
        role = text_of(target, "RoleArn") if isinstance(target, dict) else None
        return [*needs, *pass_role(service, role, PASSED_TO)]

    return rights


def _on_group(operation: str) -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        arn = _arn(service, f"schedule-group/{text_of(request, 'Name') or '*'}")
        keys = partial(_tag_keys, request)
        needs = [RequestedRight(PREFIX + operation, arn, keys)]
        if request.get("Tags"):
            needs.append(RequestedRight(f"{PREFIX}TagResource", arn, keys))
        return needs

    return rights


def _on_tagged(operation: str) -> Rights:
    """The rights on the schedule group with this name. Region and account of the ARN do not
    count."""

    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        match = _GROUP.fullmatch(text_of(request, "ResourceArn") or "")
        arn = ANY if match is None else _arn(service, f"schedule-group/{match[1]}")
        return (RequestedRight(PREFIX + operation, arn, partial(_tag_keys, request)),)

    return rights


def _tag_keys(request: Request) -> Keys:
    tags, removed = request.get("Tags"), request.get("TagKeys")
    if isinstance(removed, list):
        return {"aws:tagkeys": tuple(map(str, removed))}
    added = [tag for tag in tags if isinstance(tag, dict)] if isinstance(tags, list) else []
    return request_tags({str(tag.get("Key", "")): str(tag.get("Value", "")) for tag in added})


def list_schedules(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    group = text_of(request, "ScheduleGroup") or text_of(request, "GroupName") or "*"
    return (RequestedRight(f"{PREFIX}ListSchedules", _arn(service, f"schedule/{group}/*")),)


RIGHTS: Final[dict[str, Rights]] = {
    "ListSchedules": list_schedules,
    **{
        operation: kind(operation)
        for kind, operations in {
            _on_schedule: ("CreateSchedule", "DeleteSchedule", "GetSchedule", "UpdateSchedule"),
            _on_group: (
                *("CreateScheduleGroup", "DeleteScheduleGroup", "GetScheduleGroup"),
                "ListScheduleGroups",
            ),
            _on_tagged: ("ListTagsForResource", "TagResource", "UntagResource"),
        }.items()
        for operation in operations
    },
}
