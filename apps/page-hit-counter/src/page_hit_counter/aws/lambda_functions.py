"""The processor, delivery, API and consumer as functions of AWS Lambda.

The first call makes settings and client, which later calls of the process share. The variable
`PAGEHITS_CONFIG` names the settings; endpoint, region and credentials come from the environment
variables that every AWS SDK reads.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

from page_hit_counter.delivery.arrivals import Arrivals
from page_hit_counter.lists.list_api import ListApi
from page_hit_counter.monitoring.service_figures import ServiceFigures
from page_hit_counter.pagehits_settings import PageHitSettings, load
from page_hit_counter.processing.processor import Processor
from page_hit_counter.storing.window_consumer import OK, deliver
from partita.client import Client, ClientError
from partita.server.http.web.web_messages import WebRequest, WebResponse

Event = dict[str, Any]
Answer = TypeVar("Answer")
Part = TypeVar("Part")
_parts: dict[Callable[..., Any], object] = {}


def processor(event: Event, context: object = None) -> dict[str, Any]:
    """Answers `POST /events` behind API Gateway."""

    async def answer(client: Client, settings: PageHitSettings) -> WebResponse:
        return await _part(Processor).post_events(request_of(event))

    return proxy_response(_run(answer))


def api(event: Event, context: object = None) -> dict[str, Any]:
    """Answers `GET /` behind API Gateway."""

    async def answer(client: Client, settings: PageHitSettings) -> WebResponse:
        api = _part(ListApi)
        await api.refresh()
        return await api.get_lists(request_of(event))

    return proxy_response(_run(answer))


def consumer(event: Event, context: object = None) -> dict[str, Any]:
    """Stores counts. It is called as Kinesis Analytics calls a destination, and answers each record
    with a result. An event with only a part of a window has `isPartial`."""

    async def store(client: Client, settings: PageHitSettings) -> dict[str, Any]:
        figures = _part(_figures)
        has_whole_windows = not event.get("isPartial")
        answer = await deliver(
            client, settings, event, has_whole_windows=has_whole_windows, figures=figures
        )
        with suppress(ClientError):
            await figures.flush()
        return answer

    return _run(store)


def stream_consumer(event: Event, context: object = None) -> dict[str, Any]:
    """Stores counts from the stream to which Flink writes them. It is called by an event source
    mapping, and returns the sequence numbers that failed (ReportBatchItemFailures)."""
    records = [
        {"recordId": record["kinesis"]["sequenceNumber"], "data": record["kinesis"]["data"]}
        for record in event["Records"]
    ]
    answer = consumer({"records": records}, context)
    failed = [result["recordId"] for result in answer["records"] if result["result"] != OK]
    return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}


def delivery(event: Event, context: object = None) -> dict[str, int]:
    """Takes visits that have arrived. It is called by a delivery stream, a bucket, a topic or a
    schedule."""
    return _run(lambda client, settings: _part(Arrivals).take(event))


def _figures(client: Client, settings: PageHitSettings) -> ServiceFigures:
    return ServiceFigures(client, settings.state_table)


def forget() -> None:
    """Makes the next call read the environment again, for tests."""
    if _environment.cache_info().currsize:
        loop, client, _ = _environment()
        loop.run_until_complete(client.close())
        loop.close()
    _environment.cache_clear()
    _parts.clear()


def _run(work: Callable[[Client, PageHitSettings], Coroutine[Any, Any, Answer]]) -> Answer:
    """Runs `work` in the event loop that all calls of this process share."""
    loop, client, settings = _environment()
    return loop.run_until_complete(work(client, settings))


def _part(part: Callable[[Client, PageHitSettings], Part]) -> Part:
    """Returns a part of the service, which the first call that needs it makes."""
    if part not in _parts:
        _, client, settings = _environment()
        _parts[part] = part(client, settings)
    return cast(Part, _parts[part])


@lru_cache(maxsize=1)
def _environment() -> tuple[asyncio.AbstractEventLoop, Client, PageHitSettings]:
    config = os.environ.get("PAGEHITS_CONFIG")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") or os.environ.get("AWS_ENDPOINT_URL")
    client = Client(endpoint or None, region=os.environ.get("AWS_REGION", "us-east-1"))
    return asyncio.new_event_loop(), client, load(Path(config) if config else None)


def request_of(event: dict[str, Any]) -> WebRequest:
    """Returns the request in a proxy event of API Gateway (payload format 1.0)."""
    query = event.get("multiValueQueryStringParameters") or {}
    target = event["path"] + ("?" + urlencode(query, doseq=True) if query else "")
    headers = {
        name.lower().encode("latin-1"): value.encode("latin-1")
        for name, value in (event.get("headers") or {}).items()
    }
    request = WebRequest(event["httpMethod"].encode(), target.encode("latin-1"), headers)
    body = event.get("body") or ""
    request.body = b64decode(body) if event.get("isBase64Encoded") else body.encode()
    return request


def proxy_response(response: WebResponse) -> dict[str, Any]:
    return {
        "statusCode": response.status,
        "headers": {"content-type": response.content_type, **(response.headers or {})},
        "body": response.body.decode(),
        "isBase64Encoded": False,
    }
