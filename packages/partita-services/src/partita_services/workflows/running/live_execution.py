"""An execution in memory: its state, and what it waits for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from partita_services.workflows.evaluation.evaluation_messages import DefinitionText, ExecutionStep
from partita_services.workflows.language import Happening, StartTask
from partita_services.workflows.language.timestamps import format_timestamp
from partita_services.workflows.running.state_machine_arns import machine_arn
from partita_services.workflows.running.storage.workflow_records import RUNNING, ExecutionRecord


@dataclass(slots=True, eq=False)
class StartedTask:
    command: StartTask
    call: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class LiveExecution:
    """The state of a running execution, and its timers and tasks."""

    execution: ExecutionRecord
    definition: DefinitionText
    run: bytes
    event_count: int
    timeout_seconds: float | None
    finished: asyncio.Future[ExecutionRecord]
    revision: int = 1
    is_kept: bool = True
    """False for synchronous executions, which are not stored."""
    inbox: list[tuple[Happening, float, asyncio.Future[None] | None]] = field(default_factory=list)
    draining: asyncio.Task[None] | None = None
    step: asyncio.Future[ExecutionStep] | None = None
    """The step under way. It is dropped when the execution has to end."""
    tasks: dict[str, StartedTask] = field(default_factory=dict)
    timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def stop_waiting(self) -> None:
        """Cancel all timers and tasks."""
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()
        for id in list(self.tasks):
            self.drop_task(id)

    def drop_task(self, id: str) -> None:
        task = self.tasks.pop(id, None)
        if task is not None and task.call is not None and task.call is not asyncio.current_task():
            task.call.cancel()
        for name in (timeout_timer(id), heartbeat_timer(id)):
            self.drop_timer(name)

    def drop_timer(self, id: str) -> None:
        timer = self.timers.pop(id, None)
        if timer is not None:
            timer.cancel()


def timeout_timer(id: str) -> str:
    return f"timeout of {id}"


def heartbeat_timer(id: str) -> str:
    return f"heartbeat of {id}"


def context_of(execution: ExecutionRecord) -> dict[str, Any]:
    """The part of the context object that all states of an execution share."""
    return {
        "Execution": {
            "Id": execution.arn,
            "Name": execution.name,
            "RoleArn": execution.role_arn,
            "StartTime": format_timestamp(execution.started_at),
        },
        "StateMachine": {"Id": machine_arn(execution.machine), "Name": execution.machine},
    }


def with_step(execution: ExecutionRecord, step: ExecutionStep, now: float) -> ExecutionRecord:
    """The execution after a step."""
    if step.status == RUNNING:
        return execution
    return msgspec.structs.replace(
        execution,
        status=step.status,
        stopped_at=now,
        output=step.output,
        error=step.error,
        cause=step.cause,
    )
