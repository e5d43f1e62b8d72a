"""Parts of the service in this process: each does its work until told to stop.

Parts know each other by the stream and the tables only, so they can run in one process or in many,
and be killed one by one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from partita.apps.pagehits import tables
from partita.apps.pagehits.access import Access
from partita.apps.pagehits.access_logs import import_files
from partita.apps.pagehits.api import Api
from partita.apps.pagehits.counter import Counter
from partita.apps.pagehits.pages import add_dashboard, add_script
from partita.apps.pagehits.processor import Processor
from partita.apps.pagehits.settings import Settings
from partita.apps.pagehits.spam.quarantine import Quarantine
from partita.apps.pagehits.spam.routes import add_quarantine_routes
from partita.apps.pagehits.storing import Storing
from partita.client import Client, ClientError
from partita.server.http.web import Request, Response, Web, json_response

logger = logging.getLogger(__name__)

PROCESSOR, COUNTER, CONSUMER, API = "processor", "counter", "consumer", "api"
PARTS = (PROCESSOR, COUNTER, CONSUMER, API)
RETRY_SECONDS = 1.0
CONNECTIONS = 16

Work = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


async def run_parts(
    settings: Settings,
    endpoint: str | None,
    parts: Sequence[str],
    host: str,
    port: int,
    say: Callable[[str], None],
    token: str | None = None,
) -> None:
    """Some parts in this process, until SIGTERM or Ctrl-C."""
    client = Client(endpoint, connections=CONNECTIONS)
    await tables.create(client, settings)
    access = Access(token, host)
    web = Web()
    web.add("GET", "/health", _health)
    works: list[Work] = []
    screen = None
    if PROCESSOR in parts:
        processor = Processor(client, settings, access)
        await processor.start()
        processor.add_routes(web)
        add_script(web)
        works.append(processor.run)
        screen = processor.screen
    if API in parts:
        api = Api(client, settings)
        await api.refresh()
        api.add_routes(web, access)
        add_dashboard(web, access)
        works.append(api.run)
    if COUNTER in parts:
        works.append(Counter(client, settings).run)
    if CONSUMER in parts:
        works.append(Storing(client, settings).run)
    if API in parts or PROCESSOR in parts:
        quarantine = Quarantine.of(client, settings.spam, settings.stream)
        add_quarantine_routes(web, access, quarantine, screen)
    stop = asyncio.Event()
    tasks = [asyncio.create_task(_go_on(work, stop)) for work in works]
    await web.serve(
        host, port, lambda url: say(f"Page hits ({', '.join(parts)}) are ready on {url}")
    )
    stop.set()
    await asyncio.gather(*tasks)
    await client.close()


async def import_logs(
    paths: Sequence[Path], settings: Settings, endpoint: str, say: Callable[[str], None]
) -> None:
    """Through a processor of our own, to the same stream."""
    client = Client(endpoint, connections=CONNECTIONS)
    await tables.create(client, settings)
    processor = Processor(client, settings)
    await processor.start()
    await import_files(paths, settings, processor, say)
    await client.close()


async def _go_on(work: Work, stop: asyncio.Event) -> None:
    """A part that loses the database waits for it, and begins again."""
    while not stop.is_set():
        try:
            await work(stop)
        except ClientError as error:
            logger.warning("Trying again in %s s: %s", RETRY_SECONDS, error)
        except Exception:
            logger.exception("Something unexpected happened; trying again")
        if not stop.is_set():
            await asyncio.sleep(RETRY_SECONDS)


async def _health(request: Request) -> Response:
    return json_response({"status": "ok"})
