"""The jobs of an evaluation process: each a pure function from a job to its outcome."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from partita.errors import DynamoDBError
from partita_services.workflows.evaluation.evaluation_messages import (
    AdvanceExecution,
    BeginExecution,
    DefinitionValidated,
    ExecutionStep,
    FindOutstanding,
    Job,
    JobCrashed,
    JobRefused,
    MapRunPlan,
    Outcome,
    PlanMapRun,
    RedriveExecution,
    StateFailed,
    StateTested,
    TestState,
    ValidateDefinition,
    decode_happening,
    decode_happenings,
    decode_task,
    encode_json,
)
from partita_services.workflows.evaluation.state_test_job import try_state
from partita_services.workflows.language import (
    CancelTask,
    CancelTimer,
    Command,
    Diagnostic,
    ExecutionState,
    InvalidDefinition,
    StartTask,
    StartTimer,
    StateMachine,
    StepMoment,
    StepResult,
    advance,
    begin,
    break_off,
    decode_run,
    diagnose,
    encode_run,
    outstanding,
    parse,
    processor_meter,
    redrive,
)
from partita_services.workflows.language.interpreting.execution_state import RUNNING, SUCCEEDED
from partita_services.workflows.language.json_values import json_text, parse_json
from partita_services.workflows.language.language_errors import (
    DATA_LIMIT_EXCEEDED,
    ITEM_READER_FAILED,
    RUNTIME,
    StateError,
)
from partita_services.workflows.language.language_limits import RUN_BYTES_MAX
from partita_services.workflows.language.machine_definition import processor_of
from partita_services.workflows.language.states import distributed_maps
from partita_services.workflows.language.states.item_files import items_in, items_limit
from partita_services.workflows.running.tasks.integrations import ServerAbilities, check_resources

FIRST_PART = 1_000_000
"""The parts of a step are numbered from here, those of loading its machine from 1. So a part has
the same number whether the machine was in the cache or not."""
TOO_MUCH = Diagnostic(
    "ERROR", "SCHEMA_VALIDATION_FAILED", "Examining the definition takes too much time or memory"
)


class EvaluationJobs:
    def __init__(self, abilities: ServerAbilities) -> None:
        self._abilities = abilities
        self._machines: dict[str, StateMachine] = {}
        """Loaded machines by digest, until an order says to clear the cache."""

    def forget(self) -> None:
        self._machines.clear()

    def run(self, job: Job, metered: processor_meter.ProcessorMeter) -> Outcome:
        processor_meter.install(metered)
        try:
            return _JOBS[type(job)](self, job)
        except DynamoDBError as error:
            return JobRefused(type(error).__name__, error.message or "")
        except StateError as error:
            return StateFailed(error.error, error.cause)
        except (MemoryError, RecursionError, processor_meter.ProcessorTimeExhausted):
            cause = "It took too much time or memory, or is nested too deeply."
            return StateFailed(RUNTIME, cause)
        except Exception:
            return JobCrashed(traceback.format_exc())

    def _examine(self, job: ValidateDefinition) -> Outcome:
        try:
            diagnostics = diagnose(job.text)
            if all(diagnostic.severity != "ERROR" for diagnostic in diagnostics):
                check_resources(parse(job.text), job.machine_type, self._abilities)
        except InvalidDefinition as error:
            diagnostics = [*diagnostics, *error.diagnostics]
        except (MemoryError, RecursionError, processor_meter.ProcessorTimeExhausted):
            diagnostics = [TOO_MUCH]
        return DefinitionValidated(diagnostics)

    def _machine(
        self,
        job: BeginExecution | AdvanceExecution | RedriveExecution | FindOutstanding | PlanMapRun,
    ) -> StateMachine:
        """Load the machine. Its definition was validated when it was created."""
        digest = job.definition.digest
        if digest not in self._machines:
            self._machines[digest] = StateMachine(parse_json(job.definition.text))
        processor_meter.current().start_turn(FIRST_PART)
        return self._machines[digest]

    def _begin(self, job: BeginExecution) -> Outcome:
        machine = self._machine(job)
        if job.is_short:
            _end_turn()
        moment = _moment(job.now, job.seed)
        progress = begin(machine, parse_json(job.input), job.context, moment)
        return _stepped(machine, progress, moment)

    def _advance(self, job: AdvanceExecution) -> Outcome:
        happenings = decode_happenings(job.happenings)
        machine = self._machine(job)
        chance = _Chance(job.seed)
        before = run = decode_run(job.run)
        commands: list[Command] = []
        events: list[dict[str, Any]] = []
        handled = 0
        for happened in happenings:
            if handled and processor_meter.current().is_turn_over:
                break
            moment = StepMoment(happened.when, chance)
            progress = advance(machine, run, happened.what, moment)
            run = progress.run
            commands += progress.commands
            events += progress.events
            handled += 1
        whole = StepResult(run, commands, events)
        if run is before:
            return _unchanged(machine, run, handled)
        return _stepped(machine, whole, moment, handled)

    def _redrive(self, job: RedriveExecution) -> Outcome:
        machine, run = self._machine(job), decode_run(job.run)
        if run.status == RUNNING:
            return _unchanged(machine, run, 0)
        _end_turn()
        moment = _moment(job.now, job.seed)
        return _stepped(machine, redrive(machine, run, moment), moment)

    def _find_outstanding(self, job: FindOutstanding) -> Outcome:
        machine, run = self._machine(job), decode_run(job.run)
        return _step(machine, StepResult(run, outstanding(run)), job.run)

    def _test_state(self, job: TestState) -> Outcome:
        happening: Any = None if job.happening is None else decode_happening(job.happening)
        moment = _moment(job.now, job.seed)
        request: dict[str, Any] = msgspec.json.decode(job.request)
        tried = try_state(request, self._abilities, moment, happening)
        command = tried.command
        if isinstance(command, StartTask):
            return StateTested(
                None, encode_json(command), None, tried.execution_arn, tried.role_arn
            )
        if isinstance(command, StartTimer):
            return StateTested(None, None, (command.id, command.until))
        return StateTested(encode_json(tried.answer))

    def _plan_map_run(self, job: PlanMapRun) -> Outcome:
        machine, task = self._machine(job), decode_task(job.task)
        state = distributed_maps.state_of(machine, task)
        config = (task.input["reader"] or {}).get("ReaderConfig", {})
        try:
            if job.content is not None:
                items = items_in(job.content, config)
            else:
                items = msgspec.json.decode(job.items or b"[]")
            limit = items_limit(config)
            if limit is not None and isinstance(items, list):
                items = items[:limit]
        except (AttributeError, TypeError) as error:
            raise StateError(ITEM_READER_FAILED, f"The ReaderConfig is wrong: {error}") from None
        except StateError as error:
            raise StateError(ITEM_READER_FAILED, error.cause) from error
        inputs = distributed_maps.inputs_of(state, task, items)
        tolerated = distributed_maps.threshold(state, task)
        has_batches = "ItemBatcher" in state.fields
        return MapRunPlan(
            inputs=[json_text(input) for input in inputs],
            sizes=[len(input["Items"]) if has_batches else 1 for input in inputs],
            tolerated_count=tolerated.number,
            tolerated_percentage=tolerated.percentage,
            label=distributed_maps.label_of(state),
            machine_type=processor_of(state.fields)[1]["ProcessorConfig"]["ExecutionType"],
            definition=json_text(distributed_maps.definition_of(machine, state)),
        )


_JOBS: dict[type[Job], Callable[[EvaluationJobs, Any], Outcome]] = {
    ValidateDefinition: EvaluationJobs._examine,
    BeginExecution: EvaluationJobs._begin,
    AdvanceExecution: EvaluationJobs._advance,
    RedriveExecution: EvaluationJobs._redrive,
    FindOutstanding: EvaluationJobs._find_outstanding,
    TestState: EvaluationJobs._test_state,
    PlanMapRun: EvaluationJobs._plan_map_run,
}


class _Chance(random.Random):
    """Random numbers from a seed. Seeding is expensive and most steps draw no number, so it is put
    off until the first draw."""

    def __new__(cls, seed: bytes) -> _Chance:
        return super().__new__(cls)

    def __init__(self, seed: bytes) -> None:
        self._seed: bytes | None = seed

    def random(self) -> float:
        self._sow()
        return super().random()

    def getrandbits(self, bits: int) -> int:
        self._sow()
        return super().getrandbits(bits)

    def _sow(self) -> None:
        if self._seed is not None:
            self.seed(self._seed)
            self._seed = None


def _moment(now: float, seed: bytes) -> StepMoment:
    return StepMoment(now, _Chance(seed))


def _end_turn() -> None:
    """Leave all states to the next turn."""
    processor_meter.install(processor_meter.ProcessorMeter(turn_seconds=0))
    processor_meter.current().start_turn(FIRST_PART)


def _stepped(
    machine: StateMachine, progress: StepResult, moment: StepMoment, handled: int = 1
) -> ExecutionStep:
    encoded = encode_run(progress.run)
    if len(encoded) > RUN_BYTES_MAX and progress.status == RUNNING:
        cause = f"The data of all states under way has more than {RUN_BYTES_MAX} bytes."
        ended = break_off(machine, progress.run, DATA_LIMIT_EXCEEDED, cause, moment)
        commands = [*progress.commands, *ended.commands]
        progress = StepResult(ended.run, commands, [*progress.events, *ended.events])
        encoded = encode_run(progress.run)
    stepped = _step(machine, progress, encoded)
    stepped.handled = handled
    return stepped


def _unchanged(machine: StateMachine, run: ExecutionState, handled: int) -> ExecutionStep:
    stepped = _step(machine, StepResult(run), b"")
    stepped.handled, stepped.is_changed = handled, False
    return stepped


def _step(machine: StateMachine, progress: StepResult, encoded: bytes) -> ExecutionStep:
    run, events = progress.run, progress.events
    # A task or timer that was started in this step may also have been cancelled in it.
    outstanding_ids = {command.id for command in outstanding(run)}
    return ExecutionStep(
        run=encoded,
        status=run.status,
        output=json_text(run.output) if run.status == SUCCEEDED else None,
        error=run.error,
        cause=run.cause,
        event_count=run.event_count,
        events=encode_json(events),
        first_event=events[0]["id"] if events else 0,
        tasks=encode_json(
            [task for task in _of(progress, StartTask) if task.id in outstanding_ids]
        ),
        timers=[
            (timer.id, timer.until)
            for timer in _of(progress, StartTimer)
            if timer.id in outstanding_ids
        ],
        cancelled_tasks=[task.id for task in _of(progress, CancelTask)],
        cancelled_timers=[timer.id for timer in _of(progress, CancelTimer)],
        timeout_seconds=machine.timeout_seconds,
    )


def _of(progress: StepResult, kind: type[Any]) -> Sequence[Any]:
    return [command for command in progress.commands if isinstance(command, kind)]
