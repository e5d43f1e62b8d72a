"""Tasks that run jobs (Batch, ECS, Glue, CodeBuild) and ask models (Bedrock): functions by name."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import events, finished, one_task, types
from .test_state_machines import refused

Run = Callable[..., Any]
STATES = "arn:aws:states:::"
NAMED = {
    "batch:submitJob": {"JobName": "n", "JobDefinition": "nightly", "JobQueue": "q"},
    "codebuild:startBuild": {"ProjectName": "nightly"},
    "ecs:runTask": {"TaskDefinition": "arn:aws:ecs:eu-west-1:1:task-definition/nightly:7"},
    "glue:startJobRun": {"JobName": "nightly"},
}
GIVEN = {"batch:submitJob": "Parameters", "ecs:runTask": "Overrides"}


def job(kind: str, suffix: str = "", **given: Any) -> dict[str, Any]:
    parameters = {**NAMED[kind], GIVEN.get(kind, "Arguments"): given}
    return one_task(f"{STATES}{kind}{suffix}", Parameters=parameters)


@pytest.mark.parametrize(
    ("kind", "place", "status"),
    [
        ("batch:submitJob", ("Status",), "SUCCEEDED"),
        ("codebuild:startBuild", ("Build", "BuildStatus"), "SUCCEEDED"),
        ("ecs:runTask", ("LastStatus",), "STOPPED"),
        ("glue:startJobRun", ("JobRunState",), "SUCCEEDED"),
    ],
)
def test_a_task_waits_for_its_job(
    output: Run, tmp_path: Path, kind: str, place: tuple[str, ...], status: str
) -> None:
    done = output(job(kind, ".sync", file=str(tmp_path / "ran")))
    assert done["Logs"] == "all well"
    assert (tmp_path / "ran").read_text() == "ran\n"
    for name in place:
        done = done[name]
    assert done == status


@pytest.mark.parametrize("kind", NAMED)
def test_a_job_that_fails_fails_its_task(states: Any, run: Run, kind: str) -> None:
    failed = run(job(kind, ".sync", fails=True))
    assert failed["error"] == "States.TaskFailed"
    described = failed["cause"]
    assert "no disk" in described or json.loads(described)["Build"]["BuildStatus"] == "FAILED"
    found = types(events(states, failed["executionArn"]))
    assert found[2:6] == ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskFailed"]


@pytest.mark.parametrize("kind", NAMED)
def test_a_task_that_does_not_wait_has_submitted_its_job(
    output: Run, tmp_path: Path, kind: str
) -> None:
    ran = tmp_path / "ran"
    answer = output(job(kind, file=str(ran)))
    assert answer["SdkHttpMetadata"]["HttpStatusCode"] == 200
    assert {"JobId", "JobRunId", "Build", "Tasks"} & set(answer)
    deadline = time.monotonic() + 30
    while not ran.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_container_may_complete_its_task_with_the_token(
    states: Any, create: Run, tmp_path: Path
) -> None:
    parameters = {
        "TaskDefinition": "callback",
        "Overrides": {"file": str(tmp_path / "token"), "token.$": "$$.Task.Token"},
    }
    machine = create(one_task(f"{STATES}ecs:runTask.waitForTaskToken", Parameters=parameters))
    started = states.start_execution(stateMachineArn=machine)
    deadline = time.monotonic() + 30
    while not (tmp_path / "token").exists() or not (tmp_path / "token").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    states.send_task_success(taskToken=(tmp_path / "token").read_text(), output='"done"')
    assert finished(states, started["executionArn"])["output"] == '"done"'


@pytest.mark.parametrize(
    ("kind", "parameters", "error"),
    [
        ("batch:submitJob", {"JobDefinition": "none"}, "Batch.ClientException"),
        ("codebuild:startBuild", {"ProjectName": "none"}, "CodeBuild.ResourceNotFoundException"),
        ("ecs:runTask", {"TaskDefinition": "none:1"}, "ECS.ClientException"),
        ("glue:startJobRun", {"JobName": "none"}, "Glue.EntityNotFoundException"),
        ("bedrock:invokeModel", {"ModelId": "none"}, "Bedrock.ValidationException"),
        ("glue:startJobRun", {}, "States.ParameterPathFailure"),
    ],
)
def test_a_job_that_is_not_named_does_not_exist(
    run: Run, kind: str, parameters: Any, error: str
) -> None:
    failed = run(one_task(f"{STATES}{kind}", Parameters=parameters))
    assert failed["error"] == error


def test_a_model_is_asked(output: Run) -> None:
    parameters = {"ModelId": "tiny.model-v1:0", "Body": {"prompt.$": "$.prompt"}}
    machine = one_task(f"{STATES}bedrock:invokeModel", Parameters=parameters)
    answer = output(machine, {"prompt": "hello"})
    assert answer == {"Body": {"completion": "HELLO"}, "ContentType": "application/json"}


@pytest.mark.parametrize("partition", ["${Partition}", "${AWS::Partition}"])
def test_a_template_may_leave_the_partition_open(output: Run, partition: str) -> None:
    machine = job("glue:startJobRun", ".sync")
    machine["States"]["Only"]["Resource"] = f"arn:{partition}:states:::glue:startJobRun.sync"
    assert output(machine)["JobRunState"] == "SUCCEEDED"


@pytest.mark.parametrize(
    "resource",
    [
        "elasticmapreduce:createCluster.sync",
        "aws-sdk:ec2:describeInstances",
        "bedrock:invokeModel.sync",
        "glue:startJobRun.waitForTaskToken",
    ],
)
def test_what_nobody_runs_is_refused_when_the_machine_is_created(
    states: Any, create: Run, resource: str
) -> None:
    machine = one_task(f"{STATES}{resource}", Parameters={})
    text = refused(states, create, "InvalidDefinition", definition=machine)
    assert "is not supported by this server" in text


def test_what_waits_for_a_job_is_not_for_express_machines(states: Any, create: Run) -> None:
    machine = job("batch:submitJob", ".sync")
    text = refused(states, create, "InvalidDefinition", definition=machine, type="EXPRESS")
    assert "does not support '.sync'" in text
