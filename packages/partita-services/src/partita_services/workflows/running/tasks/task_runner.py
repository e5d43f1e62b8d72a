"""Runs tasks: functions, operations of AWS services, activities, map runs and other executions."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from partita.client import Client, ClientError
from partita.errors import StepFunctionsError
from partita.foundation.clock import system_clock
from partita.server.protocol.rest import request_for
from partita_services.functions.message_sinks import Sinks
from partita_services.workflows.evaluation.evaluation_pool import EvaluationPool
from partita_services.workflows.language import (
    Happening,
    StartTask,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
    TaskSucceeded,
)
from partita_services.workflows.language.interpreting.task_resources import MAP_RUN
from partita_services.workflows.language.json_values import json_text, parse_json
from partita_services.workflows.language.language_errors import (
    PARAMETER_PATH_FAILURE,
    RUNTIME,
    TASK_FAILED,
    StateError,
)
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.storage.workflow_records import SUCCEEDED, ExecutionRecord
from partita_services.workflows.running.storage.workflow_store import WorkflowStore
from partita_services.workflows.running.tasks import integrations
from partita_services.workflows.running.tasks.activities import Activities
from partita_services.workflows.running.tasks.function_tasks import TaskFunctions
from partita_services.workflows.running.tasks.integrations import (
    SYNC,
    SYNC_2,
    Integration,
    integration_of,
    stand_in,
)
from partita_services.workflows.running.tasks.map_runs import MapRuns
from partita_services.workflows.running.tasks.services import (
    http_tasks,
    job_tasks,
    message_tasks,
    s3_objects,
)
from partita_services.workflows.running.tasks.services.attribute_value_shorthand import completed
from partita_services.workflows.running.tasks.services.delayed_messages import DelayedMessages
from partita_services.workflows.running.tasks.services.job_tasks import JobTasks
from partita_services.workflows.running.tasks.services.member_names import from_wire, to_wire
from partita_services.workflows.running.tasks.services.s3_objects import S3Buckets

Report = Callable[..., None]
"""`report(*happenings)`: they become part of the next step."""
Note = Callable[..., Awaitable[None]]
"""Like a Report, and returns when the happenings are durable."""

UNMODELLED = {
    "AccessDeniedException",
    "EndpointUnreachable",
    "SerializationException",
    "UnrecognizedClientException",
    "ValidationException",
}
"""Errors without a class of their own in AWS's SDK for Java. Tasks see the general exception of the
service instead."""


class ChildExecutions(Protocol):
    """Starts executions for tasks."""

    async def start(
        self, machine_arn: str, name: str, input: str, *, since: float
    ) -> dict[str, Any]:
        """The answer to StartExecution, also for an execution of that name that was started after
        `since`."""

    async def finished(self, arn: str) -> ExecutionRecord:
        """Returns when the execution has ended."""


class TaskRunner:
    def __init__(
        self,
        client: Client,
        store: WorkflowStore,
        functions: TaskFunctions,
        activities: Activities,
        sinks: Sinks,
        buckets: S3Buckets,
        jobs: JobTasks,
        stand_ins: Mapping[str, str],
        delayed_messages: DelayedMessages,
        pool: EvaluationPool,
    ) -> None:
        self._client = client
        self._store = store
        self._functions = functions
        self._activities = activities
        self._sinks = sinks
        self._buckets = buckets
        self._jobs = jobs
        self._stand_ins = stand_ins
        self.delayed_messages = delayed_messages
        self.map_runs = MapRuns(client, buckets, store, pool)
        self.executions: ChildExecutions | None = None

    async def run_task(
        self, task: StartTask, execution_arn: str, role: str, report: Report, note: Note
    ) -> None:
        """Run a task with the rights of a role and report its outcome. Raises StateError when it
        fails."""
        if task.resource == MAP_RUN:
            await self.map_runs.run(task, execution_arn, role, report)
            return
        integration = stand_in(task.resource, self._stand_ins) or integration_of(task.resource)
        if integration is None:
            raise StateError(RUNTIME, f"The resource {task.resource!r} cannot be called here")
        if integration.kind == integrations.ACTIVITY:
            await self._offer(integration.name, task, note)
            return
        if not task.is_submitted:
            started = TaskStarted(task.id)
            try:
                output = await self._answer(integration, task, execution_arn, role)
            except StateError as error:
                # Both happenings become one step, so they cost one transaction.
                report(started, TaskFailed(task.id, error.error, error.cause))
                return
            if not integration.pattern:
                report(started, TaskSucceeded(task.id, output))
                return
            # This has to be durable before anybody waits for the outcome. After a kill, the task is
            # not submitted again.
            await note(started, TaskSubmitted(task.id, output))
        else:
            output = task.submitted
        if integration.pattern != integrations.TOKEN:
            report(await self._awaited(integration, task, output, execution_arn, role))

    async def _offer(self, name: str, task: StartTask, note: Note) -> None:
        if task.is_started:
            return
        if await self._store.activity(name) is None:
            raise StateError(RUNTIME, f"The activity {task.resource} does not exist.")
        await self._activities.offer(name, task, note)

    async def _answer(
        self, integration: Integration, task: StartTask, execution_arn: str, role: str
    ) -> Any:
        if integration.kind == integrations.STAND_IN:
            return (await self._functions.call(integration.name, task.input, role=role))[0]
        if integration.kind == integrations.LAMBDA:
            return (await self._functions.call(task.resource, task.input, role=role))[0]
        if not isinstance(task.input, dict):
            raise StateError(RUNTIME, f"{task.resource} takes an object, not {task.input!r:.100}")
        if integration.kind == integrations.INVOKE:
            return await self._invoke(task.input, role)
        if integration.kind == integrations.START:
            return await self._start(task, execution_arn, role)
        if integration.kind in integrations.MESSAGES:
            sender = message_tasks.MessageSender(
                self._sinks.acting_for(role), self.delayed_messages, role
            )
            answer = await message_tasks.OPERATIONS[integration.kind](sender, task.input)
            if integration.service == integrations.SDK:
                return answer
            message_tasks.check_taken(answer)
            return answer | _metadata()
        if integration.kind == integrations.S3:
            for action, resource in s3_objects.needs(integration.name, task.input):
                await self._check(role, action, resource, "S3")
            return s3_objects.run(self._buckets, integration.name, task.input)
        if integration.kind in job_tasks.KINDS:
            return await self._submit(integration, task, execution_arn, role)
        if integration.kind == job_tasks.MODEL:
            return await self._ask_model(task.input, role)
        if integration.kind == integrations.HTTP:
            machine = _machine_of(execution_arn)
            await self._check(role, "states:InvokeHTTPEndpoint", machine, "States.Http")
            return await http_tasks.call_http(task.input)
        if integration.kind == integrations.API:
            await self._check(role, "execute-api:Invoke", "*", "ApiGateway")
            return await http_tasks.call_api(task.input)
        if integration.service == "sfn":
            return await self._ask_ourselves(integration, task.input, role)
        return await self._ask(integration, task.input, role)

    async def _check(self, role: str, action: str, resource: str, prefix: str) -> None:
        try:
            await self._client.check_right(role, action, resource)
        except ClientError as error:
            raise StateError(f"{prefix}.{error.code}", error.message) from error

    async def _invoke(self, parameters: dict[str, Any], role: str) -> dict[str, Any]:
        name = parameters.get("FunctionName")
        if not isinstance(name, str):
            raise StateError(PARAMETER_PATH_FAILURE, "lambda:invoke needs a FunctionName")
        is_event = parameters.get("InvocationType", "RequestResponse") == "Event"
        if qualifier := parameters.get("Qualifier"):
            name = f"{name}:{qualifier}"
        payload, version = await self._functions.call(
            name, parameters.get("Payload", {}), is_event=is_event, role=role
        )
        if is_event:
            return {"Payload": "", "StatusCode": 202, **_metadata()}
        return {"ExecutedVersion": version, "Payload": payload, "StatusCode": 200, **_metadata()}

    async def _ask(
        self, integration: Integration, parameters: dict[str, Any], role: str
    ) -> dict[str, Any]:
        """An operation of a service, over the wire."""
        if integration.kind == integrations.DYNAMODB:
            service, prefix, general = "dynamodb", "DynamoDB", "AmazonDynamoDBException"
            parameters = completed(parameters)
        else:
            service, prefix, *_ = integrations.SDK_SERVICES[integration.service]
            general = f"{prefix}Exception"
        try:
            if service in integrations.REST:
                answer = await self._ask_rest(service, integration.operation, parameters, role)
            else:
                answer = await self._client.call_for(
                    role, service, integration.operation, parameters
                )
        except ClientError as error:
            code = general if error.code in UNMODELLED else error.code
            cause = f"{error.message} (Service: {prefix}, Status Code: {error.status})"
            raise StateError(f"{prefix}.{code}", cause) from error
        return {**answer, **_metadata()} if integration.kind == integrations.DYNAMODB else answer

    async def _ask_rest(
        self, service: str, name: str, parameters: dict[str, Any], role: str
    ) -> Any:
        method, target, headers, body = request_for(service, name, parameters)
        answer = await self._client.request(service, method, target, body, headers, role=role)
        return parse_json(answer.content) if answer.content else {}

    async def _ask_ourselves(
        self, integration: Integration, parameters: dict[str, Any], role: str
    ) -> Any:
        """Call an operation of Step Functions over the wire, like any other client."""
        try:
            return from_wire(await self._ask(integration, to_wire(parameters), role))
        except StateError as error:
            # Tasks see the class names of the SDK for Java, which all end in Exception.
            name = error.error or ""
            suffix = "" if name.endswith("Exception") else "Exception"
            raise StateError(name + suffix, error.cause) from error

    async def _start(self, task: StartTask, execution_arn: str, role: str) -> dict[str, Any]:
        assert self.executions is not None
        parameters = task.input
        machine = parameters.get("StateMachineArn")
        if not isinstance(machine, str):
            raise StateError(PARAMETER_PATH_FAILURE, "startExecution needs a StateMachineArn")
        await self._check(role, "states:StartExecution", _unqualified(machine), "StepFunctions")
        name = _name(task, execution_arn)
        input = parameters.get("Input", {})
        try:
            started = await self.executions.start(
                machine,
                name,
                input if isinstance(input, str) else json_text(input),
                since=task.scheduled_at,
            )
        except StepFunctionsError as error:
            raise StateError(f"StepFunctions.{error.wire_code}Exception", error.message) from error
        return {
            "ExecutionArn": started["executionArn"],
            "StartDate": started["startDate"],
            **_metadata(),
        }

    async def _submit(
        self, integration: Integration, task: StartTask, execution_arn: str, role: str
    ) -> dict[str, Any]:
        """Submit a job. One that the task waits for only starts to run once the submission is
        stored."""
        kind = job_tasks.KINDS[integration.kind]
        await self._check(role, kind.action, "*", kind.missing.partition(".")[0])
        function = self._jobs.function(integration.kind, task.input)
        if integration.pattern != SYNC:
            await self._functions.call(function, task.input, is_event=True, role=role)
        submitted = kind.submitted(task.input, job_tasks.job_id(execution_arn, task.id))
        return {**submitted, **_metadata()}

    async def _job_ended(
        self, integration: Integration, task: StartTask, execution_arn: str, role: str
    ) -> Happening:
        """Run a job and return its outcome. A job that was under way when a server ended runs
        again."""
        began, result, reason = system_clock(), None, ""
        try:
            function = self._jobs.function(integration.kind, task.input)
            result, _ = await self._functions.call(function, task.input, role=role)
        except StateError as error:
            reason = f"{error.error}: {error.cause}"
        id = job_tasks.job_id(execution_arn, task.id)
        outcome = job_tasks.JobOutcome(id, began, system_clock(), not reason, reason)
        described = job_tasks.description(integration.kind, task.input, outcome, result)
        if outcome.is_well:
            return TaskSucceeded(task.id, described)
        return TaskFailed(task.id, TASK_FAILED, json_text(described))

    async def _ask_model(self, parameters: dict[str, Any], role: str) -> dict[str, Any]:
        """Call the function of a model with the request's body; its result is the body of the
        answer."""
        await self._check(role, job_tasks.MODEL_ACTION, "*", "Bedrock")
        function = self._jobs.function(job_tasks.MODEL, parameters)
        body, _ = await self._functions.call(function, parameters.get("Body", {}), role=role)
        return {"Body": body, "ContentType": "application/json"}

    async def _awaited(
        self, integration: Integration, task: StartTask, output: Any, execution_arn: str, role: str
    ) -> Happening:
        """The outcome of an execution or a job that the task has started."""
        if integration.kind in job_tasks.KINDS:
            return await self._job_ended(integration, task, execution_arn, role)
        assert self.executions is not None
        execution = await self.executions.finished(output["ExecutionArn"])
        described = _described(execution, is_parsed=integration.pattern == integrations.SYNC_2)
        if execution.status == SUCCEEDED:
            return TaskSucceeded(task.id, described)
        return TaskFailed(task.id, TASK_FAILED, json_text(described))


def started_execution(task: StartTask, execution_arn: str) -> str | None:
    """The ARN of the execution that a task has started and waits for; None for other tasks."""
    integration = integration_of(task.resource)
    machine = task.input.get("StateMachineArn") if isinstance(task.input, dict) else None
    is_waiting = integration is not None and integration.pattern in (SYNC, SYNC_2)
    if (
        not is_waiting
        or not isinstance(machine, str)
        or state_machine_arns.kind_of(machine) != state_machine_arns.MACHINE
    ):
        return None
    name = state_machine_arns.ExecutionName(
        state_machine_arns.qualified(machine)[0], _name(task, execution_arn)
    )
    return state_machine_arns.execution_arn(name)


def _unqualified(machine_arn: str) -> str:
    """The ARN of the machine of a version or an alias, which is what policies name."""
    try:
        return state_machine_arns.machine_arn(state_machine_arns.qualified(machine_arn)[0])
    except StepFunctionsError:
        return machine_arn


def _name(task: StartTask, execution_arn: str) -> str:
    """Deterministic, so that a task that is started again finds its execution."""
    default = uuid.uuid5(uuid.NAMESPACE_URL, execution_arn + task.id)
    return str(task.input.get("Name") or default)


def _machine_of(execution_arn: str) -> str:
    parts = execution_arn.split(":")
    return ":".join((*parts[:5], "stateMachine", *parts[6:7]))


def _metadata() -> dict[str, Any]:
    """Returns the members that optimized integrations add to the answer of a service."""
    return {
        "SdkHttpMetadata": {"HttpStatusCode": 200},
        "SdkResponseMetadata": {"RequestId": str(uuid.uuid4())},
    }


def _described(execution: ExecutionRecord, *, is_parsed: bool) -> dict[str, Any]:
    read = parse_json if is_parsed else str
    assert execution.stopped_at is not None
    described: dict[str, Any] = {
        "ExecutionArn": execution.arn,
        "Input": read(execution.input),
        "InputDetails": {"Included": True},
        "Name": execution.name,
        "StartDate": int(execution.started_at * 1000),
        "StateMachineArn": state_machine_arns.machine_arn(execution.machine),
        "Status": execution.status,
        "StopDate": int(execution.stopped_at * 1000),
    }
    if execution.output is not None:
        described |= {"Output": read(execution.output), "OutputDetails": {"Included": True}}
    for name, value in (("Error", execution.error), ("Cause", execution.cause)):
        if value is not None:
            described[name] = value
    return described
