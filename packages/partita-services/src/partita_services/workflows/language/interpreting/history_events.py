"""History events in the shape of GetExecutionHistory."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from partita_services.workflows.language.interpreting.engine_interface import StartTask
from partita_services.workflows.language.interpreting.task_resources import region_of, resource_of
from partita_services.workflows.language.json_values import Json, json_text

Event = dict[str, Any]

_STATE_EVENT = re.compile(r"\w+State(Entered|Exited)")


def event(
    type: str, id: int, previous_id: int, timestamp: float, details: dict[str, Json] | None
) -> Event:
    made = {"timestamp": timestamp, "type": type, "id": id, "previousEventId": previous_id}
    if details is not None:
        made[_details_name(type)] = details
    return made


@lru_cache(maxsize=128)
def _details_name(type: str) -> str:
    # The events of all states share one shape; every other event has its own.
    named = _STATE_EVENT.sub(r"State\1", type)
    return f"{named[0].lower()}{named[1:]}EventDetails"


def data(name: str, value: Json) -> dict[str, Json]:
    """The members that describe an input or output, as text."""
    return {name: json_text(value), f"{name}Details": {"truncated": False}}


def assigned(variables: dict[str, Json]) -> dict[str, Json]:
    if not variables:
        return {}
    texts = {name: json_text(value) for name, value in variables.items()}
    return {"assignedVariables": texts, "assignedVariablesDetails": {"truncated": False}}


def failure(error: str | None, cause: str | None) -> dict[str, Json]:
    return {name: text for name, text in (("error", error), ("cause", cause)) if text is not None}


def task_type(task: StartTask, what: str) -> str:
    return resource_of(task.resource).events + what


def task_details(task: StartTask) -> dict[str, Json]:
    """The details that all events of a service's task have. Functions and activities have none."""
    resource = resource_of(task.resource)
    if resource.type is None:
        return {}
    return {"resourceType": resource.type, "resource": resource.action}


def task_scheduled(task: StartTask, execution_arn: str) -> dict[str, Json]:
    resource = resource_of(task.resource)
    if resource.type is not None:
        details = task_details(task)
        details |= {"region": region_of(execution_arn), "parameters": json_text(task.input)}
    else:
        details = {"resource": task.resource, **data("input", task.input)}
    if task.timeout_seconds is not None:
        details["timeoutInSeconds"] = int(task.timeout_seconds)
    if task.heartbeat_seconds is not None and resource.events != "LambdaFunction":
        details["heartbeatInSeconds"] = int(task.heartbeat_seconds)
    if task.credentials is not None and resource.events != "Activity":
        details["taskCredentials"] = {"roleArn": task.credentials.get("RoleArn")}
    return details
