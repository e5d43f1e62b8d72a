"""What the process that answers and a process that computes say to each other.

A message is its length and MessagePack. Values of workflows are in it as JSON, which only the
computing side reads: it may be nested deeply, and its numbers may be large.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from partita_services.workflows.language import Diagnostic, Happening, StartTask

PAGE = struct.Struct("QQ")
"""The memory that both sides see: the number of the job under way, and of the part of it."""


class Setup(msgspec.Struct):
    """The first message to a process: what it is told once."""

    seconds_max: float
    """The processor time that a job may take; the process is ended by the system after that."""
    turn_seconds: float
    """The processor time after which an execution leaves the turn to others."""
    operations: list[str] | None
    may_call: bool
    stand_ins: dict[str, str]


class Definition(msgspec.Struct, frozen=True, weakref=True):
    digest: str
    text: str
    """Empty when the process has it."""


class Happened(msgspec.Struct, array_like=True):
    what: Happening
    when: float


# Jobs: each is a pure function of its members, so it can be done again.


class Examine(msgspec.Struct, tag=True):
    """Find what is wrong with a definition."""

    text: str
    machine_type: str


class Begin(msgspec.Struct, tag=True):
    """Begin an execution."""

    definition: Definition
    input: str
    context: dict[str, Any]
    now: float
    seed: bytes
    is_short: bool = False
    """Leave the first state to the next turn: nothing is evaluated."""


class Advance(msgspec.Struct, tag=True):
    """Continue an execution after happenings."""

    definition: Definition
    run: bytes
    happenings: bytes
    """A list of Happened."""
    seed: bytes


class Redrive(msgspec.Struct, tag=True):
    definition: Definition
    run: bytes
    now: float
    seed: bytes


class FindOutstanding(msgspec.Struct, tag=True):
    """Find what an execution waits for, after a restart."""

    definition: Definition
    run: bytes


class TestState(msgspec.Struct, tag=True):
    """Test a state: up to its task or wait, or with what happened to that."""

    request: bytes
    now: float
    seed: bytes
    happening: bytes | None = None


class PlanMapRun(msgspec.Struct, tag=True):
    """Work out the executions of a distributed Map state."""

    definition: Definition
    task: bytes
    items: bytes | None
    """JSON; None when they are in the object."""
    content: bytes | None


Job = Examine | Begin | Advance | Redrive | FindOutstanding | TestState | PlanMapRun


class Order(msgspec.Struct):
    """A job, as it goes to a process."""

    number: int
    job: Job
    broken: list[int] = []
    """The parts that ended a process when it was done before."""
    forgets: bool = False
    """Whether the process drops the definitions that it has."""


# Answers


class Examined(msgspec.Struct, tag=True):
    diagnostics: list[Diagnostic]


class Stepped(msgspec.Struct, tag=True, kw_only=True):
    """An execution after a step, or as it is."""

    run: bytes
    status: str
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    event_count: int
    events: bytes = b"[]"
    first_event: int = 0
    """The number of the first event of the step; 0 when there is none."""
    tasks: bytes = b"[]"
    """A list of StartTask."""
    timers: list[tuple[str, float]] = []
    cancelled_tasks: list[str] = []
    cancelled_timers: list[str] = []
    handled: int = 1
    """How many happenings the step took in; the others wait for the next turn."""
    is_changed: bool = True
    timeout_seconds: float | None = None
    """That of the machine."""


class Tested(msgspec.Struct, tag=True):
    """The answer, or the command that is to be carried out first."""

    answer: bytes | None = None
    task: bytes | None = None
    timer: tuple[str, float] | None = None
    execution_arn: str = ""
    role_arn: str = ""


class MapRunPlan(msgspec.Struct, tag=True, kw_only=True):
    inputs: list[str]
    """The inputs of the executions."""
    sizes: list[int]
    """How many items are in each of them."""
    tolerated_count: int | None
    tolerated_percentage: float | None
    label: str
    machine_type: str
    definition: str


class Refused(msgspec.Struct, tag=True):
    """An error of the API, by the name of its class."""

    name: str
    message: str


class FailedState(msgspec.Struct, tag=True):
    """A StateError."""

    error: str | None
    cause: str | None


class Crashed(msgspec.Struct, tag=True):
    """An error of ours, with its traceback."""

    text: str


Outcome = Examined | Stepped | Tested | MapRunPlan | Refused | FailedState | Crashed


class Answer(msgspec.Struct):
    number: int
    seconds: float
    """The processor time that it took."""
    outcome: Outcome


encode = msgspec.msgpack.Encoder().encode
decode_setup = msgspec.msgpack.Decoder(Setup).decode
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
encode_json = msgspec.json.Encoder().encode
decode_happenings = msgspec.json.Decoder(list[Happened]).decode
decode_happening = msgspec.json.Decoder(Happening).decode
decode_task = msgspec.json.Decoder(StartTask).decode
decode_tasks = msgspec.json.Decoder(list[StartTask]).decode
