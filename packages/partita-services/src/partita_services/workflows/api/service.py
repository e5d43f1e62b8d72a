"""The services that operations of the API use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from partita.clock import Clock
from partita_services.workflows.evaluation.pool import Pool
from partita_services.workflows.running.engine import Engine
from partita_services.workflows.running.executions import Executions
from partita_services.workflows.running.storage.store import Store
from partita_services.workflows.running.tasks.activities import Activities
from partita_services.workflows.running.trials import Trials

Request = dict[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Service:
    """What every operation gets besides its request."""

    store: Store
    engine: Engine
    pool: Pool
    executions: Executions
    activities: Activities
    trials: Trials
    clock: Clock
    changes: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a stored machine or activity is changed, or an execution is redriven."""
    removals: set[asyncio.Task[None]] = field(default_factory=set)
    """The removals of deleted machines that are under way."""


Operation = Callable[[Service, Request], Awaitable[Answer]]
