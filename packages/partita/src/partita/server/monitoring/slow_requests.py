"""The slowest and the most expensive requests of the last 15 minutes, shown at `/requests`.

The cost of a request is only known while capacity is measured: then the ledger reports the units
here. Of a request, only names, keys and expressions are shown, never items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappush, heapreplace
from typing import Any, Final

import msgspec

from partita.errors import DynamoDBError
from partita.foundation.clock import Clock, system_clock
from partita.server.protocol import json_codec

MINUTES_KEPT: Final = 15
KEPT_A_MINUTE: Final = 10
SHOWN: Final = 20
BODY_BYTES_MAX: Final = 64 * 1024
TEXT_CHARS_MAX: Final = 300
TABLES_SHOWN: Final = 5
TEXTS: Final = (
    "IndexName",
    "KeyConditionExpression",
    "FilterExpression",
    "UpdateExpression",
    "ConditionExpression",
    "Statement",
)
"""Members of a request that are shown unchanged."""


class RequestCost:
    """The capacity units of one request."""

    __slots__ = ("units",)

    def __init__(self) -> None:
        self.units = 0.0


class SlowRequest:
    """A finished request that is slow or expensive enough to be remembered."""

    __slots__ = ("at", "body", "operation", "seconds", "size", "status", "units")

    def __init__(
        self, at: float, operation: str, status: int, seconds: float, units: float, body: bytes
    ) -> None:
        self.at = at
        self.operation = operation
        self.status = status
        self.seconds = seconds
        self.units = units
        self.size = len(body)
        self.body = body if len(body) <= BODY_BYTES_MAX else b""


class RequestRanking:
    """The requests with the largest values in each of the last minutes."""

    def __init__(self) -> None:
        self.bound = 0.0
        """Requests up to this value are not among the largest of the current minute."""
        self._minute = -1
        self._count = 0
        self._heap: list[tuple[float, int, SlowRequest]] = []
        self._minutes: deque[tuple[int, list[tuple[float, int, SlowRequest]]]] = deque()

    def turn(self, minute: int) -> None:
        """Begins a new minute if the last one is over, and forgets minutes that are too old."""
        if minute != self._minute:
            self._minute, self._heap, self.bound = minute, [], 0.0
            self._minutes.append((minute, self._heap))
        while self._minutes and self._minutes[0][0] <= minute - MINUTES_KEPT:
            self._minutes.popleft()

    def add(self, value: float, noted: SlowRequest) -> None:
        self._count += 1
        entry = (value, self._count, noted)
        if len(self._heap) < KEPT_A_MINUTE:
            heappush(self._heap, entry)
        else:
            heapreplace(self._heap, entry)
        if len(self._heap) == KEPT_A_MINUTE:
            self.bound = self._heap[0][0]

    def largest(self) -> list[SlowRequest]:
        entries = [entry for _, heap in self._minutes for entry in heap]
        return [entry[2] for entry in sorted(entries, reverse=True)[:SHOWN]]


NO_COST: Final = RequestCost()


class SlowRequests:
    """Remembers the slowest and the most expensive requests, minute by minute."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self.is_counting = False
        self._clock = clock
        self._cost = NO_COST
        self._slow, self._costly = RequestRanking(), RequestRanking()
        self._turned_at = 0.0

    def count_units(self) -> Callable[[float], None]:
        """Returns the function by which the ledger reports the units of the current request."""
        self.is_counting = True
        return self._spend

    def _spend(self, units: float) -> None:
        self._cost.units += units

    def begin(self) -> RequestCost:
        """Returns the cost of the request that is decided next; it fills while that runs."""
        if not self.is_counting:
            return NO_COST
        self._cost = RequestCost()
        return self._cost

    def finish(
        self, operation: str, status: int, seconds: float, cost: RequestCost, body: bytes
    ) -> None:
        units = cost.units
        if seconds <= self._slow.bound and units <= self._costly.bound and not self._is_stale():
            return
        now = self._clock()
        self._turned_at = now
        for ranking in (self._slow, self._costly):
            ranking.turn(int(now // 60))
        noted = SlowRequest(now, operation, status, seconds, units, body)
        if seconds > self._slow.bound:
            self._slow.add(seconds, noted)
        if units > self._costly.bound:
            self._costly.add(units, noted)

    def _is_stale(self) -> bool:
        """True when the bounds belong to a minute that is over."""
        return self._clock() // 60 != self._turned_at // 60

    def page(self) -> bytes:
        minute = int(self._clock() // 60)
        for ranking in (self._slow, self._costly):
            ranking.turn(minute)
        return msgspec.json.encode(
            {
                "Minutes": MINUTES_KEPT,
                "CountsUnits": self.is_counting,
                "Slowest": [_shown(noted) for noted in self._slow.largest()],
                "Costliest": [_shown(noted) for noted in self._costly.largest()],
            }
        )


def _shown(noted: SlowRequest) -> dict[str, Any]:
    return {
        "At": round(noted.at, 3),
        "Operation": noted.operation,
        "Status": noted.status,
        "Milliseconds": round(noted.seconds * 1000, 3),
        "Units": noted.units,
        "RequestBytes": noted.size,
        **_shown_request(noted.body),
    }


def _shown_request(body: bytes) -> dict[str, Any]:
    """Returns the names, keys and expressions of a request, which may be malformed."""
    try:
        request = json_codec.decode(body) if body else {}
    except DynamoDBError:
        return {}
    if not isinstance(request, dict):
        return {}
    shown: dict[str, Any] = {}
    tables = _tables(request)
    if tables:
        shown["Tables"] = tables[:TABLES_SHOWN]
    if isinstance(request.get("Key"), dict):
        shown["Key"] = request["Key"]
    for name in TEXTS:
        text = request.get(name)
        if isinstance(text, str):
            shown[name] = text[:TEXT_CHARS_MAX]
    return shown


def _tables(request: dict[str, Any]) -> list[str]:
    if isinstance(request.get("TableName"), str):
        return [request["TableName"]]
    if isinstance(request.get("RequestItems"), dict):
        return sorted(request["RequestItems"])
    actions = request.get("TransactItems")
    if not isinstance(actions, list):
        return []
    # {"Put": {"TableName": ...}}: the only member of an action has its parameters.
    members = [value for action in actions if isinstance(action, dict) for value in action.values()]
    names = (member.get("TableName") for member in members if isinstance(member, dict))
    return sorted({name for name in names if isinstance(name, str)})
