"""The Amazon States Language, without I/O: the names that other packages use."""

from __future__ import annotations

from partita_services.workflows.language.definition_text import strip_comments, substitute
from partita_services.workflows.language.expressions.evaluation_scope import StepMoment
from partita_services.workflows.language.interpreting.engine_interface import (
    CancelTask,
    CancelTimer,
    Command,
    ExecutionTimedOut,
    Happening,
    HeartbeatMissed,
    StartTask,
    StartTimer,
    Stopped,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
    TaskSucceeded,
    TaskTimedOut,
    TimerFired,
)
from partita_services.workflows.language.interpreting.execution_state import (
    ExecutionState,
    decode_run,
    encode_run,
)
from partita_services.workflows.language.interpreting.interpreter import (
    StepResult,
    advance,
    begin,
    break_off,
    outstanding,
    redrive,
)
from partita_services.workflows.language.interpreting.task_tokens import task_of_token
from partita_services.workflows.language.language_errors import Diagnostic, InvalidDefinition
from partita_services.workflows.language.machine_definition import State, StateMachine, States
from partita_services.workflows.language.validation.definition_checks import diagnose, parse

__all__ = [
    "CancelTask",
    "CancelTimer",
    "Command",
    "Diagnostic",
    "ExecutionState",
    "ExecutionTimedOut",
    "Happening",
    "HeartbeatMissed",
    "InvalidDefinition",
    "StartTask",
    "StartTimer",
    "State",
    "StateMachine",
    "States",
    "StepMoment",
    "StepResult",
    "Stopped",
    "TaskFailed",
    "TaskStarted",
    "TaskSubmitted",
    "TaskSucceeded",
    "TaskTimedOut",
    "TimerFired",
    "advance",
    "begin",
    "break_off",
    "decode_run",
    "diagnose",
    "encode_run",
    "outstanding",
    "parse",
    "redrive",
    "strip_comments",
    "substitute",
    "task_of_token",
]
