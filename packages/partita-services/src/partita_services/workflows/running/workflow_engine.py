"""The engine: each step of an execution is computed, stored with its events, and only then acted
on.

So the process may be killed at any moment. Executions are then loaded again, timers are set again,
and tasks that were under way are started again. No step is lost and no event is stored twice,
because each write is conditional on the revision of the state before.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from secrets import token_bytes
from weakref import WeakValueDictionary

import msgspec

from partita.errors import InvalidExecutionInput
from partita.foundation.clock import Clock
from partita_services.record_table import RecordConflict
from partita_services.workflows.evaluation.evaluation_messages import (
    AdvanceExecution,
    BeginExecution,
    DefinitionText,
    ExecutionStep,
    FindOutstanding,
    TimedNotification,
    decode_tasks,
    encode_json,
)
from partita_services.workflows.evaluation.evaluation_pool import EvaluationPool
from partita_services.workflows.language import (
    ExecutionTimedOut,
    Happening,
    HeartbeatMissed,
    StartTask,
    Stopped,
    TaskFailed,
    TaskStarted,
    TaskSucceeded,
    TaskTimedOut,
    TimerFired,
    language_errors,
)
from partita_services.workflows.language.interpreting import history_events
from partita_services.workflows.running.live_execution import (
    LiveExecution,
    StartedTask,
    context_of,
    heartbeat_timer,
    timeout_timer,
    with_step,
)
from partita_services.workflows.running.storage.workflow_records import (
    ABORTED,
    EXPRESS,
    RUNNING,
    ExecutionRecord,
)
from partita_services.workflows.running.storage.workflow_store import WorkflowStore
from partita_services.workflows.running.tasks.integrations import is_activity
from partita_services.workflows.running.tasks.task_runner import TaskRunner, started_execution

logger = logging.getLogger(__name__)

LOADS_AT_ONCE = 64
UNREADABLE = (KeyError, ValueError, msgspec.MsgspecError, RuntimeError, language_errors.StateError)
"""Errors of executions that another version of Partita has stored."""
SEED_BYTES = 32
BEGIN_SECONDS = 0.5
"""StartExecution waits this long for the first step. A slower execution begins without it."""
ENDS = (Stopped, ExecutionTimedOut)

Loaded = tuple[LiveExecution, ExecutionStep]
"""An execution, and a step that says what it waits for."""
SLEEP_SECONDS_MAX = 24 * 3600.0
"""Longer waits are split, because event loops limit the delay of a timer."""
EXPRESS_SECONDS_MAX = 300
"""The maximum duration of an express execution. (Step Functions guide, "Quotas")"""
EXECUTION_TIMER = "execution"


class WorkflowEngine:
    """Runs all executions. `tasks` runs their tasks."""

    def __init__(
        self,
        store: WorkflowStore,
        tasks: TaskRunner,
        pool: EvaluationPool,
        clock: Clock,
        time_scale: float = 1.0,
    ) -> None:
        self._store = store
        self._pool = pool
        self._tasks = tasks
        self.map_runs = tasks.map_runs
        self._clock = clock
        self._time_scale = time_scale
        self._live: dict[str, LiveExecution] = {}
        self._definitions: WeakValueDictionary[str, DefinitionText] = WeakValueDictionary()
        self._is_closing = False

    # For the API

    def live(self, arn: str) -> LiveExecution | None:
        return self._live.get(arn)

    async def start(
        self, execution: ExecutionRecord, definition: str, *, is_kept: bool = True
    ) -> LiveExecution:
        """Begin an execution, which is durable on return. Raises RecordConflict when the name is
        taken."""
        shared = self._definition(execution.digest, definition)
        step = await self._begun(execution, shared)
        live = live_after(execution, shared, step)
        live.is_kept = is_kept
        live.execution = with_step(execution, step, self._clock())
        if is_kept:
            await self._store.begin(live.execution, step)
        # The whole execution fitted into the first step, and nothing has to be started.
        if live.execution.status != RUNNING:
            live.finished.set_result(live.execution)
            return live
        self.take_up(live, step)
        return live

    async def _begun(self, execution: ExecutionRecord, definition: DefinitionText) -> ExecutionStep:
        """The first step. For a slow machine, it leaves the first state to the next turn."""
        job = BeginExecution(
            definition,
            execution.input,
            context_of(execution),
            self._clock(),
            token_bytes(SEED_BYTES),
        )
        if not self._pool.is_slow(definition.digest):
            try:
                async with asyncio.timeout(BEGIN_SECONDS):
                    return await self._pool.run(job, definition.digest, ExecutionStep)
            except TimeoutError:
                pass
            except language_errors.StateError as error:
                raise _refused_input(error) from error
        job.is_short = True
        try:
            return await self._pool.run(job, definition.digest, ExecutionStep, is_urgent=True)
        except language_errors.StateError as error:
            raise _refused_input(error) from error

    def take_up(self, live: LiveExecution, step: ExecutionStep) -> None:
        """Run an execution that is stored."""
        self._live[live.execution.arn] = live
        self._act(live, step)
        self._limit(live)

    def _definition(self, digest: str, text: str) -> DefinitionText:
        """The definition, shared by all executions that run it."""
        return self._definitions.setdefault(digest, DefinitionText(digest, text))

    async def definition_of(self, execution: ExecutionRecord) -> DefinitionText:
        definition = self._definitions.get(execution.digest)
        if definition is not None:
            return definition
        text = await self._store.definition(execution.digest)
        return self._definition(execution.digest, text)

    async def deliver(self, live: LiveExecution, *happenings: Happening) -> None:
        """Returns when the happenings are durable."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(live, happenings, done)
        await done

    def heartbeat(self, live: LiveExecution, id: str) -> None:
        """A worker has reported that it is still working on a task."""
        self._expect_heartbeat(live, live.tasks[id].command)

    async def end_stored(self, execution: ExecutionRecord, stopped: Stopped) -> ExecutionRecord:
        """Stop an execution that is stored as running but could not be resumed."""
        state = await self._store.state(execution.arn)
        if state is None:
            return execution
        revision, run = state
        count = await self._store.event_count(execution.arn)
        step = _broken_off(run, count, stopped, self._clock())
        ended = with_step(execution, step, self._clock())
        with suppress(RecordConflict):
            await self._store.finish(ended, revision, step)
        return ended

    async def stop_all(self, machine: str) -> None:
        """Stop the executions of a machine that is deleted."""
        running = [live for live in self._live.values() if live.execution.machine == machine]
        await asyncio.gather(*(self.deliver(live, Stopped()) for live in running))

    async def recover(self) -> None:
        """Resume all running executions."""
        turns = asyncio.Semaphore(LOADS_AT_ONCE)

        async def load(arn: str) -> Loaded | None:
            async with turns:
                try:
                    return await self._load(arn)
                except UNREADABLE:
                    # An execution that cannot be read must not stop the others.
                    logger.exception("%s cannot be resumed.", arn)
                    return None

        loaded = await asyncio.gather(*[load(arn) async for arn in self._store.running()])
        # All are loaded before any continues, because one may wait for another.
        for live, step in filter(None, loaded):
            self.take_up(live, step)

    def abort(self, live: LiveExecution) -> None:
        """Stop an execution that nobody waits for any more. When the engine closes, it is left to
        the next process instead."""
        if not self._is_closing and live.execution.arn in self._live:
            self._post(live, (Stopped(),))

    async def close(self) -> None:
        self._is_closing = True
        for live in self._live.values():
            live.stop_waiting()
            if live.draining is not None:
                live.draining.cancel()
        self._live.clear()
        await self._pool.close()

    # One execution

    async def _load(
        self, arn: str, finished: asyncio.Future[ExecutionRecord] | None = None
    ) -> Loaded | None:
        """Load an execution; None when it has ended.

        `finished` is the future that earlier callers wait for; it is resolved when the execution
        has ended.
        """
        finished = finished or asyncio.get_running_loop().create_future()
        # In this order: if the execution ends between the two reads, its record shows that.
        state, execution = await self._store.state(arn), await self._store.execution(arn)
        if execution is None or execution.status != RUNNING or state is None:
            if execution is not None:
                finished.set_result(execution)
            return None
        revision, run = state
        definition = await self.definition_of(execution)
        step = await self._pool.run(
            FindOutstanding(definition, run), definition.digest, ExecutionStep, is_urgent=True
        )
        live = live_after(execution, definition, step, finished)
        live.revision = revision
        # Before the others are loaded: a task that waits for this execution must find it.
        self._live[arn] = live
        return live, step

    def _post(
        self,
        live: LiveExecution,
        happenings: tuple[Happening, ...],
        done: asyncio.Future[None] | None = None,
        began: float | None = None,
    ) -> None:
        """Queue happenings. The last one happens now, the others happened when the call `began`."""
        now = self._clock()
        *before, last = happenings
        live.inbox += [(happening, began or now, None) for happening in before]
        live.inbox.append((last, now, done))
        if isinstance(last, ENDS) and live.step is not None:
            live.step.cancel()
        if live.draining is None:
            live.draining = asyncio.create_task(self._drain(live))

    async def _drain(self, live: LiveExecution) -> None:
        """Compute steps until the inbox is empty. Everything that has happened since the last step
        is one step."""
        try:
            while live.inbox:
                # A stop or timeout overtakes everything else in the inbox.
                gathered = sorted(live.inbox, key=lambda entry: not isinstance(entry[0], ENDS))
                live.inbox = []
                waiting = [done for _, _, done in gathered if done is not None]
                try:
                    handled = await self._step(live, [entry[:2] for entry in gathered])
                except Exception as error:
                    _settle(waiting, error)
                    raise
                # What the step has not handled comes before what has happened meanwhile.
                live.inbox[:0] = gathered[handled:]
                _settle([done for *_, done in gathered[:handled] if done is not None])
        except RecordConflict:
            logger.warning("%s was changed concurrently; loading it again.", live.execution.arn)
            live.stop_waiting()
            self._live.pop(live.execution.arn, None)
            again = await self._load(live.execution.arn, live.finished)
            if again is not None:
                self.take_up(*again)
        except Exception as error:
            logger.exception("%s cannot continue.", live.execution.arn)
            await self._abandon(live, error)
        finally:
            live.draining = None
            _settle([done for *_, done in live.inbox if done is not None], RecordConflict())
            live.inbox.clear()

    async def _abandon(self, live: LiveExecution, error: Exception) -> None:
        """Stop an execution whose step failed, for example because it has too much data to be
        stored."""
        stopped = Stopped(language_errors.RUNTIME, f"{type(error).__name__}: {error}")
        try:
            await self._step(live, [(stopped, self._clock())])
        except Exception:
            logger.exception("%s cannot be evaluated any more, and is ended.", live.execution.arn)
            try:
                now, count = self._clock(), live.event_count
                await self._count(live, _broken_off(live.run, count, stopped, now))
            except Exception:
                logger.exception("%s cannot be stopped either.", live.execution.arn)
                live.stop_waiting()

    async def _step(self, live: LiveExecution, happenings: list[tuple[Happening, float]]) -> int:
        """Returns how many of the happenings the step has handled."""
        is_end = isinstance(happenings[0][0], ENDS)
        job = AdvanceExecution(
            live.definition,
            live.run,
            encode_json([TimedNotification(*happening) for happening in happenings]),
            token_bytes(SEED_BYTES),
        )
        computed = self._pool.run(job, live.definition.digest, ExecutionStep, is_urgent=is_end)
        live.step = asyncio.ensure_future(computed)
        try:
            step = await live.step
        except asyncio.CancelledError:
            if self._is_closing or not any(isinstance(entry[0], ENDS) for entry in live.inbox):
                raise
            # The step was dropped for an end in the inbox, which is handled next.
            return 0
        finally:
            live.step = None
        taken = [what for what, _ in happenings[: step.handled]]
        for happening in taken:
            self._forget(live, happening)
        if step.is_changed:
            await self._count(live, step)
        if live.execution.status == RUNNING:
            for happening in taken:
                # The heartbeat of an activity counts from when a worker has taken it. (guide)
                if isinstance(happening, TaskStarted) and happening.id in live.tasks:
                    self.heartbeat(live, happening.id)
        return step.handled

    async def _count(self, live: LiveExecution, step: ExecutionStep) -> None:
        """Store a step, and act on it."""
        execution = with_step(live.execution, step, self._clock())
        if live.is_kept:
            if execution.status == RUNNING:
                await self._store.advance(execution, live.revision, step)
            else:
                await self._store.finish(execution, live.revision, step)
        live.run, live.event_count, live.execution = step.run, step.event_count, execution
        # Only after the store has accepted the step. If it refuses, the execution is loaded again.
        live.revision += 1
        if execution.status == RUNNING:
            self._act(live, step)
        else:
            self._end(live)

    def _end(self, live: LiveExecution) -> None:
        for id in list(live.tasks):
            self._give_up_task(live, id)
        live.stop_waiting()
        self._live.pop(live.execution.arn, None)
        live.finished.set_result(live.execution)

    def _forget(self, live: LiveExecution, happening: Happening) -> None:
        """Stop waiting for a task or timer that has ended."""
        if isinstance(happening, TimerFired):
            live.drop_timer(happening.id)
        elif isinstance(happening, TaskTimedOut | HeartbeatMissed):
            self._give_up_task(live, happening.id)
        elif isinstance(happening, TaskSucceeded | TaskFailed):
            live.drop_task(happening.id)

    def _give_up_task(self, live: LiveExecution, id: str) -> None:
        """Stop waiting for a task. If the task is an execution, that is stopped too."""
        task = live.tasks.get(id)
        if task is not None:
            # A task with .sync owns the execution that it has started.
            inner = self._live.get(started_execution(task.command, live.execution.arn) or "")
            if inner is not None:
                self._post(inner, (Stopped(),))
        live.drop_task(id)

    def _act(self, live: LiveExecution, step: ExecutionStep) -> None:
        for id in step.cancelled_tasks:
            self._give_up_task(live, id)
        for id in step.cancelled_timers:
            live.drop_timer(id)
        for task in decode_tasks(step.tasks):
            self._start_task(live, task)
        for id, until in step.timers:
            self._set_timer(live, id, until, TimerFired(id))

    def _start_task(self, live: LiveExecution, command: StartTask) -> None:
        task = live.tasks[command.id] = StartedTask(command)
        if command.timeout_seconds is not None:
            until = command.scheduled_at + command.timeout_seconds
            self._set_timer(live, timeout_timer(command.id), until, TaskTimedOut(command.id))
        if command.is_started or not is_activity(command.resource):
            self._expect_heartbeat(live, command)
        task.call = asyncio.create_task(self._call(live, command))

    async def _call(self, live: LiveExecution, command: StartTask) -> None:
        began = self._clock()

        def report(*happenings: Happening) -> None:
            self._post(live, happenings, began=began)

        async def note(*happenings: Happening) -> None:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._post(live, happenings, done, began)
            await done

        try:
            execution = live.execution
            await self._tasks.run_task(command, execution.arn, execution.role_arn, report, note)
        except language_errors.StateError as error:
            report(TaskFailed(command.id, error.error, error.cause))
        except Exception as error:
            logger.exception("A task of %s failed unexpectedly.", live.execution.arn)
            report(
                TaskFailed(command.id, language_errors.RUNTIME, f"{type(error).__name__}: {error}")
            )

    # Time

    def _limit(self, live: LiveExecution) -> None:
        seconds = live.timeout_seconds
        if live.execution.type == EXPRESS:
            seconds = min(seconds or EXPRESS_SECONDS_MAX, EXPRESS_SECONDS_MAX)
        if seconds is not None:
            # A redrive restarts it. (guide)
            until = (live.execution.redriven_at or live.execution.started_at) + seconds
            self._set_timer(live, EXECUTION_TIMER, until, ExecutionTimedOut())

    def _expect_heartbeat(self, live: LiveExecution, command: StartTask) -> None:
        if command.heartbeat_seconds is not None:
            name = heartbeat_timer(command.id)
            live.drop_timer(name)
            until = self._clock() + command.heartbeat_seconds
            self._set_timer(live, name, until, HeartbeatMissed(command.id))

    def _set_timer(
        self, live: LiveExecution, name: str, until: float, happening: Happening
    ) -> None:
        """`until` is in the machine's time, which `time_scale` speeds up."""
        remaining = (until - self._clock()) / self._time_scale
        loop = asyncio.get_running_loop()
        if remaining > SLEEP_SECONDS_MAX:
            action = partial(self._set_timer, live, name, until, happening)
        else:
            action = partial(self._post, live, (happening,))
        delay = min(max(remaining, 0.0), SLEEP_SECONDS_MAX)
        live.timers[name] = loop.call_later(delay, action)


def live_after(
    execution: ExecutionRecord,
    definition: DefinitionText,
    step: ExecutionStep,
    finished: asyncio.Future[ExecutionRecord] | None = None,
) -> LiveExecution:
    """An execution after a step that was not acted on yet."""
    finished = finished or asyncio.get_running_loop().create_future()
    return LiveExecution(
        execution, definition, step.run, step.event_count, step.timeout_seconds, finished
    )


def _refused_input(error: language_errors.StateError) -> InvalidExecutionInput:
    return InvalidExecutionInput(f"Invalid State Machine Execution Input: '{error.cause}'")


def _broken_off(run: bytes, event_count: int, stopped: Stopped, now: float) -> ExecutionStep:
    """The last step of an execution whose data cannot be evaluated any more."""
    number = event_count + 1
    details = history_events.failure(stopped.error, stopped.cause)
    event = history_events.event("ExecutionAborted", number, event_count, now, details)
    return ExecutionStep(
        run=run,
        status=ABORTED,
        error=stopped.error,
        cause=stopped.cause,
        event_count=number,
        events=encode_json([event]),
        first_event=number,
    )


def _settle(waiting: list[asyncio.Future[None]], error: Exception | None = None) -> None:
    for done in waiting:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
