"""Jobs wait here for one of two evaluation processes, the quick lane and the slow lane.

Everything in the States Language is evaluated there: definitions, expressions, templates, the steps
of executions. A job begins in the quick lane. If it takes longer than a moment, the kernel ends the
process. The jobs behind it continue in the next process; the job itself is repeated in the slow
lane, and for a while all jobs of its machine go there too. So machines that compute a lot wait for
each other, and nobody else waits for them. Within a lane, machines take turns.

A job is pure, so it can be repeated. When it ends a process of the slow lane by exceeding a limit
of time or memory, the part of it that did so fails at once in the next attempt
(`language/processor_meter.py`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import NamedTuple, TypeVar

import msgspec

from partita import errors
from partita.foundation.service_limits import MB
from partita_services.workflows.evaluation.evaluation_messages import (
    DefinitionText,
    Job,
    JobAnswer,
    JobCrashed,
    JobOrder,
    JobRefused,
    Outcome,
    StateFailed,
    TestState,
    ValidateDefinition,
    WorkerSetup,
    encode,
)
from partita_services.workflows.evaluation.evaluation_process import EvaluationProcess
from partita_services.workflows.language.language_errors import RUNTIME, StateError
from partita_services.workflows.running.tasks.integrations import ServerAbilities

logger = logging.getLogger(__name__)

ENDS_MAX = 3
"""A job fails after it has ended this many processes."""
SLOW_JOB_SECONDS = 0.03
"""A job that took longer was too slow for the quick lane."""
SLOW_SECONDS = 600.0
"""The jobs of its machine stay in the slow lane for this long."""
SLOW_KEYS_MAX = 10_000
IDLE_SECONDS_MAX = 20.0
"""An idle process of the slow lane ends after this, which frees its memory."""
DEFINITIONS_CHARS_MAX = 8 * MB
"""The size of a process's cache of definitions."""
START_REST_SECONDS = 0.5
"""The pause before a process that failed to start is started again."""
TOO_MUCH = "It took too much time or memory."

Kind = TypeVar("Kind")


class EvaluationLimits(NamedTuple):
    seconds_max: float
    turn_seconds: float
    jobs_max: int
    """The maximum number of jobs that a process has, including the one under way."""
    bytes_max: int
    """The size of these jobs, after which no further one is sent."""
    niceness: int
    idle_seconds: float | None


QUICK = EvaluationLimits(0.1, 0.01, 16, 4 * MB, 0, None)
SLOW = EvaluationLimits(5.0, 0.25, 1, 1, 10, IDLE_SECONDS_MAX)


class PendingJob(msgspec.Struct, eq=False):
    """A job, and the future of its outcome."""

    job: Job
    key: str
    """Jobs with the same key belong to the same machine."""
    done: asyncio.Future[Outcome]
    is_urgent: bool
    broken: list[int] = []
    ends: int = 0
    """The number of processes that the job has ended."""


class FairJobQueue:
    """Waiting jobs: urgent ones first, then one job of each key in turn."""

    def __init__(self) -> None:
        self._urgent: deque[PendingJob] = deque()
        self._by_key: dict[str, deque[PendingJob]] = {}

    def __bool__(self) -> bool:
        return bool(self._urgent or self._by_key)

    def add(self, pending: PendingJob) -> None:
        if pending.is_urgent:
            self._urgent.append(pending)
        else:
            self._by_key.setdefault(pending.key, deque()).append(pending)

    def put_back(self, pending: PendingJob) -> None:
        self._urgent.appendleft(pending)

    def take(self) -> PendingJob:
        if self._urgent:
            return self._urgent.popleft()
        key = next(iter(self._by_key))
        waiting = self._by_key.pop(key)
        pending = waiting.popleft()
        if waiting:
            self._by_key[key] = waiting
        return pending

    def take_all(self) -> list[PendingJob]:
        pending = []
        while self:
            pending.append(self.take())
        return pending


class EvaluationLane:
    """A process, and the jobs that wait for it.

    `answered` is called with each answer; `broken_by` with the job that has ended the process, the
    exit code, and the number of the part of the job.
    """

    def __init__(
        self,
        limits: EvaluationLimits,
        abilities: ServerAbilities,
        answered: Callable[[PendingJob, JobAnswer], None],
        broken_by: Callable[[EvaluationLane, PendingJob, int, int], None],
    ) -> None:
        self._on_answer = answered
        self._limits = limits
        operations = abilities.operations
        self._setup = WorkerSetup(
            limits.seconds_max,
            limits.turn_seconds,
            None if operations is None else sorted(operations),
            abilities.may_call,
            dict(abilities.stand_ins),
        )
        self._broken_by = broken_by
        self._waiting = FairJobQueue()
        self._sent: dict[int, tuple[PendingJob, int]] = {}
        self._sent_bytes = 0
        self._numbers = count(1)
        self._process: EvaluationProcess | None = None
        self._changing: asyncio.Task[None] | None = None
        """The task that starts or ends a process."""
        self._idle: asyncio.TimerHandle | None = None
        self._is_closed = False

    def add(self, pending: PendingJob) -> None:
        self._waiting.add(pending)
        self._send_more()

    def withdraw(self, pending: PendingJob) -> None:
        """Nobody waits for this job any more. A process that does nothing else is ended."""
        if self._process is not None and len(self._sent) == 1:
            [(sent, _)] = self._sent.values()
            # Only the slow lane has one job at a time. In the quick one, other jobs would be
            # repeated.
            if sent is pending and self._limits.jobs_max == 1:
                self._process.kill()

    async def close(self) -> None:
        self._is_closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._changing is not None:
            self._changing.cancel()
            await asyncio.gather(self._changing, return_exceptions=True)
        if self._process is not None:
            await self._process.exit_code()

    def _send_more(self) -> None:
        if self._process is None:
            if self._waiting and self._changing is None and not self._is_closed:
                self._changing = asyncio.create_task(self._start())
            return
        limits = self._limits
        while (
            self._waiting
            and len(self._sent) < limits.jobs_max
            and self._sent_bytes < limits.bytes_max
        ):
            pending = self._waiting.take()
            if not pending.done.done():
                self._send(self._process, pending)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self._sent and limits.idle_seconds is not None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(limits.idle_seconds, self._process.kill)

    def _send(self, process: EvaluationProcess, pending: PendingJob) -> None:
        number = next(self._numbers)
        job, forgets = pending.job, False
        if not isinstance(job, ValidateDefinition | TestState):
            digest, text = job.definition.digest, job.definition.text
            if digest in process.definitions:
                # A definition may have 1 MB, and each step needs it: it is sent once for all
                # executions.
                job = msgspec.structs.replace(job, definition=DefinitionText(digest, ""))
            else:
                forgets = sum(process.definitions.values()) + len(text) > DEFINITIONS_CHARS_MAX
                if forgets:
                    process.definitions.clear()
                process.definitions[digest] = len(text)
        content = encode(JobOrder(number, job, pending.broken, forgets))
        self._sent[number] = pending, len(content)
        self._sent_bytes += len(content)
        process.send(content)

    def _answered(self, answer: JobAnswer) -> None:
        pending, size = self._sent.pop(answer.number)
        self._sent_bytes -= size
        self._on_answer(pending, answer)
        self._send_more()

    async def _start(self) -> None:
        process = EvaluationProcess(self._answered, self._ended)
        try:
            await process.start(self._setup, self._limits.niceness)
        except OSError as error:
            await self._give_up(f"could not be started: {error}")
        else:
            self._process = process
        finally:
            self._changing = None
        self._send_more()

    def _ended(self, process: EvaluationProcess) -> None:
        self._process = None
        if not self._is_closed:
            self._changing = asyncio.create_task(self._clear_up(process))

    async def _clear_up(self, process: EvaluationProcess) -> None:
        """Send the unanswered jobs of a process to its successor, except the one that ended it."""
        # The connection is closed, but the process may still be ending: its exit code says which
        # limit it exceeded.
        code = await process.exit_code()
        job, part = process.under_way()
        sent, self._sent, self._sent_bytes = self._sent, {}, 0
        broken = sent.pop(job, None)
        # Innocent jobs keep their order and their place at the head of the queue.
        for pending, _ in reversed(sent.values()):
            self._waiting.put_back(pending)
        # The process ended before its first job, and nobody has killed it: it cannot start.
        if job == 0 and sent and code != -signal.SIGKILL:
            await self._give_up(f"ended with {code}")
        self._changing = None
        if broken is not None and not broken[0].done.done():
            self._broken_by(self, broken[0], code, part)
        self._send_more()

    async def _give_up(self, reason: str) -> None:
        """Fail all waiting jobs, because the process cannot even start."""
        logger.error("The evaluation process of workflows %s.", reason)
        for pending in self._waiting.take_all():
            if not pending.done.done():
                pending.done.set_exception(RuntimeError(f"The evaluation process {reason}"))
        await asyncio.sleep(START_REST_SECONDS)


class EvaluationPool:
    def __init__(self, abilities: ServerAbilities) -> None:
        self._quick = EvaluationLane(QUICK, abilities, self._answered, self._broken_by)
        self._slow = EvaluationLane(SLOW, abilities, self._answered, self._broken_by)
        self._slow_keys: dict[str, float] = {}
        """The keys whose jobs go to the slow lane, each with the time at which that ends."""

    async def run(self, job: Job, key: str, kind: type[Kind], *, is_urgent: bool = False) -> Kind:
        """Returns the outcome of a job; raises errors of the API, and StateError.

        `key` is the machine that the job belongs to. An urgent job evaluates nothing, so it can go
        first.
        """
        loop = asyncio.get_running_loop()
        pending = PendingJob(job, key, loop.create_future(), is_urgent)
        lane = self._slow if self.is_slow(key) and not is_urgent else self._quick
        lane.add(pending)
        try:
            outcome = await pending.done
        except asyncio.CancelledError:
            self._slow.withdraw(pending)
            raise
        if isinstance(outcome, kind):
            return outcome
        raise _error(outcome)

    def is_slow(self, key: str) -> bool:
        until = self._slow_keys.get(key)
        return until is not None and until > asyncio.get_running_loop().time()

    async def close(self) -> None:
        await asyncio.gather(self._quick.close(), self._slow.close())

    def _answered(self, pending: PendingJob, answer: JobAnswer) -> None:
        if answer.seconds > SLOW_JOB_SECONDS:
            self._note_slow(pending.key)
        if not pending.done.done():
            pending.done.set_result(answer.outcome)

    def _note_slow(self, key: str) -> None:
        # Insert it again at the end, so that the first key is always the one that was noted
        # earliest.
        self._slow_keys.pop(key, None)
        if len(self._slow_keys) >= SLOW_KEYS_MAX:
            del self._slow_keys[next(iter(self._slow_keys))]
        self._slow_keys[key] = asyncio.get_running_loop().time() + SLOW_SECONDS

    def _broken_by(self, lane: EvaluationLane, pending: PendingJob, code: int, part: int) -> None:
        self._note_slow(pending.key)
        # Too much time in the quick lane is no failure: the job has a longer limit in the slow one.
        if lane is self._slow or code != -signal.SIGPROF:
            pending.ends += 1
            pending.broken = [*pending.broken, part]
        if pending.ends > ENDS_MAX:
            pending.done.set_result(StateFailed(RUNTIME, TOO_MUCH))
        else:
            self._slow.add(pending)


def _error(outcome: Outcome) -> Exception:
    if isinstance(outcome, JobRefused):
        kind: type[errors.DynamoDBError] = getattr(errors, outcome.name)
        return kind(outcome.message)
    if isinstance(outcome, StateFailed):
        return StateError(outcome.error, outcome.cause)
    assert isinstance(outcome, JobCrashed)
    return RuntimeError(outcome.text)
