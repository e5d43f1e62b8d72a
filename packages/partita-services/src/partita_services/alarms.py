"""Alarms of an application: a measure above or below a threshold for a number of checks in a row,
and where to send changes of state.

    [[alarms]]
    name = "slow"
    measure = "p99_ms"
    above = 20
    checks = 3
    endpoint = "https://pager.example/hook"     # or function = "module:callable", or its name

The states are those of CloudWatch: OK, ALARM, INSUFFICIENT_DATA. Each change of state is sent once,
as a JSON object: by POST to a URL, as the argument of a Python callable, or as the event of a
function of the Lambda API, if the application can reach one.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta, Struct

from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock
from partita.foundation.server_settings import read
from partita.server.http.web.web_service import WebRequest, WebResponse, json_response
from partita_services.background_tasks import BackgroundTasks

logger = logging.getLogger(__name__)

CHECK_SECONDS = 5.0
SEND_SECONDS_MAX = 5.0
SEND_TRIES_MAX = 3
OK, ALARM, INSUFFICIENT_DATA = "OK", "ALARM", "INSUFFICIENT_DATA"
State = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
Readings = Callable[[], Awaitable[Mapping[str, float]]]
Receiver = Callable[[dict[str, Any]], object]
Invoke = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Calls a function of the Lambda API by its name."""


class Alarm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=100)]
    measure: str
    above: float | None = None
    below: float | None = None
    checks: Annotated[int, Meta(ge=1, le=1000)] = 1
    """The number of consecutive checks that must agree before the state changes."""
    endpoint: Annotated[str, Meta(pattern=r"^https?://")] | None = None
    function: Annotated[str, Meta(pattern=r"^([\w.]+:[\w.]+|[\w-]+)$")] | None = None
    """module:callable, or the name of a function"""

    @property
    def invoked(self) -> str | None:
        """The name of the function of the Lambda API to call; None for a callable or an
        endpoint."""
        return self.function if self.function and ":" not in self.function else None

    def state_of(self, value: float | None) -> State:
        if value is None:
            return "INSUFFICIENT_DATA"
        is_high = self.above is not None and value > self.above
        is_low = self.below is not None and value < self.below
        return "ALARM" if is_high or is_low else "OK"


class AlarmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    alarms: tuple[Alarm, ...] = ()


def load(path: Path, measures: set[str]) -> tuple[Alarm, ...]:
    """Reads and checks the alarms in a file."""
    alarms = read(path, AlarmSettings).alarms
    check(alarms, path, measures)
    return alarms


def check(
    alarms: tuple[Alarm, ...], path: Path, measures: set[str], *, has_functions: bool = False
) -> None:
    """Raises PartitaError for alarms that make no sense. `has_functions` is True when the
    application can call functions of the Lambda API."""
    for alarm in alarms:
        if alarm.measure not in measures:
            raise PartitaError(
                f"The alarm {alarm.name} in {path} has no measure {alarm.measure}: use one of "
                f"{', '.join(sorted(measures))}."
            )
        if alarm.above is None and alarm.below is None:
            raise PartitaError(f"The alarm {alarm.name} in {path} needs above or below.")
        if (alarm.endpoint is None) == (alarm.function is None):
            raise PartitaError(
                f"The alarm {alarm.name} in {path} needs an endpoint or a function, and not both."
            )
        if alarm.invoked and not has_functions:
            raise PartitaError(
                f"The alarm {alarm.name} in {path} names a function: write module:callable."
            )
        if not alarm.invoked:
            _look_beside(path)
            receiver_of(alarm)
    names = [alarm.name for alarm in alarms]
    if len(set(names)) < len(names):
        raise PartitaError(f"Two alarms in {path} have the same name.")


def _look_beside(path: Path) -> None:
    """Make modules in the folder of the settings importable, after everything that is installed."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)


def receiver_of(alarm: Alarm) -> Receiver:
    """The callable that is called with changes of state."""
    if alarm.endpoint is not None:
        endpoint = alarm.endpoint
        return lambda change: _post(endpoint, change)
    module, _, name = (alarm.function or "").partition(":")
    try:
        receiver: Receiver = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise PartitaError(
            f"The alarm {alarm.name} cannot call {alarm.function}: {error}."
        ) from error
    return receiver


def _post(url: str, change: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, orjson.dumps(change), headers, method="POST")
    with urllib.request.urlopen(request, timeout=SEND_SECONDS_MAX) as response:
        response.read()


class _Watched:
    """An alarm and its state."""

    def __init__(self, alarm: Alarm) -> None:
        self.alarm = alarm
        self.state: State = "INSUFFICIENT_DATA"
        self.value: float | None = None
        self.since = 0.0
        self.receiver = None if alarm.invoked else receiver_of(alarm)
        self._other: State = "INSUFFICIENT_DATA"
        self._agreeing = 0

    def check(self, value: float | None, now: float) -> State | None:
        """Returns the previous state if the state changes with this value, otherwise None."""
        self.value = value
        state = self.alarm.state_of(value)
        if state == self.state:
            self._agreeing = 0
            return None
        self._agreeing = self._agreeing + 1 if state == self._other else 1
        self._other = state
        if self._agreeing < self.alarm.checks:
            return None
        before, self.state = self.state, state
        self.since, self._agreeing = now, 0
        return before

    def described(self) -> dict[str, Any]:
        alarm = self.alarm
        limits = {"above": alarm.above, "below": alarm.below}
        return {
            "alarm": alarm.name,
            "state": self.state,
            "measure": alarm.measure,
            "value": self.value,
            **{name: limit for name, limit in limits.items() if limit is not None},
            "since": self.since,
        }


class Alarms:
    def __init__(
        self,
        alarms: tuple[Alarm, ...],
        readings: Readings,
        clock: Clock = system_clock,
        invoke: Invoke | None = None,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self._watched = [_Watched(alarm) for alarm in alarms]
        self._readings = readings
        self._clock = clock
        self._invoke = invoke
        self._check_seconds = check_seconds
        self._sending = BackgroundTasks()

    async def run(self) -> None:
        """Check until cancelled."""
        while self._watched:
            try:
                await self.check()
            except Exception:
                logger.exception("The alarms could not be checked")
            await asyncio.sleep(self._check_seconds)

    async def check(self) -> None:
        readings = await self._readings()
        for watched in self._watched:
            before = watched.check(readings.get(watched.alarm.measure), self._clock())
            if before is not None:
                self._sending.start(self._notify(watched, before))

    async def show(self, request: WebRequest) -> WebResponse:
        return json_response({"alarms": [watched.described() for watched in self._watched]})

    async def _notify(self, watched: _Watched, before: State) -> None:
        """Sends a change of state in a task of its own, so that a slow receiver does not hold up
        the checks."""
        change = {**watched.described(), "before": before}
        for tried in range(1, SEND_TRIES_MAX + 1):
            try:
                await self._send(watched, change)
                return
            except Exception as error:
                logger.warning(
                    "The alarm %s could not be sent (%s of %s tries): %s",
                    watched.alarm.name,
                    tried,
                    SEND_TRIES_MAX,
                    error,
                )
                await asyncio.sleep(tried)

    async def _send(self, watched: _Watched, change: dict[str, Any]) -> None:
        if watched.receiver is not None:
            await asyncio.to_thread(watched.receiver, change)
        elif self._invoke is not None and watched.alarm.invoked:
            await self._invoke(watched.alarm.invoked, change)
