"""Redriving: an execution that did not succeed continues from the states that it did not leave."""

from __future__ import annotations

import asyncio

import msgspec

from partita.errors import ExecutionNotRedrivable
from partita_services.workflows.language import redrive
from partita_services.workflows.language.limits import HISTORY_EVENTS_MAX
from partita_services.workflows.running.engine import Engine
from partita_services.workflows.running.live_execution import LiveExecution, with_progress
from partita_services.workflows.running.storage.commits import Conflict
from partita_services.workflows.running.storage.records import (
    DELETING,
    RUNNING,
    SUCCEEDED,
    Execution,
)
from partita_services.workflows.running.storage.store import Store

DAY_SECONDS = 24 * 3600.0
PERIOD_SECONDS = 14 * DAY_SECONDS
OPEN_SECONDS_MAX = 365 * DAY_SECONDS
TOKENS_KEPT, TOKEN_SECONDS = 10, 15 * 60.0
"""(API reference, RedriveExecution)"""

IS_RUNNING = "Execution is RUNNING and cannot be redriven"


async def refusal(store: Store, execution: Execution, now: float) -> str | None:
    """Why an execution cannot be redriven, as the API reference words it; None if it can."""
    if execution.status == RUNNING:
        return IS_RUNNING
    if execution.status == SUCCEEDED:
        return "Execution is SUCCEEDED and cannot be redriven"
    machine = await store.machine(execution.machine)
    if machine is None or machine.status == DELETING:
        return "State machine is in DELETING status"
    if not await store.has_state(execution.arn):
        return "Execution was started before the launch of RedriveExecution"
    if await store.event_count(execution.arn) >= HISTORY_EVENTS_MAX - 1:
        return "Execution history event limit exceeded"
    if now - execution.started_at > OPEN_SECONDS_MAX:
        return "Execution has exceeded the max execution time"
    if execution.stopped_at is None or now - execution.stopped_at > PERIOD_SECONDS:
        return "Execution redrivable period exceeded"
    return None


async def redrive_execution(
    store: Store, engine: Engine, execution: Execution, token: str | None, now: float
) -> float:
    """Returns when it was redriven: now, or earlier with the same token."""
    tokens = {
        known: when
        for known, when in execution.redrive_tokens.items()
        if now - when <= TOKEN_SECONDS
    }
    if token in tokens:
        return tokens[token]
    reason = await refusal(store, execution, now)
    if reason is not None:
        raise ExecutionNotRedrivable(reason)
    if token is not None:
        tokens[token] = now
    redriven = msgspec.structs.replace(
        execution,
        status=RUNNING,
        stopped_at=None,
        error=None,
        cause=None,
        redrive_count=execution.redrive_count + 1,
        redriven_at=now,
        redrive_tokens=dict(list(tokens.items())[-TOKENS_KEPT:]),
    )
    try:
        await _resume(store, engine, redriven)
    except Conflict:
        raise ExecutionNotRedrivable(IS_RUNNING) from None
    return now


async def _resume(store: Store, engine: Engine, execution: Execution) -> None:
    state = await store.state(execution.arn)
    if state is None or state[1].status == RUNNING:
        raise Conflict
    revision, run = state
    machine = await engine.machine_of(execution)
    progress = redrive(machine, run, engine.moment())
    finished = asyncio.get_running_loop().create_future()
    live = LiveExecution(execution, machine, progress.run, finished, revision + 1)
    live.execution = with_progress(execution, progress, engine.moment().now)
    if live.execution.status == RUNNING:
        await store.resume(live.execution, revision, progress.run, progress.events)
        engine.take_up(live, progress.commands)
    else:
        await store.finish(live.execution, revision, progress.run, progress.events)
