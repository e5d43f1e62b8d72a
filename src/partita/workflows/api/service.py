"""What every operation of the API is given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from partita.clock import Clock
from partita.workflows.evaluation.pool import Pool
from partita.workflows.running.engine import Engine
from partita.workflows.running.executions import Executions
from partita.workflows.running.storage.store import Store
from partita.workflows.running.tasks.activities import Activities
from partita.workflows.running.trials import Trials

Request = dict[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Service:
    store: Store
    engine: Engine
    pool: Pool
    executions: Executions
    activities: Activities
    trials: Trials
    clock: Clock
    changes: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while an existing machine or activity is changed, or an execution redriven."""
    removals: set[asyncio.Task[None]] = field(default_factory=set)
    """Removals of deleted machines that are under way."""


Operation = Callable[[Service, Request], Awaitable[Answer]]
