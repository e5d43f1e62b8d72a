"""The resources of tasks: functions, activities and services, and the names of their history
events."""

from __future__ import annotations

import re
from typing import NamedTuple

WAIT_FOR_TASK_TOKEN = ".waitForTaskToken"
MAP_RUN = "map run"
"""The resource of a distributed Map state, which runs as a task although its author did not write
one."""

_SERVICE = re.compile(
    r"arn:(?:[\w-]+|\$\{\w+\}):states:[\w-]*:\d*:(?P<type>[\w-]+(?::[\w-]+)?):(?P<action>[\w.:-]+)"
)
_ACTIVITY = re.compile(r"arn:[\w-]+:states:[\w-]+:\d+:activity:[^:]+")


class TaskResource(NamedTuple):
    events: str
    """The prefix of the names of its events."""
    type: str | None = None
    action: str | None = None
    """The service and its operation: `dynamodb` and `putItem`, or `aws-sdk:s3` and
    `listBuckets`."""

    @property
    def has_token(self) -> bool:
        """True when the task is completed with a task token."""
        return self.events == "Activity" or (self.action or "").endswith(WAIT_FOR_TASK_TOKEN)


def map_run_arn(execution_arn: str, label: str, id: str) -> str:
    """The ARN of the map run that is the task with this id."""
    prefix, _, names = execution_arn.partition(":execution:")
    if not names:
        prefix, _, names = execution_arn.partition(":express:")
    machine, _, execution = names.partition(":")
    return f"{prefix}:mapRun:{machine}/{label}:{execution.partition(':')[0]}-{id}"


def resource_of(arn: str) -> TaskResource:
    if arn == MAP_RUN:
        return TaskResource("MapRun")
    if _ACTIVITY.fullmatch(arn):
        return TaskResource("Activity")
    service = _SERVICE.fullmatch(arn)
    if service is None:
        return TaskResource("LambdaFunction")
    return TaskResource("Task", service["type"], service["action"])


def region_of(arn: str) -> str:
    parts = arn.split(":")
    return parts[3] if len(parts) > 3 and parts[3] else "us-east-1"
