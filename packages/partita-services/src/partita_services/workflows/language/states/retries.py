"""Retriers and catchers: which one matches an error, and the delay before a retry."""

from __future__ import annotations

import random
from collections.abc import Iterable

from partita_services.workflows.language.json_values import Json
from partita_services.workflows.language.language_errors import (
    ALL,
    DATA_LIMIT_EXCEEDED,
    HEARTBEAT_TIMEOUT,
    RUNTIME,
    TASK_FAILED,
    TIMEOUT,
    StateError,
)
from partita_services.workflows.language.language_limits import RETRY_DELAY_SECONDS_MAX
from partita_services.workflows.language.machine_definition import State

_TERMINAL = frozenset({RUNTIME, DATA_LIMIT_EXCEEDED})
"""Errors that States.ALL does not match. DataLimitExceeded can be matched by its name, Runtime not
at all."""

_TIMEOUTS = frozenset({TIMEOUT, HEARTBEAT_TIMEOUT})


def matches(names: Iterable[str], error: StateError) -> bool:
    """True when ErrorEquals has the error's name, or a wildcard for it."""
    own = {error.error, *error.aliases}
    if error.error == RUNTIME:
        own.remove(RUNTIME)
    if HEARTBEAT_TIMEOUT in own:
        own.add(TIMEOUT)
    for name in names:
        if name in own:
            return True
        if error.error in _TERMINAL:
            continue
        if name == ALL or (name == TASK_FAILED and error.error not in _TIMEOUTS):
            return True
    return False


def retrier_for(state: State, error: StateError) -> int | None:
    """The number of the first retrier that matches. Only that one counts."""
    for number, retrier in enumerate(state.fields.get("Retry", ())):
        if matches(retrier["ErrorEquals"], error):
            return number
    return None


def delay_seconds(retrier: dict[str, Json], attempts: int, chance: random.Random) -> float | None:
    """The delay after so many attempts; None when no attempt is left."""
    if attempts >= retrier.get("MaxAttempts", 3):
        return None
    longest = retrier.get("MaxDelaySeconds", RETRY_DELAY_SECONDS_MAX)
    try:
        delay = (
            retrier.get("IntervalSeconds", 1) * float(retrier.get("BackoffRate", 2.0)) ** attempts
        )
    # A BackoffRate to the power of many attempts exceeds what a float can hold.
    except OverflowError:
        delay = longest
    delay = min(delay, longest)
    if retrier.get("JitterStrategy") == "FULL":
        return chance.uniform(0, delay)
    return float(delay)


def catcher_for(state: State, error: StateError) -> tuple[int, dict[str, Json]] | None:
    for number, catcher in enumerate(state.fields.get("Catch", ())):
        if matches(catcher["ErrorEquals"], error):
            return number, catcher
    return None


def error_output(error: StateError) -> dict[str, Json]:
    """The error output that a catcher passes on."""
    output: dict[str, Json] = {"Error": error.error or ""}
    if error.cause is not None:
        output["Cause"] = error.cause
    return output
