"""The services that operations of the API use, and pages of lists."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from partita.client import Client
from partita.errors import InvalidParameterValueException
from partita.foundation.clock import Clock
from partita_services.background_tasks import BackgroundTasks
from partita_services.functions.destinations import Destinations
from partita_services.functions.function_catalog import FunctionCatalog
from partita_services.functions.function_store import FunctionStore
from partita_services.functions.invocation_queue import InvocationQueue
from partita_services.functions.mappings.mapping_runner import Mappings
from partita_services.functions.runtime.code_packages import CodePackages
from partita_services.functions.runtime.role_sessions import RoleSessions
from partita_services.functions.schedules.scheduler import Scheduler

Request = dict[str, Any]
Answer = dict[str, Any]
Item = TypeVar("Item")

PAGE_MAX = 50
"""The maximum length of a page of Lambda's lists."""


@dataclass(frozen=True, slots=True)
class LambdaService:
    """The parts of the service that operations use."""

    client: Client
    store: FunctionStore
    packages: CodePackages
    catalog: FunctionCatalog
    queue: InvocationQueue
    mappings: Mappings
    destinations: Destinations
    scheduler: Scheduler
    sessions: RoleSessions
    clock: Clock
    may_upload: bool
    """True when clients may upload code."""
    changes: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a stored record is read, changed and written."""
    background: BackgroundTasks = field(default_factory=BackgroundTasks)


Operation = Callable[[LambdaService, Request], Awaitable[Answer]]


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
