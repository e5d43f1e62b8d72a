"""The interface to the engine: commands that it carries out, and happenings that it reports.

Happenings are not called events, because those of AWS are the entries of a history.
"""

from __future__ import annotations

import msgspec

from partita.workflows.language.values import Json


class StartTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    """When a task is started again after a restart: a worker has it already."""
    is_submitted: bool = False
    """The service has accepted it already; only its outcome is missing."""
    submitted: Json = None


class StartTimer(msgspec.Struct, frozen=True):
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
    """The service accepted the request; its outcome comes later."""

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
