"""Redriving: an execution that did not succeed continues from the states in which it ended."""

from __future__ import annotations

from secrets import token_bytes

import msgspec

from partita.errors import ExecutionNotRedrivable
from partita_services.record_table import RecordConflict
from partita_services.workflows.evaluation.evaluation_messages import (
    ExecutionStep,
    RedriveExecution,
)
from partita_services.workflows.evaluation.evaluation_pool import EvaluationPool
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.language.language_limits import HISTORY_EVENTS_MAX
from partita_services.workflows.running.live_execution import with_step
from partita_services.workflows.running.storage.workflow_records import (
    DELETING,
    RUNNING,
    SUCCEEDED,
    ExecutionRecord,
)
from partita_services.workflows.running.storage.workflow_store import WorkflowStore
from partita_services.workflows.running.workflow_engine import (
    SEED_BYTES,
    WorkflowEngine,
    live_after,
)

DAY_SECONDS = 24 * 3600.0
PERIOD_SECONDS = 14 * DAY_SECONDS
OPEN_SECONDS_MAX = 365 * DAY_SECONDS
TOKENS_KEPT, TOKEN_SECONDS = 10, 15 * 60.0
"""(API reference, RedriveExecution)"""

IS_RUNNING = "Execution is RUNNING and cannot be redriven"


async def refusal(store: WorkflowStore, execution: ExecutionRecord, now: float) -> str | None:
    """Returns why an execution cannot be redriven, in the words of the API reference; None if it
    can."""
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
    store: WorkflowStore,
    engine: WorkflowEngine,
    pool: EvaluationPool,
    execution: ExecutionRecord,
    token: str | None,
    now: float,
) -> float:
    """Returns the time of the redrive: now, or earlier if the same token was used before."""
    tokens = {
        earlier: when
        for earlier, when in execution.redrive_tokens.items()
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
        await _resume(store, engine, pool, redriven, now)
    except RecordConflict:
        raise ExecutionNotRedrivable(IS_RUNNING) from None
    return now


async def _resume(
    store: WorkflowStore,
    engine: WorkflowEngine,
    pool: EvaluationPool,
    execution: ExecutionRecord,
    now: float,
) -> None:
    state = await store.state(execution.arn)
    if state is None:
        raise RecordConflict
    revision, run = state
    definition = await engine.definition_of(execution)
    job = RedriveExecution(definition, run, now, token_bytes(SEED_BYTES))
    try:
        step = await pool.run(job, definition.digest, ExecutionStep, is_urgent=True)
    except StateError as error:
        raise ExecutionNotRedrivable(f"Execution cannot be redriven: {error.cause}") from error
    if not step.is_changed:
        raise RecordConflict
    live = live_after(execution, definition, step)
    live.revision = revision + 1
    live.execution = with_step(execution, step, now)
    if live.execution.status == RUNNING:
        await store.resume(live.execution, revision, step)
        engine.take_up(live, step)
    else:
        await store.finish(live.execution, revision, step)
