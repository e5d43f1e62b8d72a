"""The Amazon States Language: the public interface of the room."""

from __future__ import annotations

from partita.workflows.language.definition import State, StateMachine, States
from partita.workflows.language.errors import Diagnostic, InvalidDefinition
from partita.workflows.language.expressions.scope import Moment
from partita.workflows.language.interpreting.happenings import (
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
from partita.workflows.language.interpreting.interpreter import (
    Progress,
    advance,
    begin,
    break_off,
    outstanding,
    redrive,
)
from partita.workflows.language.interpreting.run import Run, decode_run, encode_run
from partita.workflows.language.interpreting.tokens import task_of_token
from partita.workflows.language.source import strip_comments, substitute
from partita.workflows.language.validation.definitions import diagnose, parse

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
