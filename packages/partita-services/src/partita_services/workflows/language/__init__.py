"""The Amazon States Language, without I/O: the names that other packages use."""

from __future__ import annotations

from partita_services.workflows.language.definition import State, StateMachine, States
from partita_services.workflows.language.errors import Diagnostic, InvalidDefinition
from partita_services.workflows.language.expressions.scope import Moment
from partita_services.workflows.language.interpreting.happenings import (
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
from partita_services.workflows.language.interpreting.interpreter import (
    Progress,
    advance,
    begin,
    break_off,
    outstanding,
    redrive,
)
from partita_services.workflows.language.interpreting.run import Run, decode_run, encode_run
from partita_services.workflows.language.interpreting.tokens import task_of_token
from partita_services.workflows.language.source import strip_comments, substitute
from partita_services.workflows.language.validation.definitions import diagnose, parse

__all__ = [
    "CancelTask",
    "CancelTimer",
    "Command",
    "Diagnostic",
    "ExecutionTimedOut",
    "Happening",
    "HeartbeatMissed",
    "InvalidDefinition",
    "Moment",
    "Progress",
    "Run",
    "StartTask",
    "StartTimer",
    "State",
    "StateMachine",
    "States",
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
