"""The engine: each step of an execution is decided, stored with its events, and then acted on.

So the process may be killed at any moment: executions are loaded again, timers are set again, and
tasks that were under way are started again. No step is lost and no event is stored twice, because
each write is conditional on the revision of the state that it continues.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial

import msgspec

from partita.clock import Clock
from partita_services.workflows.language import (
    CancelTask,
    CancelTimer,
    Command,
    ExecutionTimedOut,
    Happening,
    HeartbeatMissed,
    InvalidDefinition,
    Moment,
    Run,
    StartTask,
    StartTimer,
    StateMachine,
    Stopped,
    TaskFailed,
    TaskStarted,
    TaskSucceeded,
    TaskTimedOut,
    TimerFired,
    advance,
    begin,
    errors,
    outstanding,
    parse,
)
from partita_services.workflows.language.values import parse_json
from partita_services.workflows.running.live_execution import (
    LiveExecution,
    StartedTask,
    context_of,
    heartbeat_timer,
    timeout_timer,
    with_progress,
)
from partita_services.workflows.running.storage.commits import Conflict
from partita_services.workflows.running.storage.records import EXPRESS, RUNNING, Execution
from partita_services.workflows.running.storage.store import Store
from partita_services.workflows.running.tasks.integrations import is_activity
from partita_services.workflows.running.tasks.runner import TaskRunner, started_execution

logger = logging.getLogger(__name__)

LOADS_AT_ONCE = 64
UNREADABLE = (KeyError, ValueError, msgspec.MsgspecError, InvalidDefinition)
"""Errors of executions that were stored by another version of Partita."""
MACHINES_KEPT = 512
SLEEP_SECONDS_MAX = 24 * 3600.0
"""Longer waits are split: event loops limit the delay of a timer."""
EXPRESS_SECONDS_MAX = 300
"""How long an express execution may take. (guide)"""
EXECUTION_TIMER = "execution"


class Engine:
    """All running executions; `tasks` runs their tasks."""

    def __init__(
        self,
        store: Store,
        tasks: TaskRunner,
        clock: Clock,
        time_scale: float = 1.0,
        chance: random.Random | None = None,
    ) -> None:
        self._store = store
        self._tasks = tasks
        self.map_runs = tasks.map_runs
        self._clock = clock
        self._time_scale = time_scale
        self._chance = chance or random.SystemRandom()
        self._live: dict[str, LiveExecution] = {}
        self._machines: dict[str, StateMachine] = {}
        self._is_closing = False

    # For the API

    def live(self, arn: str) -> LiveExecution | None:
        return self._live.get(arn)

    async def start(
        self, execution: Execution, definition: str, *, is_kept: bool = True
    ) -> LiveExecution:
        """Begin an execution; it is durable on return. Raises Conflict when the name is taken."""
        machine = self.machine(execution.digest, definition)
        given = parse_json(execution.input)
        progress = begin(machine, given, context_of(execution), self.moment())
        finished = asyncio.get_running_loop().create_future()
        live = LiveExecution(execution, machine, progress.run, finished, is_kept=is_kept)
        live.execution = with_progress(execution, progress, self._clock())
        if is_kept:
            await self._store.begin(live.execution, progress.run, progress.events)
        if live.execution.status != RUNNING:
            finished.set_result(live.execution)
            return live
        self.take_up(live, progress.commands)
        return live

    def take_up(self, live: LiveExecution, commands: list[Command]) -> None:
        """Run an execution that has been stored."""
        self._live[live.execution.arn] = live
        self._act(live, commands)
        self._limit(live)

    def machine(self, digest: str, definition: str) -> StateMachine:
        machine = self._machines.get(digest)
        if machine is None:
            if len(self._machines) >= MACHINES_KEPT:
                self._machines.clear()
            machine = self._machines[digest] = parse(definition)
        return machine

    async def machine_of(self, execution: Execution) -> StateMachine:
        if execution.digest in self._machines:
            return self._machines[execution.digest]
        definition = await self._store.definition(execution.digest)
        return self.machine(execution.digest, definition)

    async def deliver(self, live: LiveExecution, *happenings: Happening) -> None:
        """Returns when the happenings are durable."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(live, happenings, done)
        await done

    def heartbeat(self, live: LiveExecution, id: str) -> None:
        """A worker has reported that it is still working."""
        self._expect_heartbeat(live, live.tasks[id].command)

    async def stop_all(self, machine: str) -> None:
        """Stop the executions of a machine that is deleted."""
        running = [live for live in self._live.values() if live.execution.machine == machine]
        await asyncio.gather(*(self.deliver(live, Stopped()) for live in running))

    async def recover(self) -> None:
        """Resume all running executions."""
        turns = asyncio.Semaphore(LOADS_AT_ONCE)

        async def load(arn: str) -> LiveExecution | None:
            async with turns:
                try:
                    return await self._load(arn)
                except UNREADABLE:
                    # The others are not affected.
                    logger.exception("%s cannot be resumed.", arn)
                    return None

        loaded = await asyncio.gather(*[load(arn) async for arn in self._store.running()])
        # After all are loaded, because one may wait for another.
        for live in filter(None, loaded):
            self._go_on(live)

    def abort(self, live: LiveExecution) -> None:
        """Stop an execution that nobody waits for any more; not when all of them will go on."""
        if not self._is_closing and live.execution.arn in self._live:
            self._post(live, (Stopped(),))

    async def close(self) -> None:
        self._is_closing = True
        for live in self._live.values():
            live.stop_waiting()
            if live.draining is not None:
                live.draining.cancel()
        self._live.clear()

    # One execution

    async def _load(
        self, arn: str, finished: asyncio.Future[Execution] | None = None
    ) -> LiveExecution | None:
        """An execution as it was stored; None when it has ended.

        `finished` is resolved with its end, for callers that wait for it already.
        """
        finished = finished or asyncio.get_running_loop().create_future()
        # In this order, so that an execution that ends meanwhile is seen with its end.
        state, execution = await self._store.state(arn), await self._store.execution(arn)
        if execution is None or execution.status != RUNNING or state is None:
            if execution is not None:
                finished.set_result(execution)
            return None
        machine = await self.machine_of(execution)
        revision, run = state
        live = self._live[arn] = LiveExecution(execution, machine, run, finished, revision)
        return live

    def _go_on(self, live: LiveExecution) -> None:
        """Start everything again that an execution waits for."""
        self._act(live, outstanding(live.run))
        self._limit(live)

    def _post(
        self,
        live: LiveExecution,
        happenings: tuple[Happening, ...],
        done: asyncio.Future[None] | None = None,
        began: float | None = None,
    ) -> None:
        """The last happening happens now, those before it happened when it `began`."""
        now = self._clock()
        *before, last = happenings
        live.inbox += [(happening, began or now, None) for happening in before]
        live.inbox.append((last, now, done))
        if live.draining is None:
            live.draining = asyncio.create_task(self._drain(live))

    async def _drain(self, live: LiveExecution) -> None:
        """Everything that happened since the last step is one step."""
        try:
            while live.inbox:
                gathered, live.inbox = live.inbox, []
                waiting = [done for _, _, done in gathered if done is not None]
                try:
                    await self._step(live, [(what, when) for what, when, _ in gathered])
                except Exception as error:
                    _settle(waiting, error)
                    raise
                _settle(waiting)
        except Conflict:
            logger.warning("%s was changed concurrently; loading it again.", live.execution.arn)
            live.stop_waiting()
            self._live.pop(live.execution.arn, None)
            again = await self._load(live.execution.arn, live.finished)
            if again is not None:
                self._go_on(again)
        except Exception as error:
            logger.exception("%s cannot continue.", live.execution.arn)
            await self._abandon(live, error)
        finally:
            live.draining = None
            _settle([done for *_, done in live.inbox if done is not None], Conflict())
            live.inbox.clear()

    async def _abandon(self, live: LiveExecution, error: Exception) -> None:
        """Stop an execution that cannot be stored, for example with too much data."""
        stopped = Stopped(errors.RUNTIME, f"{type(error).__name__}: {error}")
        try:
            await self._step(live, [(stopped, self._clock())])
        except Exception:
            logger.exception("%s cannot be stopped either.", live.execution.arn)
            live.stop_waiting()

    async def _step(self, live: LiveExecution, happenings: list[tuple[Happening, float]]) -> None:
        run, events, commands = live.run, [], list[Command]()
        for happening, when in happenings:
            progress = advance(live.machine, run, happening, Moment(when, self._chance))
            run = progress.run
            events += progress.events
            commands += progress.commands
            self._forget(live, happening)
        if run is live.run:
            return
        if len(happenings) > 1:
            commands = _still_wanted(commands, run)
        execution = with_progress(live.execution, progress, self._clock())
        if live.is_kept:
            if execution.status == RUNNING:
                await self._store.advance(execution, live.revision, run, events)
            else:
                await self._store.finish(execution, live.revision, run, events)
        live.run, live.execution = run, execution
        live.revision += 1
        if execution.status == RUNNING:
            self._act(live, commands)
            for happening, _ in happenings:
                # Heartbeats of an activity are expected from the worker that has it. (guide)
                if isinstance(happening, TaskStarted) and happening.id in live.tasks:
                    self.heartbeat(live, happening.id)
        else:
            self._end(live)

    def _end(self, live: LiveExecution) -> None:
        for id in list(live.tasks):
            self._give_up_task(live, id)
        live.stop_waiting()
        self._live.pop(live.execution.arn, None)
        live.finished.set_result(live.execution)

    def _forget(self, live: LiveExecution, happening: Happening) -> None:
        """Stop waiting for what has ended."""
        if isinstance(happening, TimerFired):
            live.drop_timer(happening.id)
        elif isinstance(happening, TaskTimedOut | HeartbeatMissed):
            self._give_up_task(live, happening.id)
        elif isinstance(happening, TaskSucceeded | TaskFailed):
            live.drop_task(happening.id)

    def _give_up_task(self, live: LiveExecution, id: str) -> None:
        """Stop waiting for a task; an execution that it started is stopped."""
        task = live.tasks.get(id)
        if task is not None:
            inner = self._live.get(started_execution(task.command, live.execution.arn) or "")
            if inner is not None:
                self._post(inner, (Stopped(),))
        live.drop_task(id)

    def _act(self, live: LiveExecution, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, StartTask):
                self._start_task(live, command)
            elif isinstance(command, StartTimer):
                self._set_timer(live, command.id, command.until, TimerFired(command.id))
            elif isinstance(command, CancelTask):
                self._give_up_task(live, command.id)
            else:
                live.drop_timer(command.id)

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
        except errors.StateError as error:
            report(TaskFailed(command.id, error.error, error.cause))
        except Exception as error:
            logger.exception("A task of %s failed unexpectedly.", live.execution.arn)
            report(TaskFailed(command.id, errors.RUNTIME, f"{type(error).__name__}: {error}"))

    # Time

    def moment(self) -> Moment:
        return Moment(self._clock(), self._chance)

    def _limit(self, live: LiveExecution) -> None:
        seconds = live.machine.timeout_seconds
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
        """`until` is in the machine's time, which `time_scale` may speed up."""
        remaining = (until - self._clock()) / self._time_scale
        loop = asyncio.get_running_loop()
        if remaining > SLEEP_SECONDS_MAX:
            action = partial(self._set_timer, live, name, until, happening)
        else:
            action = partial(self._post, live, (happening,))
        delay = min(max(remaining, 0.0), SLEEP_SECONDS_MAX)
        live.timers[name] = loop.call_later(delay, action)


def _still_wanted(commands: list[Command], run: Run) -> list[Command]:
    """A later happening may have ended what an earlier one started."""
    wanted = {command.id for command in outstanding(run)}
    return [
        one for one in commands if isinstance(one, CancelTask | CancelTimer) or one.id in wanted
    ]


def _settle(waiting: list[asyncio.Future[None]], error: Exception | None = None) -> None:
    for done in waiting:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
