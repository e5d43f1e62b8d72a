"""Calls the consumer: in this process, or as a function of the database's server.

The function is called as Kinesis Analytics calls its destination (chapter 6.3 of the thesis). A
function that fails or is killed may have stored some of its records. All of them are sent again,
because storing a record twice changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from page_hit_counter.monitoring.service_figures import ServiceFigures
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.storing.window_consumer import DELIVERY_FAILED, deliver
from partita.client import Client
from partita.client.lambda_invoke import invoke
from partita.foundation.clock import Clock, system_clock

logger = logging.getLogger(__name__)

Record = dict[str, Any]
Deliver = Callable[[list[Record]], Awaitable[dict[str, Any]]]
"""Takes the records of a part of a window, and returns the result of each."""


def in_process(
    client: Client,
    settings: PageHitSettings,
    clock: Clock = system_clock,
    figures: ServiceFigures | None = None,
) -> Deliver:
    async def send(records: list[Record]) -> dict[str, Any]:
        event = {"records": records}
        return await deliver(
            client, settings, event, has_whole_windows=False, clock=clock, figures=figures
        )

    return send


def by_function(client: Client, settings: PageHitSettings) -> Deliver:
    """Returns a way to call the function, which keeps its figures itself."""

    async def send(records: list[Record]) -> dict[str, Any]:
        event = orjson.dumps({"records": records, "isPartial": True})
        invoked = await invoke(client, settings.consumer_function, event)
        if not invoked.is_error:
            answer: dict[str, Any] = orjson.loads(invoked.payload)
            return answer
        logger.warning("The consumer failed, and is called again: %.500s", invoked.payload)
        failed = [{"recordId": r["recordId"], "result": DELIVERY_FAILED} for r in records]
        return {"records": failed}

    return send
