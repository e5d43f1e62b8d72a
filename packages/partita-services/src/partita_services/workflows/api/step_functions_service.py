"""The services that operations of the API use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from partita.foundation.clock import Clock
from partita_services.background_tasks import BackgroundTasks
from partita_services.workflows.evaluation.evaluation_pool import EvaluationPool
from partita_services.workflows.running.execution_starts import ExecutionStarts
from partita_services.workflows.running.state_test_runner import StateTestRunner
from partita_services.workflows.running.storage.workflow_store import WorkflowStore
from partita_services.workflows.running.tasks.activities import Activities
from partita_services.workflows.running.workflow_engine import WorkflowEngine

Request = dict[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StepFunctionsService:
    """The parts of the service that operations use."""

    store: WorkflowStore
    engine: WorkflowEngine
    pool: EvaluationPool
    executions: ExecutionStarts
    activities: Activities
    trials: StateTestRunner
    clock: Clock
    changes: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a stored machine or activity is changed, or an execution is redriven."""
    removals: BackgroundTasks = field(default_factory=BackgroundTasks)
    """The removals of deleted machines that are under way."""


Operation = Callable[[StepFunctionsService, Request], Awaitable[Answer]]
