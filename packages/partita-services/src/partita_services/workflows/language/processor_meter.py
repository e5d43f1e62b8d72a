"""A meter for a job under way: how much processor time it may take, and which part of it is
running.

An evaluation process (evaluation/evaluation_worker.py) may be killed in the middle of a job, by its
limits on time and memory. The job is pure, so it is repeated, and its parts have the same numbers
as before. The part that was under way when the process ended fails at once this time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf
from time import process_time

from partita_services.workflows.language.language_limits import (
    QUERY_MILLISECONDS_MAX,
    STATE_QUERY_MILLISECONDS_MAX,
)


class ProcessorTimeExhausted(Exception):
    """Raised for a part of a job that took too much time or memory in an earlier attempt."""


class ProcessorMeter:
    """`broken` has the numbers of the parts that ended a process. `announce` is called with the
    number of each part before it begins."""

    def __init__(
        self,
        turn_seconds: float = inf,
        broken: Collection[int] = (),
        announce: Callable[[int], None] | None = None,
    ) -> None:
        self._turn_seconds = turn_seconds
        self._broken = broken
        self._announce = announce
        self._number = 0
        self._turn_ends = inf
        self._state_ends = inf

    def start_turn(self, first_number: int) -> None:
        """Start counting at `first_number`, so that the numbers do not depend on whether the
        machine was already loaded."""
        self._number = first_number
        self._turn_ends = process_time() + self._turn_seconds

    @property
    def is_turn_over(self) -> bool:
        return self._turn_ends != inf and process_time() >= self._turn_ends

    def start_state(self) -> None:
        self._state_ends = process_time() + STATE_QUERY_MILLISECONDS_MAX / 1000
        self.start_part()

    def start_part(self) -> None:
        """Raises ProcessorTimeExhausted when this part has ended a process before."""
        self._number += 1
        if self._announce is not None:
            self._announce(self._number)
            if self._number in self._broken:
                raise ProcessorTimeExhausted

    def query_milliseconds(self) -> int:
        """Returns the time that the next expression may take. Raises ProcessorTimeExhausted when
        the state has used up its time."""
        if self._state_ends == inf:
            return QUERY_MILLISECONDS_MAX
        left = int((self._state_ends - process_time()) * 1000)
        if left <= 0:
            raise ProcessorTimeExhausted
        return min(left, QUERY_MILLISECONDS_MAX)


_current = ProcessorMeter()


def current() -> ProcessorMeter:
    """The meter of the job under way. Outside an evaluation process, it has no limits."""
    return _current


def install(meter: ProcessorMeter) -> None:
    global _current
    _current = meter
