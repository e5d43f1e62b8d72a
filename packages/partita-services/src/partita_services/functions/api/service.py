"""The services that operations of the API use, and pages of lists."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from partita.client import Client
from partita.clock import Clock
from partita.errors import InvalidParameterValueException
from partita_services.functions.catalog import Catalog
from partita_services.functions.destinations import Destinations
from partita_services.functions.mappings.mappings import Mappings
from partita_services.functions.packages import Packages
from partita_services.functions.queue import Queue
from partita_services.functions.schedules.scheduler import Scheduler
from partita_services.functions.sessions import Sessions
from partita_services.functions.storage.store import Store

Request = dict[str, Any]
Answer = dict[str, Any]
Item = TypeVar("Item")

PAGE_MAX = 50
"""The maximum length of a page of Lambda's lists."""


@dataclass(frozen=True, slots=True)
class Service:
    """What every operation gets besides its request."""

    client: Client
    store: Store
    packages: Packages
    catalog: Catalog
    queue: Queue
    mappings: Mappings
    destinations: Destinations
    scheduler: Scheduler
    sessions: Sessions
    clock: Clock
    may_upload: bool
    """True when clients may upload code."""
    changes: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a stored record is read, changed and written."""
    under_way: set[asyncio.Task[None]] = field(default_factory=set)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background."""
        task = asyncio.create_task(work)
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)


Operation = Callable[[Service, Request], Awaitable[Answer]]


def page(
    request: Request, items: Sequence[Item], *, limit: int = PAGE_MAX, most: int = PAGE_MAX
) -> tuple[Sequence[Item], str | None]:
    """The page of a sorted list that a request asks for, and the marker of the next page."""
    start = 0
    marker = request.get("Marker") or request.get("NextToken")
    if marker is not None:
        try:
            start = int(orjson.loads(base64.b64decode(marker, validate=True)))
        except (ValueError, TypeError):
            raise InvalidParameterValueException("Invalid Marker") from None
        if start < 0:
            raise InvalidParameterValueException("Invalid Marker")
    size = min(request.get("MaxItems") or request.get("MaxResults") or limit, most)
    end = start + size
    more = base64.b64encode(orjson.dumps(end)).decode() if end < len(items) else None
    return items[start:end], more
