"""What every operation is given."""

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
from partita.functions.catalog import Catalog
from partita.functions.destinations import Destinations
from partita.functions.mappings.mappings import Mappings
from partita.functions.packages import Packages
from partita.functions.queue import Queue
from partita.functions.schedules.scheduler import Scheduler
from partita.functions.sessions import Sessions
from partita.functions.storage.store import Store

Request = dict[str, Any]
Answer = dict[str, Any]
Item = TypeVar("Item")

PAGE_MAX = 50
"""What Lambda lists at once, unless asked for less."""


@dataclass(frozen=True, slots=True)
class Service:
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
    """Whether clients may bring code of their own."""
    changes: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while something that exists is changed."""
    under_way: set[asyncio.Task[None]] = field(default_factory=set)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)


Operation = Callable[[Service, Request], Awaitable[Answer]]


def page(
    request: Request, items: Sequence[Item], *, limit: int = PAGE_MAX, most: int = PAGE_MAX
) -> tuple[Sequence[Item], str | None]:
    """Of a sorted list, the part that a request asks for, and the marker of the next."""
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
