"""Which rights the operations of EventBridge Scheduler need.

A role that is handed to a schedule needs `iam:PassRole`, for its target is called with it.
(Service Authorization Reference, "Actions, resources, and condition keys for Amazon EventBridge
Scheduler")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.operations.context import Service
from partita.server.security.rights.function_arns import ANY
from partita.server.security.rights.needs import Need, Request, Rights
from partita.server.security.rights.passing import pass_role
from partita_services.rights.functions import text_of

PREFIX: Final = "scheduler:"
PASSED_TO: Final = "scheduler.amazonaws.com"
DEFAULT_GROUP: Final = "default"


def _arn(service: Service, rest: str) -> str:
    return f"arn:aws:scheduler:{service.region}:{service.account_id}:{rest}"


def _on_schedule(operation: str) -> Rights:
    def rights(service: Service, request: Request) -> Sequence[Need]:
        group = text_of(request, "GroupName") or DEFAULT_GROUP
        name = text_of(request, "Name") or "*"
        needs = [Need(PREFIX + operation, _arn(service, f"schedule/{group}/{name}"))]
        target = request.get("Target")
        role = text_of(target, "RoleArn") if isinstance(target, dict) else None
        return [*needs, *pass_role(service, role, PASSED_TO)]

    return rights


def _on_group(operation: str) -> Rights:
    def rights(service: Service, request: Request) -> Sequence[Need]:
        name = text_of(request, "Name") or "*"
        return (Need(PREFIX + operation, _arn(service, f"schedule-group/{name}")),)

    return rights


def _on_tagged(operation: str) -> Rights:
    def rights(service: Service, request: Request) -> Sequence[Need]:
        return (Need(PREFIX + operation, text_of(request, "ResourceArn") or ANY),)

    return rights


def list_schedules(service: Service, request: Request) -> Sequence[Need]:
    group = text_of(request, "ScheduleGroup") or text_of(request, "GroupName") or "*"
    return (Need(f"{PREFIX}ListSchedules", _arn(service, f"schedule/{group}/*")),)


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
