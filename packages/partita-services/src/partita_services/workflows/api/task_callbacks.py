"""Tasks that are done elsewhere: activities and their workers, and answers to task tokens."""

from __future__ import annotations

from partita.errors import (
    ActivityDoesNotExist,
    InvalidOutput,
    InvalidToken,
    TaskDoesNotExist,
    TaskTimedOut,
)
from partita_services.record_table import RecordConflict
from partita_services.workflows.api import machine_tags, page_tokens
from partita_services.workflows.api.step_functions_service import (
    Answer,
    Request,
    StepFunctionsService,
)
from partita_services.workflows.language import TaskFailed, TaskSucceeded, task_of_token
from partita_services.workflows.language.json_values import json_text, parse_data
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.live_execution import LiveExecution
from partita_services.workflows.running.storage.workflow_records import ActivityRecord
from partita_services.workflows.running.storage.workflow_table import ACTIVITIES
from partita_services.workflows.running.tasks.activities import POLL_SECONDS


async def create_activity(service: StepFunctionsService, request: Request) -> Answer:
    state_machine_arns.check_name(request["name"])
    activity = ActivityRecord(
        name=request["name"], created_at=service.clock(), tags=machine_tags.tags_in(request)
    )
    try:
        await service.store.put_activity(activity, is_new=True)
    except RecordConflict:
        activity = await _activity(service, state_machine_arns.activity_arn(activity.name))
    return {
        "activityArn": state_machine_arns.activity_arn(activity.name),
        "creationDate": activity.created_at,
    }


async def delete_activity(service: StepFunctionsService, request: Request) -> Answer:
    await service.store.erase(ACTIVITIES, state_machine_arns.activity_name(request["activityArn"]))
    return {}


async def describe_activity(service: StepFunctionsService, request: Request) -> Answer:
    return _described(await _activity(service, request["activityArn"]))


async def list_activities(service: StepFunctionsService, request: Request) -> Answer:
    limit, after = page_tokens.limit_of(request), page_tokens.place(request, str)
    activities, last = await service.store.page(ACTIVITIES, ActivityRecord, limit, after)
    return {
        "activities": [_described(activity) for activity in activities],
        **page_tokens.more(last),
    }


async def get_activity_task(service: StepFunctionsService, request: Request) -> Answer:
    activity = await _activity(service, request["activityArn"])
    task = await service.activities.take(activity.name, request.get("workerName"), POLL_SECONDS)
    if task is None:
        return {"taskToken": None}
    return {"taskToken": task.token, "input": json_text(task.input)}


async def send_task_success(service: StepFunctionsService, request: Request) -> Answer:
    text = request["output"]
    try:
        output = parse_data(text)
    except ValueError as error:
        raise InvalidOutput(f"Invalid Output: '{error}'") from error
    live, id = _task(service, request["taskToken"])
    await service.engine.deliver(live, TaskSucceeded(id, output))
    return {}


async def send_task_failure(service: StepFunctionsService, request: Request) -> Answer:
    live, id = _task(service, request["taskToken"])
    failed = TaskFailed(id, request.get("error"), request.get("cause"))
    await service.engine.deliver(live, failed)
    return {}


async def send_task_heartbeat(service: StepFunctionsService, request: Request) -> Answer:
    live, id = _task(service, request["taskToken"])
    service.engine.heartbeat(live, id)
    return {}


def _task(service: StepFunctionsService, token: str) -> tuple[LiveExecution, str]:
    """The execution that waits for the answer to a token, and the id of its task."""
    task_id = task_of_token(token)
    if task_id is None:
        raise InvalidToken("Invalid Token: 'Invalid token'")
    arn, id = task_id
    live = service.engine.live(arn)
    if live is None:
        raise TaskTimedOut("Task Timed Out: 'Provided task does not exist anymore'")
    task = live.tasks.get(id)
    if task is None:
        raise TaskTimedOut("Task Timed Out: 'Provided task does not exist anymore'")
    if task.command.token != token:
        raise TaskDoesNotExist("Task Does Not Exist: 'Provided task does not exist'")
    return live, id


async def _activity(service: StepFunctionsService, arn: str) -> ActivityRecord:
    activity = await service.store.activity(state_machine_arns.activity_name(arn))
    if activity is None:
        raise ActivityDoesNotExist(f"Activity Does Not Exist: '{arn}'")
    return activity


def _described(activity: ActivityRecord) -> Answer:
    return {
        "activityArn": state_machine_arns.activity_arn(activity.name),
        "name": activity.name,
        "creationDate": activity.created_at,
    }
