"""The queue of asynchronous invocations. Events are kept until the function has succeeded or is
given up.

An event is accepted once it is on disk. After a failure it is retried, by default after one minute
and after two more; then a record of it goes to a destination. After a kill the queue is as it was,
so an event may be handled twice.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any

import msgspec

from partita.client import ClientError
from partita.errors import RestError
from partita.foundation.clock import Clock
from partita_services.background_tasks import BackgroundTasks
from partita_services.functions import function_arns
from partita_services.functions.destinations import Destinations
from partita_services.functions.function_arns import QualifiedFunction
from partita_services.functions.function_catalog import FunctionCatalog, Invocation
from partita_services.functions.function_records import EventInvokeRecord, QueuedEvent
from partita_services.functions.function_store import (
    EVENTS,
    FunctionStore,
    event_invokes_of,
)
from partita_services.functions.message_sinks import SendFailed
from partita_services.iso_time import iso_time

logger = logging.getLogger(__name__)

RETRIES, AGE_SECONDS = 2, 21_600
RETRY_SECONDS = (60.0, 120.0)
"""The pauses before the second and the third attempt. (Lambda guide, "Error handling for
asynchronous invocation")"""
THROTTLED_SECONDS, THROTTLED_SECONDS_MAX = 1.0, 300.0
SEND_SECONDS, SEND_SECONDS_MAX = 1.0, 300.0
REST_SECONDS = 5.0
"""The pause after the database did not answer."""
SUCCESS, EXHAUSTED, TOO_OLD = "Success", "RetriesExhausted", "EventAgeExceeded"


class InvocationQueue:
    """`time_scale` speeds up the pauses between attempts, for tests."""

    def __init__(
        self,
        store: FunctionStore,
        catalog: FunctionCatalog,
        destinations: Destinations,
        clock: Clock,
        time_scale: float = 1.0,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._destinations = destinations
        self._clock = clock
        self._time_scale = time_scale
        self._handling = BackgroundTasks()

    async def open(self) -> None:
        for event in await self._store.all(EVENTS, QueuedEvent):
            self._handling.start(self._handle(event))

    async def add(self, target: QualifiedFunction, event: bytes, client_context: Any = None) -> str:
        """Returns when the event is on disk."""
        now = self._clock()
        queued = QueuedEvent(
            id=str(uuid.uuid4()),
            function=target.name,
            qualifier=target.qualifier,
            payload=event.decode(),
            accepted_at=now,
            due_at=now,
            client_context=client_context,
        )
        await self._store.save(EVENTS, queued.id, queued)
        self._handling.start(self._handle(queued))
        return queued.id

    async def _handle(self, event: QueuedEvent) -> None:
        while True:
            try:
                await self._handle_to_the_end(event)
                # After the report was sent: a kill in between sends it twice, but never loses it.
                await self._store.erase(EVENTS, event.id)
                return
            except ClientError as error:
                logger.error(
                    "The event %s for %s could not be handled, and is tried again: %s",
                    event.id,
                    event.function,
                    error,
                )
            except Exception:
                logger.exception(
                    "The event %s for %s could not be handled, and is tried again.",
                    event.id,
                    event.function,
                )
            await asyncio.sleep(REST_SECONDS)

    async def _handle_to_the_end(self, event: QueuedEvent) -> None:
        throttled = 0
        while True:
            await self._sleep(event.due_at - self._clock())
            configured = await self._configuration(event)
            if self._clock() - event.accepted_at > configured.get(
                "MaximumEventAgeInSeconds", AGE_SECONDS
            ):
                await self._report(event, configured, TOO_OLD, None)
                return
            try:
                invocation = await self._invoke(event)
            except RestError as error:
                # The function was deleted after the event was accepted.
                if error.status == 404:
                    logger.warning("An event was dropped: %s", error.message)
                    return
                # This is not an attempt, because the function was not called.
                throttled += 1
                event.due_at = self._clock() + min(
                    THROTTLED_SECONDS * 2.0**throttled, THROTTLED_SECONDS_MAX
                )
                continue
            event.attempts += 1
            if invocation.outcome.error is None:
                await self._report(event, configured, SUCCESS, invocation)
                return
            retries = configured.get("MaximumRetryAttempts", RETRIES)
            if event.attempts > retries:
                await self._report(event, configured, EXHAUSTED, invocation)
                return
            event.due_at = self._clock() + RETRY_SECONDS[event.attempts - 1] / self._time_scale
            await self._store.save(EVENTS, event.id, event)

    async def _invoke(self, event: QueuedEvent) -> Invocation:
        return await self._catalog.invoke(
            QualifiedFunction(event.function, event.qualifier),
            event.payload.encode(),
            event.id,
            event.client_context,
        )

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def _configuration(self, event: QueuedEvent) -> dict[str, Any]:
        partition = event_invokes_of(event.function)
        record = await self._store.find(partition, event.qualifier, EventInvokeRecord)
        return {} if record is None else record.configuration

    async def _report(
        self,
        event: QueuedEvent,
        configured: dict[str, Any],
        condition: str,
        invocation: Invocation | None,
    ) -> None:
        kind = "OnSuccess" if condition == SUCCESS else "OnFailure"
        arn = configured.get("DestinationConfig", {}).get(kind, {}).get("Destination")
        if arn:
            await self._send(event, arn, _record(event, condition, invocation, self._clock()))
        if condition == SUCCESS:
            return
        if (dead_letters := await self._dead_letters(event)) is not None:
            await self._send(event, dead_letters, event.payload.encode())
        elif not arn:
            logger.error("The function %s failed, and its event was given up.", event.function)

    async def _dead_letters(self, event: QueuedEvent) -> str | None:
        try:
            version = await self._catalog.version(
                QualifiedFunction(event.function, event.qualifier)
            )
        except RestError:
            return None
        arn: str | None = version.configuration.get("DeadLetterConfig", {}).get("TargetArn")
        return arn

    async def _send(self, event: QueuedEvent, destination: str, message: bytes) -> None:
        refusals = 0
        while True:
            try:
                role = await self._catalog.role_of(event.function)
                await self._destinations.acting_for(role).send(destination, message, event.id)
            except SendFailed as error:
                refusals += 1
                logger.error(
                    "The destination of %s did not accept a record; it is sent again: %s.",
                    event.function,
                    error,
                )
                await asyncio.sleep(min(SEND_SECONDS * 2.0**refusals, SEND_SECONDS_MAX))
            else:
                return

    async def close(self) -> None:
        await self._handling.close()


def _record(event: QueuedEvent, condition: str, invocation: Invocation | None, now: float) -> bytes:
    """The record for a destination. (Lambda guide, "Capturing records of Lambda asynchronous
    invocations")"""
    record: dict[str, Any] = {
        "version": "1.0",
        "timestamp": iso_time(now),
        "requestContext": {
            "requestId": event.id,
            "functionArn": function_arns.function_arn(event.function, event.qualifier),
            "condition": condition,
            "approximateInvokeCount": event.attempts,
        },
        "requestPayload": msgspec.Raw(event.payload.encode()),
    }
    if invocation is not None:
        outcome = invocation.outcome
        context: dict[str, Any] = {"statusCode": 200, "executedVersion": invocation.version}
        if outcome.error is not None:
            context["functionError"] = "Unhandled"
        record |= {"responseContext": context, "responsePayload": msgspec.Raw(outcome.payload)}
    return msgspec.json.encode(record)
