"""The scheduler: it waits for the due times of all schedules, and runs each when it is due.

The next due time of a schedule is on disk. A run that was missed because no server was up is made
up for once. A run during which the server was killed may happen twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Iterable
from typing import Any

from partita.client import ClientError
from partita.foundation.clock import Clock
from partita.foundation.server_settings import ScheduleSettings
from partita_services.functions import function_arns
from partita_services.functions.destinations import Destinations
from partita_services.functions.function_records import ScheduleRecord
from partita_services.functions.function_store import SCHEDULES, FunctionStore
from partita_services.functions.message_sinks import SendFailed
from partita_services.functions.schedules.schedule_expressions import Next, parse
from partita_services.functions.schedules.schedule_targets import ScheduleFailed, ScheduleTargets
from partita_services.iso_time import iso_time

logger = logging.getLogger(__name__)

DEFAULT, OF_SETTINGS = "default", "settings"
"""The groups that always exist. The second one has the schedules of the settings."""
ROLE = function_arns.role_arn(function_arns.OWN_ROLE)
RETRIES_MAX, AGE_SECONDS_MAX = 185, 86_400
RETRY_SECONDS, RETRY_SECONDS_MAX = 1.0, 60.0
SLEEP_SECONDS_MAX = 3600.0
REST_SECONDS = 5.0
"""The pause after the database did not answer."""
ENABLED = "ENABLED"


def sort_of(group: str, name: str) -> str:
    return f"{group}#{name}"


class Scheduler:
    """`time_scale` speeds up rates and retries, for tests."""

    def __init__(
        self,
        store: FunctionStore,
        targets: ScheduleTargets,
        destinations: Destinations,
        schedules: Iterable[ScheduleSettings],
        clock: Clock,
        time_scale: float = 1.0,
    ) -> None:
        self.targets = targets
        self._store = store
        self._destinations = destinations
        self._settings = tuple(schedules)
        self._clock = clock
        self._time_scale = time_scale
        self._waiting: dict[str, asyncio.Task[None]] = {}

    async def open(self) -> None:
        await self._take_over_settings()
        for record in await self._store.all(SCHEDULES, ScheduleRecord):
            self._wait_for(record)

    async def _take_over_settings(self) -> None:
        changed = {schedule.name: _configuration(schedule) for schedule in self._settings}
        for record in await self._store.all(SCHEDULES, ScheduleRecord):
            if record.group != OF_SETTINGS:
                continue
            stored = record.configuration
            configuration = changed.get(record.name)
            if configuration is not None and all(
                stored.get(name) == value for name, value in configuration.items()
            ):
                del changed[record.name]
            else:
                await self._store.erase(SCHEDULES, sort_of(record.group, record.name))
        for name, configuration in changed.items():
            now = self._clock()
            dates = {"CreationDate": now, "LastModificationDate": now}
            await self.put(
                ScheduleRecord(
                    group=OF_SETTINGS, name=name, configuration={**configuration, **dates}
                )
            )

    def next_of(self, configuration: dict[str, Any]) -> Next:
        """The function that computes due times. Raises InvalidExpression."""
        return parse(
            configuration["ScheduleExpression"],
            configuration.get("ScheduleExpressionTimezone", "UTC"),
            configuration.get("StartDate") or configuration["CreationDate"],
            self._time_scale,
        )

    async def put(self, record: ScheduleRecord) -> None:
        """Save a new or changed schedule, and wait for its next due time."""
        now = self._clock()
        start = record.configuration.get("StartDate", 0.0)
        # "Following" excludes the time itself, but a schedule may be due at its StartDate.
        record.due_at = self._following(record, max(now, start - 1e-6))
        await self._store.save(SCHEDULES, sort_of(record.group, record.name), record)
        self._wait_for(record)

    async def remove(self, record: ScheduleRecord) -> None:
        self._stop_waiting(record)
        await self._store.erase(SCHEDULES, sort_of(record.group, record.name))

    def _following(self, record: ScheduleRecord, after: float) -> float | None:
        due = self.next_of(record.configuration)(after)
        end = record.configuration.get("EndDate")
        return None if due is None or (end is not None and due > end) else due

    def _wait_for(self, record: ScheduleRecord) -> None:
        self._stop_waiting(record)
        if record.configuration["State"] == ENABLED and record.due_at is not None:
            place = sort_of(record.group, record.name)
            self._waiting[place] = asyncio.create_task(self._run_on(record))

    def _stop_waiting(self, record: ScheduleRecord) -> None:
        waiting = self._waiting.pop(sort_of(record.group, record.name), None)
        # The task that runs a schedule removes it at its end, and must not cancel itself.
        if waiting is not None and waiting is not asyncio.current_task():
            waiting.cancel()

    async def _run_on(self, record: ScheduleRecord) -> None:
        while True:
            try:
                await self._run(record)
                return
            except ClientError as error:
                logger.error(
                    "The schedule %s is tried again, because the database did not answer: %s",
                    record.name,
                    error,
                )
                await asyncio.sleep(REST_SECONDS)

    async def _run(self, record: ScheduleRecord) -> None:
        while record.due_at is not None:
            while (left := record.due_at - self._clock()) > 0:
                await asyncio.sleep(min(left, SLEEP_SECONDS_MAX))
            # The next due time is saved after this: a kill in between repeats the run.
            await self._reach(record, record.due_at)
            # Due times that passed during a long run are skipped.
            record.due_at = self._following(record, max(record.due_at, self._clock()))
            if record.due_at is None and record.configuration.get("ActionAfterCompletion") == (
                "DELETE"
            ):
                await self.remove(record)
                return
            await self._store.save(SCHEDULES, sort_of(record.group, record.name), record)

    async def _reach(self, record: ScheduleRecord, due_at: float) -> None:
        """Call the target until it accepts, or until the retry policy gives up."""
        target = record.configuration["Target"]
        policy = target.get("RetryPolicy", {})
        retries = policy.get("MaximumRetryAttempts", RETRIES_MAX)
        gives_up_at = self._clock() + policy.get("MaximumEventAgeInSeconds", AGE_SECONDS_MAX)
        arn = function_arns.schedule_arn(record.group, record.name)
        # It follows from the due time. A run that is repeated after a kill starts its machine only
        # once.
        execution = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{arn} {due_at}"))
        attempt = 1
        while True:
            text = _input(target, arn, due_at, execution, attempt)
            try:
                await self.targets.run(target, text, execution, _role_of(record))
                return
            except ScheduleFailed as error:
                logger.warning("The schedule %s failed: %s", record.name, error)
                if attempt > retries or self._clock() > gives_up_at:
                    await self._give_up(record, text)
                    return
            pause = min(RETRY_SECONDS * 2.0 ** (attempt - 1), RETRY_SECONDS_MAX)
            await asyncio.sleep(pause / self._time_scale)
            attempt += 1

    async def _give_up(self, record: ScheduleRecord, text: str) -> None:
        arn = record.configuration["Target"].get("DeadLetterConfig", {}).get("Arn")
        logger.error("A run of the schedule %s was given up.", record.name)
        if arn:
            try:
                destinations = self._destinations.acting_for(_role_of(record))
                await destinations.send(arn, text.encode(), record.name)
            except SendFailed as error:
                logger.error(
                    "The dead-letter queue did not accept its event, which is lost: %s", error
                )

    async def close(self) -> None:
        for task in self._waiting.values():
            task.cancel()
        await asyncio.gather(*self._waiting.values(), return_exceptions=True)


def _role_of(record: ScheduleRecord) -> str:
    """The role whose rights a schedule has. Schedules of the settings have the server's own."""
    return "" if record.group == OF_SETTINGS else str(record.configuration["Target"]["RoleArn"])


def _configuration(schedule: ScheduleSettings) -> dict[str, Any]:
    if schedule.function is not None:
        arn = function_arns.function_arn(schedule.function)
    else:
        prefix = f"arn:aws:states:{function_arns.REGION}:{function_arns.ACCOUNT}:stateMachine:"
        arn = prefix + str(schedule.machine)
    policy = {"MaximumRetryAttempts": schedule.maximum_retries}
    return {
        "ScheduleExpression": schedule.expression,
        "ScheduleExpressionTimezone": schedule.timezone,
        "State": ENABLED,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": arn,
            "RoleArn": ROLE,
            "Input": json.dumps(schedule.input),
            "RetryPolicy": policy,
        },
    }


def _input(target: dict[str, Any], arn: str, due_at: float, execution: str, attempt: int) -> str:
    """The target's input. (EventBridge Scheduler guide, "Adding context attributes")"""
    due = iso_time(due_at, "seconds")
    if "Input" not in target:
        event = {
            "version": "0",
            "id": execution,
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": function_arns.ACCOUNT,
            "time": due,
            "region": function_arns.REGION,
            "resources": [arn],
            "detail": "{}",
        }
        return json.dumps(event)
    text: str = target["Input"]
    attributes = {
        "schedule-arn": arn,
        "scheduled-time": due,
        "execution-id": execution,
        "attempt-number": str(attempt),
    }
    for name, value in attributes.items():
        text = text.replace(f"<aws.scheduler.{name}>", value)
    return text
