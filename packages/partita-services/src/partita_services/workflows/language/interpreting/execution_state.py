"""The state of an execution between two happenings: plain data, stored as JSON.

A run is a set of lines of execution. The first line walks the states of the machine. A Parallel or
Map state forks it: each branch or iteration is a line of its own, which knows its parent. A line
waits for exactly one thing: a task, a timer, or its own fork.
"""

from __future__ import annotations

from copy import copy

import msgspec

from partita_services.workflows.language.interpreting.engine_interface import StartTask
from partita_services.workflows.language.json_values import Json

RUNNING = "RUNNING"
SUCCEEDED = "SUCCEEDED"
FAILED = "FAILED"
TIMED_OUT = "TIMED_OUT"
ABORTED = "ABORTED"


class MapItem(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The item or batch that an iteration of a Map state works on."""

    number: int
    index: int
    """The index of the item; for a batch, of its first item."""
    value: Json
    key: str | None = None


class RunningFork(msgspec.Struct, kw_only=True):
    """A Parallel or Map state under way."""

    total: int
    waiting: list[MapItem]
    """The items of a Map state whose iterations have not started yet."""
    concurrency: int
    running: int = 0
    succeeded: dict[int, Json] = msgspec.field(default_factory=dict)
    """The outputs, by number of the branch or iteration."""
    failed: int = 0
    tolerated: int | None = None
    """The number of iterations that may fail; None without a threshold."""
    lost: list[MapItem] = []
    """The items of failed iterations, within the threshold."""

    @property
    def is_over(self) -> bool:
        return len(self.succeeded) + self.failed == self.total

    @property
    def outputs(self) -> list[Json]:
        return [self.succeeded[number] for number in sorted(self.succeeded)]


class ExecutionLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A line of execution: it is in one state of the machine."""

    id: str
    path: tuple[str | int, ...] = ()
    """The branch that it is in; see StateMachine.states_at."""
    parent: str | None = None
    number: int = 0
    """The number of its branch or iteration."""
    item: MapItem | None = None
    variables: dict[str, Json] = msgspec.field(default_factory=dict)
    last_event: int = 0

    state: str = ""
    input: Json = None
    entered_at: float = 0.0
    entered_event: int = 0
    is_entered: bool = False
    retries: dict[int, int] = msgspec.field(default_factory=dict)
    """Counts the uses of each retrier of the state."""

    waits_for: str | None = None
    task: StartTask | None = None
    until: float | None = None
    fork: RunningFork | None = None
    awaits_turn: bool = False
    """True when it has not begun with its state, because other executions have their turn first."""


class ExecutionState(msgspec.Struct, kw_only=True):
    context: dict[str, Json]
    lines: dict[str, ExecutionLine]
    """The lines under way. For a run that did not succeed, the lines at its end, from which it can
    be redriven."""
    status: str = RUNNING
    output: Json = None
    error: str | None = None
    cause: str | None = None
    event_count: int = 0
    ids_given: int = 0

    def copy(self) -> ExecutionState:
        """A copy that can be changed independently; JSON values are shared."""
        # A step that is dropped must leave the run as it was. Copying all JSON values would cost
        # too much, so they are shared, and nothing changes them in place.
        duplicate = copy(self)
        duplicate.lines = self.copy_lines()
        return duplicate

    def copy_lines(self) -> dict[str, ExecutionLine]:
        return {id: _copy_of(line) for id, line in self.lines.items()}

    def line_waiting_for(self, id: str) -> ExecutionLine | None:
        return next((line for line in self.lines.values() if line.waits_for == id), None)


def _copy_of(line: ExecutionLine) -> ExecutionLine:
    duplicate = copy(line)
    duplicate.variables = dict(line.variables)
    duplicate.retries = dict(line.retries)
    if line.fork is not None:
        duplicate.fork = copy(line.fork)
        duplicate.fork.waiting = list(line.fork.waiting)
        duplicate.fork.succeeded = dict(line.fork.succeeded)
        duplicate.fork.lost = list(line.fork.lost)
    return duplicate


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ExecutionState)


def encode_run(run: ExecutionState) -> bytes:
    return _encoder.encode(run)


def decode_run(encoded: bytes | str) -> ExecutionState:
    return _decoder.decode(encoded)
