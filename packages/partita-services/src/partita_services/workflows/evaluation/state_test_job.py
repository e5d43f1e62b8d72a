"""TestState without calling services: what a state does with its input, with a mock, or with the
result of its task."""

from __future__ import annotations

from typing import Any, NamedTuple

from partita.errors import InvalidStateMachineDefinition, ValidationException
from partita_services.workflows.language import InvalidDefinition, StateMachine, StepMoment, parse
from partita_services.workflows.language.expressions.intrinsics import make_uuid
from partita_services.workflows.language.interpreting.engine_interface import (
    StartTask,
    StartTimer,
    TaskHappening,
    TaskTimedOut,
    TimerFired,
)
from partita_services.workflows.language.interpreting.state_test_walk import StateTestWalk
from partita_services.workflows.language.json_values import Json, json_text, parse_json
from partita_services.workflows.language.language_errors import TIMEOUT
from partita_services.workflows.language.machine_definition import State, States
from partita_services.workflows.language.timestamps import format_timestamp
from partita_services.workflows.language.validation.definition_checks import alone
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.execution_input import check_input
from partita_services.workflows.running.storage.workflow_records import STANDARD
from partita_services.workflows.running.tasks import integrations
from partita_services.workflows.running.tasks.integrations import (
    ServerAbilities,
    check_resources,
    integration_of,
    stand_in,
)
from partita_services.workflows.running.tasks.services.mock_results import STRICT, check_mock

Request = dict[str, Any]
Answer = dict[str, Any]

STATE_NAME = "StateName"
"""The name of a state that comes without one. (observed)"""
MOCKED_TYPES = ("Task", "Map", "Parallel")
CONTEXT_FIELDS = {
    "Execution": ("Id", "Input", "Name", "RoleArn", "StartTime", "RedriveCount", "RedriveTime"),
    "State": ("EnteredTime", "Name", "RetryCount"),
    "StateMachine": ("Id", "Name"),
    "Task": ("Token",),
}
TEXT_FIELDS = ("Id", "Name", "RoleArn", "StartTime", "EnteredTime", "Token")


class StateTestResult(NamedTuple):
    """The answer, or the command to carry out first, with the context that it needs."""

    answer: Answer | None
    command: StartTask | StartTimer | None = None
    execution_arn: str = ""
    role_arn: str = ""


def try_state(
    request: Request,
    abilities: ServerAbilities,
    moment: StepMoment,
    happening: TaskHappening | TimerFired | None = None,
) -> StateTestResult:
    """The answer to TestState, or the command to carry out before it.

    When the command has been carried out, the test is repeated with the happening that it led to.
    """
    mock = request.get("mock")
    _check_combination(request, mock)
    machine = _machine(request)
    state = machine.states[machine.start_at]
    if mock is None:
        _check_without_mock(machine, state, request, abilities)
    else:
        _check_with_mock(state, request.get("stateConfiguration", {}))
    text = request.get("input", "{}")
    check_input(text)
    variables = _object(request, "variables")
    trial = StateTestWalk(
        machine, parse_json(text), variables, _context(request, text, moment), moment
    )
    if "context" in request:
        trial.context = _given_context(request, state)
    if mock is not None:
        _act_on(trial, mock, request.get("stateConfiguration", {}))
    else:
        command = trial.begin()
        if command is not None and happening is None:
            execution = trial.run.context["Execution"]
            return StateTestResult(None, command, execution["Id"], execution.get("RoleArn") or "")
        if happening is not None:
            _go_on(trial, happening)
    return StateTestResult(_answer(trial, request, text))


def _go_on(trial: StateTestWalk, happening: TaskHappening | TimerFired) -> None:
    # A test may take five minutes. A longer wait times out. (API reference)
    if isinstance(happening, TaskTimedOut) and trial.state.type == "Wait":
        trial.break_off(TIMEOUT, None)
    else:
        trial.go_on(happening)


# Validation. The texts are the service's own where they could be observed.


def _check_combination(request: Request, mock: Request | None) -> None:
    if mock is None:
        for name in ("context", "stateConfiguration"):
            if name in request:
                raise ValidationException(f"A {name} can only be given together with a mock.")
        return
    if request.get("revealSecrets"):
        raise ValidationException(
            "TestState does not support RevealSecrets when a mock is specified."
        )
    if len([name for name in ("result", "errorOutput") if name in mock]) != 1:
        raise ValidationException(
            "A test mock should have only one of the following fields: [result, errorOutput]."
        )
    if "error" not in mock.get("errorOutput", {"error": ""}):
        raise ValidationException("The errorOutput of a mock needs an error.")


def _check_without_mock(
    machine: StateMachine, state: State, request: Request, abilities: ServerAbilities
) -> None:
    if state.type in ("Map", "Parallel"):
        raise InvalidStateMachineDefinition(
            "TestState API does not support Map or Parallel states. Supported state types include: "
            "[Task, Wait, Pass, Succeed, Fail, Choice]"
        )
    if state.type != "Task":
        return
    if "roleArn" not in request:
        raise ValidationException("RoleArn must be specified when testing a Task state")
    try:
        check_resources(machine, STANDARD, abilities)
    except InvalidDefinition as error:
        raise InvalidStateMachineDefinition(str(error)) from error
    resource = state.fields["Resource"]
    integration = stand_in(resource, abilities.stand_ins) or integration_of(resource)
    assert integration is not None
    if integration.pattern or integration.kind == integrations.ACTIVITY:
        raise InvalidStateMachineDefinition(
            "TestState API does not support Activity tasks, nor the service integration patterns "
            ".sync and .waitForTaskToken, unless a mock is specified"
        )


def _check_with_mock(state: State, configuration: Request) -> None:
    if state.type not in MOCKED_TYPES:
        raise ValidationException(
            f"State type '{state.type}' is not supported when a mock is specified"
        )
    if "mapItemReaderData" in configuration:
        raise ValidationException("Map states run inline here: there is no ItemReader.")
    cause = configuration.get("errorCausedByState")
    if cause is not None and not any(_find(branch, cause) for branch in state.branches):
        raise ValidationException(f"State not found in the definition: '{cause}'")


def _machine(request: Request) -> StateMachine:
    """A machine that only has this state."""
    definition, name = request["definition"], request.get("stateName")
    try:
        if name is None:
            return alone(STATE_NAME, parse_json(definition))
        whole = parse(definition)
        state = _find(States(whole.start_at, whole.states), name)
        if state is None:
            raise ValidationException(f"State not found in the definition: '{name}'")
        return alone(name, state.fields, whole.query_language)
    except InvalidDefinition as error:
        raise InvalidStateMachineDefinition(str(error)) from error
    except ValueError as error:
        raise InvalidStateMachineDefinition(
            f"Invalid State Machine Definition: '{error}'"
        ) from error


def _find(states: States, name: str) -> State | None:
    if name in states.states:
        return states.states[name]
    inner = (branch for state in states.states.values() for branch in state.branches)
    return next(filter(None, (_find(branch, name) for branch in inner)), None)


def _object(request: Request, name: str) -> dict[str, Json]:
    try:
        value = parse_json(request.get(name, "{}"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValidationException(f"The {name} must be a JSON object.")
    return value


# The context object


def _context(request: Request, text: str, moment: StepMoment) -> dict[str, Json]:
    machine, name, id = (make_uuid(moment) for _ in range(3))
    execution = state_machine_arns.ExecutionName(machine, name)
    return {
        "Execution": {
            "Id": state_machine_arns.express_arn(execution, id),
            "Input": parse_json(text),
            "Name": name,
            "RoleArn": request.get("roleArn"),
            "StartTime": format_timestamp(moment.now),
        },
        "StateMachine": {"Id": state_machine_arns.machine_arn(machine), "Name": machine},
    }


def _given_context(request: Request, state: State) -> dict[str, Json]:
    context = _object(request, "context")
    problem = _context_problem(context, state)
    if problem is not None:
        raise ValidationException(f"Invalid Context object provided: {problem}")
    return context


def _context_problem(context: dict[str, Json], state: State) -> str | None:
    if "Map" in context:
        return "'Map' field is not supported when mocking a Context object"
    for section, fields in context.items():
        if section not in CONTEXT_FIELDS:
            return f"Field '{section}' is not allowed"
        if not isinstance(fields, dict):
            return f"{section} must be an object"
        for name, value in fields.items():
            if name not in CONTEXT_FIELDS[section]:
                return f"Field '{name}' is not allowed"
            if name in TEXT_FIELDS and not isinstance(value, str):
                return f"{section}.{name} must be a string"
    resource = state.fields.get("Resource", "")
    if "Task" in context and not resource.partition(".")[2].startswith(
        ("sync", "waitForTaskToken")
    ):
        return (
            "Context object contains 'Task' when state is not a Task state with a '.sync' or "
            "'.waitForTaskToken' service integration pattern"
        )
    return None


# Results


def _act_on(trial: StateTestWalk, mock: Request, configuration: Request) -> None:
    """Give the state the result or the error of the mock."""
    failed = mock.get("errorOutput")
    result = None if failed else _mocked_result(trial.state, mock)
    trial.begin()
    if trial.status is not None:
        return
    if failed:
        retries = configuration.get("retrierRetryCount", 0)
        trial.break_off(failed["error"], failed.get("cause"), retries)
    else:
        trial.succeed(result, configuration.get("mapIterationFailureCount", 0))


def _mocked_result(state: State, mock: Request) -> Json:
    try:
        result = parse_json(mock["result"])
    except ValueError:
        raise ValidationException("Mocked result must be valid JSON") from None
    if state.type == "Task":
        integration = integration_of(state.fields["Resource"])
        check_mock(integration, result, mock.get("fieldValidationMode", STRICT))
    elif not isinstance(result, list):
        raise ValidationException("Mocked result must be an array.")
    elif state.type == "Parallel" and len(result) != len(state.branches):
        raise ValidationException(
            "Mocked result must contain the same number of items as number of Parallel branches."
        )
    return result


def _answer(trial: StateTestWalk, request: Request, text: str) -> Answer:
    answer: Answer = {"status": trial.status}
    if trial.status in ("SUCCEEDED", "CAUGHT_ERROR"):
        answer["output"] = json_text(trial.output)
        if trial.next is not None:
            answer["nextState"] = trial.next
    for name, value in zip(("error", "cause"), trial.failure, strict=True):
        if value is not None:
            answer[name] = value
    if request.get("inspectionLevel", "INFO") != "INFO":
        answer["inspectionData"] = _inspection(trial, text)
    return answer


def _inspection(trial: StateTestWalk, text: str) -> dict[str, Any]:
    numbers = ("maxConcurrency", "toleratedFailureCount", "toleratedFailurePercentage")
    data: dict[str, Any] = {
        name: value if name in numbers else json_text(value)
        for name, value in trial.inspected.items()
    }
    data["input"] = text
    if trial.variables:
        data["variables"] = json_text(trial.variables)
    if trial.error_details:
        data["errorDetails"] = trial.error_details
    return data
