"""One process of the service: some or all of its parts, until it is asked to stop.

Parts share only the stream and the tables, so they can run in one process or in several, and each
can be killed at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from page_hit_counter.counting.counter import VisitCounter
from page_hit_counter.delivery.delivery_stream import DeliveryStream
from page_hit_counter.lists.asset_titles import Titles
from page_hit_counter.lists.dashboard import add_dashboard
from page_hit_counter.lists.list_api import ListApi
from page_hit_counter.monitoring.pagehits_monitoring import PageHitMonitoring
from page_hit_counter.monitoring.service_figures import ServiceFigures
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.processing.access_logs import import_files
from page_hit_counter.processing.browser_script import add_script
from page_hit_counter.processing.processor import Processor
from page_hit_counter.service import registered_functions, stream_and_tables
from page_hit_counter.service.authorization import AccessControl
from page_hit_counter.spam.quarantine import Quarantine
from page_hit_counter.spam.quarantine_routes import add_quarantine_routes
from page_hit_counter.storing.consumer_calls import by_function, in_process
from page_hit_counter.storing.paced_writer import PacedWriter
from partita.client import Client, ClientError
from partita.server.http.web.web_service import WebRequest, WebResponse, WebService, json_response

logger = logging.getLogger(__name__)

PROCESSOR, COUNTER, CONSUMER, API = "processor", "counter", "consumer", "api"
DELIVERY = "delivery"
PARTS = (PROCESSOR, DELIVERY, COUNTER, CONSUMER, API)
RETRY_SECONDS = 1.0
CONNECTIONS = 16

Work = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


async def run_parts(
    settings: PageHitSettings,
    endpoint: str | None,
    parts: Sequence[str],
    host: str,
    port: int,
    say: Callable[[str], None],
    token: str | None = None,
) -> None:
    """Runs parts of the service in this process until SIGTERM or Ctrl-C."""
    client = Client(endpoint, connections=CONNECTIONS)
    await stream_and_tables.create(client, settings)
    access = AccessControl(token, host)
    web = WebService()
    web.add("GET", "/health", _health)
    figures = ServiceFigures(client, settings.state_table)
    works: list[Work] = [figures.run]
    spam_filter = None
    if PROCESSOR in parts:
        processor = Processor(client, settings, access, figures=figures)
        await processor.start()
        processor.add_routes(web)
        add_script(web)
        works.append(processor.run)
        spam_filter = processor.spam_filter
    if API in parts:
        api = ListApi(client, settings, figures=figures)
        await api.refresh()
        api.add_routes(web, access)
        add_dashboard(web, access)
        Titles(client, settings).add_routes(web, access)
        works.append(api.run)
        monitoring = PageHitMonitoring(client, settings, figures, lambda: api.progress)
        monitoring.add_routes(web, access)
        works.append(_until_stopped(monitoring.alarms.run))
    if COUNTER in parts:
        works.append(VisitCounter(client, settings).run)
    if CONSUMER in parts:
        deliver = in_process(client, settings, figures=figures)
        if settings.consumer == "function":
            await registered_functions.register_consumer(client, settings)
            deliver = by_function(client, settings)
        works.append(PacedWriter(client, settings, deliver).run)
    if DELIVERY in parts and settings.delivery.is_on:
        await registered_functions.register_delivery(client, settings)
        works.append(DeliveryStream(client, settings, figures=figures).run)
    if API in parts or PROCESSOR in parts:
        quarantine = Quarantine.of(client, settings.spam, settings.stream)
        add_quarantine_routes(web, access, quarantine, spam_filter)
    stop = asyncio.Event()
    tasks = [asyncio.create_task(_keep_running(work, stop, figures)) for work in works]
    await web.serve(
        host, port, lambda url: say(f"Page hits ({', '.join(parts)}) are ready on {url}")
    )
    stop.set()
    await asyncio.gather(*tasks)
    await client.close()


async def import_logs(
    paths: Sequence[Path], settings: PageHitSettings, endpoint: str, say: Callable[[str], None]
) -> None:
    """Puts the visits in access logs on the service's stream, through a processor of its own."""
    client = Client(endpoint, connections=CONNECTIONS)
    await stream_and_tables.create(client, settings)
    processor = Processor(client, settings)
    await processor.start()
    await import_files(paths, settings, processor, say)
    await client.close()


def _until_stopped(run: Callable[[], Coroutine[Any, Any, None]]) -> Work:
    """Returns work that runs `run` and cancels it when the service stops."""

    async def work(stop: asyncio.Event) -> None:
        task = asyncio.create_task(run())
        await stop.wait()
        task.cancel()

    return work


async def _keep_running(work: Work, stop: asyncio.Event, figures: ServiceFigures) -> None:
    """Restarts a part that fails, for example because the database cannot be reached."""
    while not stop.is_set():
        try:
            await work(stop)
        except ClientError as error:
            figures.add("partFailures")
            logger.warning("Trying again in %s s: %s", RETRY_SECONDS, error)
        except Exception:
            figures.add("partFailures")
            logger.exception("A part of the service failed unexpectedly; trying again")
        if not stop.is_set():
            await asyncio.sleep(RETRY_SECONDS)


async def _health(request: WebRequest) -> WebResponse:
    return json_response({"status": "ok"})
