"""Jobs of Batch, ECS, Glue and CodeBuild, and models of Bedrock: the settings name a function for
each.

A task's parameters name the job by a name or an ARN, as on AWS. A job that the settings do not name
does not exist, as in an account without it. The function gets the task's parameters. What it
returns is added to the description with which a task with `.sync` ends.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from partita.foundation.server_settings import JobSettings
from partita_services.functions.function_arns import ACCOUNT, REGION
from partita_services.workflows.language.language_errors import PARAMETER_PATH_FAILURE, StateError

SUCCEEDED, FAILED = "SUCCEEDED", "FAILED"
_REVISION = re.compile(r":\d+$")

Parameters = dict[str, Any]
Described = dict[str, Any]


class JobOutcome(NamedTuple):
    """The end of a job: its times, and the reason if it failed."""

    id: str
    began: float
    ended: float
    is_well: bool
    reason: str = ""

    @property
    def status(self) -> str:
        return SUCCEEDED if self.is_well else FAILED


class JobKind(NamedTuple):
    """A service that runs jobs."""

    member: str
    """The parameter that names the job."""
    action: str
    missing: str
    """The error for a job that does not exist."""
    submitted: Callable[[Parameters, str], Described]
    """Makes the answer for a task that does not wait for the job."""
    ended: Callable[[Parameters, JobOutcome], Described]
    """Makes the description of an ended job."""


def _arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


def _batch_submitted(parameters: Parameters, id: str) -> Described:
    name = str(parameters.get("JobName", ""))
    return {"JobArn": _arn("batch", f"job/{id}"), "JobId": id, "JobName": name}


def _batch_ended(parameters: Parameters, outcome: JobOutcome) -> Described:
    described = {
        **_batch_submitted(parameters, outcome.id),
        "JobDefinition": parameters.get("JobDefinition"),
        "JobQueue": parameters.get("JobQueue"),
        "Parameters": parameters.get("Parameters", {}),
        "Container": {"ExitCode": 0 if outcome.is_well else 1},
        "StartedAt": _milliseconds(outcome.began),
        "StoppedAt": _milliseconds(outcome.ended),
        "Status": outcome.status,
    }
    return described if outcome.is_well else described | {"StatusReason": outcome.reason}


def _ecs_submitted(parameters: Parameters, id: str) -> Described:
    task = {
        "ClusterArn": str(parameters.get("Cluster", "default")),
        "LastStatus": "PROVISIONING",
        "TaskArn": _arn("ecs", f"task/{id}"),
        "TaskDefinitionArn": str(parameters.get("TaskDefinition", "")),
    }
    return {"Failures": [], "Tasks": [task]}


def _ecs_ended(parameters: Parameters, outcome: JobOutcome) -> Described:
    (task,) = _ecs_submitted(parameters, outcome.id)["Tasks"]
    described: Described = {
        **task,
        "Containers": [{"ExitCode": 0 if outcome.is_well else 1, "LastStatus": "STOPPED"}],
        "DesiredStatus": "STOPPED",
        "LastStatus": "STOPPED",
        "Overrides": parameters.get("Overrides", {}),
        "StartedAt": _milliseconds(outcome.began),
        "StoppedAt": _milliseconds(outcome.ended),
    }
    return described if outcome.is_well else described | {"StoppedReason": outcome.reason}


def _glue_submitted(parameters: Parameters, id: str) -> Described:
    return {"JobRunId": f"jr_{id.replace('-', '')}"}


def _glue_ended(parameters: Parameters, outcome: JobOutcome) -> Described:
    described = {
        "Arguments": parameters.get("Arguments", {}),
        "Attempt": 0,
        "CompletedOn": _milliseconds(outcome.ended),
        "ExecutionTime": round(outcome.ended - outcome.began),
        "Id": _glue_submitted(parameters, outcome.id)["JobRunId"],
        "JobName": parameters.get("JobName"),
        "JobRunState": outcome.status,
        "StartedOn": _milliseconds(outcome.began),
    }
    return described if outcome.is_well else described | {"ErrorMessage": outcome.reason}


def _build_submitted(parameters: Parameters, id: str) -> Described:
    name = f"{_plain(parameters.get('ProjectName', ''))}:{id}"
    build = {
        "Arn": _arn("codebuild", f"build/{name}"),
        "BuildStatus": "IN_PROGRESS",
        "Id": name,
        "ProjectName": parameters.get("ProjectName"),
    }
    return {"Build": build}


def _build_ended(parameters: Parameters, outcome: JobOutcome) -> Described:
    build = {
        **_build_submitted(parameters, outcome.id)["Build"],
        "BuildComplete": True,
        "BuildStatus": outcome.status,
        "EndTime": _milliseconds(outcome.ended),
        "StartTime": _milliseconds(outcome.began),
    }
    return {"Build": build}


KINDS: Mapping[str, JobKind] = {
    "batch:submitJob": JobKind(
        "JobDefinition",
        "batch:SubmitJob",
        "Batch.ClientException",
        _batch_submitted,
        _batch_ended,
    ),
    "codebuild:startBuild": JobKind(
        "ProjectName",
        "codebuild:StartBuild",
        "CodeBuild.ResourceNotFoundException",
        _build_submitted,
        _build_ended,
    ),
    "ecs:runTask": JobKind(
        "TaskDefinition", "ecs:RunTask", "ECS.ClientException", _ecs_submitted, _ecs_ended
    ),
    "glue:startJobRun": JobKind(
        "JobName",
        "glue:StartJobRun",
        "Glue.EntityNotFoundException",
        _glue_submitted,
        _glue_ended,
    ),
}
"""The services, by their names in a Resource."""

MODEL = "bedrock:invokeModel"
MODEL_ACTION = "bedrock:InvokeModel"


class JobTasks:
    def __init__(self, jobs: Iterable[JobSettings]) -> None:
        self._functions: dict[tuple[str, str], str] = {
            (job.service, job.name): job.function for job in jobs
        }

    def function(self, kind: str, parameters: Parameters) -> str:
        """The function of the job or model that a task names. Raises StateError when there is no
        such job."""
        member = "ModelId" if kind == MODEL else KINDS[kind].member
        text = parameters.get(member)
        if not isinstance(text, str):
            raise StateError(PARAMETER_PATH_FAILURE, f"{kind} needs a {member}")
        service = kind.partition(":")[0]
        for name in (text, text.rpartition("/")[2], _plain(text)):
            if (service, name) in self._functions:
                return self._functions[service, name]
        error = "Bedrock.ValidationException" if kind == MODEL else KINDS[kind].missing
        raise StateError(
            error, f"{member} {text!r} does not exist: name it under [[jobs]] in the settings."
        )


def job_id(execution_arn: str, task_id: str) -> str:
    """Deterministic, so that a task that is started again gets the same job."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{execution_arn} {task_id}"))


def description(kind: str, parameters: Parameters, outcome: JobOutcome, result: Any) -> Described:
    """The description of an ended job, with what its function has returned."""
    described = KINDS[kind].ended(parameters, outcome)
    return described | result if isinstance(result, dict) else described


def _plain(name: str) -> str:
    """The name without an ARN before it and a revision after it."""
    return _REVISION.sub("", name.rpartition("/")[2])


def _milliseconds(seconds: float) -> int:
    return int(1_000 * seconds)
