"""Testing one state (TestState): its task is run, its wait passes, and nothing is stored."""

from __future__ import annotations

import asyncio

from partita.foundation.clock import Clock
from partita_services.workflows.language import (
    Happening,
    StartTask,
    TaskFailed,
    TaskTimedOut,
    TimerFired,
)
from partita_services.workflows.language.interpreting.engine_interface import TaskHappening
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.running.tasks.task_runner import TaskRunner

SECONDS_MAX = 300.0
"""The longest wait that TestState lets pass. (API reference, TestState)"""


class StateTestRunner:
    def __init__(self, tasks: TaskRunner, clock: Clock, time_scale: float) -> None:
        self._tasks = tasks
        self._clock = clock
        self._time_scale = time_scale

    async def wait(self, id: str, until: float) -> TimerFired | TaskTimedOut:
        """Let the wait of a state pass. A wait of more than five minutes times out, as in the
        service."""
        seconds = until - self._clock()
        await asyncio.sleep(min(seconds, SECONDS_MAX) / self._time_scale)
        return TaskTimedOut(id) if seconds > SECONDS_MAX else TimerFired(id)

    async def outcome(self, task: StartTask, arn: str, role: str) -> TaskHappening:
        """Run the task of a state, and return how it ended."""
        reported: list[TaskHappening] = []

        async def note(*happenings: Happening) -> None:
            raise AssertionError("only tasks that answer immediately are tested")

        seconds = min(task.timeout_seconds or SECONDS_MAX, SECONDS_MAX)
        try:
            async with asyncio.timeout(seconds / self._time_scale):
                await self._tasks.run_task(task, arn, role, lambda *all: reported.extend(all), note)
        except TimeoutError:
            return TaskTimedOut(task.id)
        except StateError as error:
            return TaskFailed(task.id, error.error, error.cause)
        return reported[-1]
