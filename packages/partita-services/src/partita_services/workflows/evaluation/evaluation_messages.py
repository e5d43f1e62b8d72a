"""Messages between the process that answers requests and the processes that evaluate.

Each is a frame (`partita.foundation.child_process`) of MessagePack. The values of executions are in
it as JSON text, which only the evaluating side parses: they may be deeply nested, or have huge
numbers.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from partita_services.workflows.language import Diagnostic, Happening, StartTask

PAGE = struct.Struct("QQ")
"""The layout of the shared page: the number of the job under way, and of the part of it."""


class WorkerSetup(msgspec.Struct):
    """The first message to a process: settings that hold for all its jobs."""

    seconds_max: float
    """The processor time that a job may take. After that, the kernel ends the process (SIGPROF)."""
    turn_seconds: float
    """The processor time after which an execution yields to the others."""
    operations: list[str] | None
    may_call: bool
    stand_ins: dict[str, str]


class DefinitionText(msgspec.Struct, frozen=True, weakref=True):
    """A machine's definition. Its digest is the key in the cache of the process."""

    digest: str
    text: str
    """Empty when the process has it in its cache."""


class TimedNotification(msgspec.Struct, array_like=True):
    """A happening and its time, in seconds since the epoch."""

    what: Happening
    when: float


# Jobs. Each is a pure function of its members, so it can be repeated in another process.


class ValidateDefinition(msgspec.Struct, tag=True):
    """Find the errors in a definition."""

    text: str
    machine_type: str


class BeginExecution(msgspec.Struct, tag=True):
    """Begin an execution."""

    definition: DefinitionText
    input: str
    context: dict[str, Any]
    now: float
    seed: bytes
    is_short: bool = False
    """Leave the first state to the next turn, so that nothing is evaluated in this job."""


class AdvanceExecution(msgspec.Struct, tag=True):
    """Continue an execution after happenings."""

    definition: DefinitionText
    run: bytes
    happenings: bytes
    """A JSON list of TimedNotification."""
    seed: bytes


class RedriveExecution(msgspec.Struct, tag=True):
    """Continue an execution that failed, from the states in which it ended."""

    definition: DefinitionText
    run: bytes
    now: float
    seed: bytes


class FindOutstanding(msgspec.Struct, tag=True):
    """Find the tasks and timers that an execution waits for, after a restart."""

    definition: DefinitionText
    run: bytes


class TestState(msgspec.Struct, tag=True):
    """Test one state: up to its task or wait, or on from there with the result."""

    request: bytes
    now: float
    seed: bytes
    happening: bytes | None = None


class PlanMapRun(msgspec.Struct, tag=True):
    """Compute the inputs of the executions of a distributed Map state."""

    definition: DefinitionText
    task: bytes
    items: bytes | None
    """The items as JSON; None when they are in an object (`content`)."""
    content: bytes | None


Job = (
    ValidateDefinition
    | BeginExecution
    | AdvanceExecution
    | RedriveExecution
    | FindOutstanding
    | TestState
    | PlanMapRun
)


class JobOrder(msgspec.Struct):
    """A job as it is sent to a process."""

    number: int
    job: Job
    broken: list[int] = []
    """The parts of the job that ended a process in earlier attempts; they fail at once now."""
    forgets: bool = False
    """True when the process has to clear its cache of definitions."""


# Answers


class DefinitionValidated(msgspec.Struct, tag=True):
    diagnostics: list[Diagnostic]


class ExecutionStep(msgspec.Struct, tag=True, kw_only=True):
    """An execution after a step, or unchanged."""

    run: bytes
    status: str
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    event_count: int
    events: bytes = b"[]"
    first_event: int = 0
    """The number of the first history event of the step; 0 without events."""
    tasks: bytes = b"[]"
    """The tasks to start: a JSON list of StartTask."""
    timers: list[tuple[str, float]] = []
    cancelled_tasks: list[str] = []
    cancelled_timers: list[str] = []
    handled: int = 1
    """The number of happenings that the step has handled. The others wait for the next turn."""
    is_changed: bool = True
    timeout_seconds: float | None = None
    """TimeoutSeconds of the machine."""


class StateTested(msgspec.Struct, tag=True):
    """The answer to TestState, or the task or timer that has to be carried out first."""

    answer: bytes | None = None
    task: bytes | None = None
    timer: tuple[str, float] | None = None
    execution_arn: str = ""
    role_arn: str = ""


class MapRunPlan(msgspec.Struct, tag=True, kw_only=True):
    inputs: list[str]
    """The input of each execution, as JSON."""
    sizes: list[int]
    """The number of items in each input."""
    tolerated_count: int | None
    tolerated_percentage: float | None
    label: str
    machine_type: str
    definition: str


class JobRefused(msgspec.Struct, tag=True):
    """An error that the API answers with, by the name of its class in `partita.errors`."""

    name: str
    message: str


class StateFailed(msgspec.Struct, tag=True):
    """A StateError: the state fails with this error and cause."""

    error: str | None
    cause: str | None


class JobCrashed(msgspec.Struct, tag=True):
    """Our own bug, with its traceback."""

    text: str


Outcome = (
    DefinitionValidated
    | ExecutionStep
    | StateTested
    | MapRunPlan
    | JobRefused
    | StateFailed
    | JobCrashed
)


class JobAnswer(msgspec.Struct):
    number: int
    seconds: float
    """The processor time that the job took."""
    outcome: Outcome


encode = msgspec.msgpack.Encoder().encode
decode_setup = msgspec.msgpack.Decoder(WorkerSetup).decode
decode_order = msgspec.msgpack.Decoder(JobOrder).decode
decode_answer = msgspec.msgpack.Decoder(JobAnswer).decode
encode_json = msgspec.json.Encoder().encode
decode_happenings = msgspec.json.Decoder(list[TimedNotification]).decode
decode_happening = msgspec.json.Decoder(Happening).decode
decode_task = msgspec.json.Decoder(StartTask).decode
decode_tasks = msgspec.json.Decoder(list[StartTask]).decode
