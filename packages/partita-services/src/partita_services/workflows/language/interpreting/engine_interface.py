"""The interface between interpreter and engine: commands, which the engine carries out, and
happenings, which it reports back.

They are not called events, because events are the entries of an execution's history.
"""

from __future__ import annotations

import msgspec

from partita_services.workflows.language.json_values import Json


class StartTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Start a task. Stored with the state of the execution until the task ends."""

    id: str
    resource: str
    input: Json
    state: str
    scheduled_at: float
    timeout_seconds: float | None = None
    heartbeat_seconds: float | None = None
    token: str | None = None
    credentials: Json = None
    is_started: bool = False
    """True when the task is started again after a restart, and a worker has it already."""
    is_submitted: bool = False
    """True when the service has accepted the job already, so that only its outcome is missing."""
    submitted: Json = None


class StartTimer(msgspec.Struct, frozen=True):
    """Report TimerFired at a time."""

    id: str
    until: float


class CancelTask(msgspec.Struct, frozen=True):
    id: str


class CancelTimer(msgspec.Struct, frozen=True):
    id: str


Command = StartTask | StartTimer | CancelTask | CancelTimer


class TaskStarted(msgspec.Struct, frozen=True, tag=True):
    id: str
    worker_name: str | None = None


class TaskSubmitted(msgspec.Struct, frozen=True, tag=True):
    """The service has accepted the job; its outcome comes later."""

    id: str
    output: Json


class TaskSucceeded(msgspec.Struct, frozen=True, tag=True):
    id: str
    output: Json


class TaskFailed(msgspec.Struct, frozen=True, tag=True):
    id: str
    error: str | None = None
    cause: str | None = None


class TaskTimedOut(msgspec.Struct, frozen=True, tag=True):
    id: str


class HeartbeatMissed(msgspec.Struct, frozen=True, tag=True):
    id: str


class TimerFired(msgspec.Struct, frozen=True, tag=True):
    id: str


class ExecutionTimedOut(msgspec.Struct, frozen=True, tag=True):
    pass


class Stopped(msgspec.Struct, frozen=True, tag=True):
    error: str | None = None
    cause: str | None = None


TaskHappening = (
    TaskStarted | TaskSubmitted | TaskSucceeded | TaskFailed | TaskTimedOut | HeartbeatMissed
)
Happening = TaskHappening | TimerFired | ExecutionTimedOut | Stopped
