"""The budget of unauthenticated requests in the audit log, and a count of events beyond it.

All refused unauthenticated requests share this budget. Otherwise an attacker with many or long
requests, even from many addresses, could push the actions of real users out of the log. Ten files
of 64 MB are kept, so at a full budget every day it takes more than a month to replace them all.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from partita.foundation.service_limits import KB, MB
from partita.server.security.abuse_limits import RateWindow

MINUTE, DAY = 60.0, 86_400.0
ADDRESSES_MAX: Final = 1000
"""The largest number of different addresses of dropped events that are counted."""
EVERYBODY: Final = ""


class AuditBudget(NamedTuple):
    lines_max: int
    bytes_max: int


OF_ADDRESS: Final = {MINUTE: AuditBudget(60, 64 * KB), DAY: AuditBudget(4000, 2 * MB)}
OF_ALL: Final = {MINUTE: AuditBudget(600, 512 * KB), DAY: AuditBudget(40_000, 16 * MB)}


class _Allowance:
    """A budget per name for one period."""

    def __init__(self, seconds: float, budget: AuditBudget) -> None:
        self._budget = budget
        self._lines, self._bytes = RateWindow(seconds), RateWindow(seconds)

    def is_used_up(self, name: str, now: float) -> bool:
        lines_max, bytes_max = self._budget
        return (
            self._lines.count(name, now) >= lines_max or self._bytes.count(name, now) >= bytes_max
        )

    def take(self, name: str, now: float, size: int) -> None:
        self._lines.add(name, now)
        self._bytes.add(name, now, size)


class UnauthenticatedBudget:
    """The budget of unauthenticated requests: per address and in total, per minute and per day."""

    def __init__(self) -> None:
        # The total is counted separately, because many addresses would displace it in a shared
        # window, which forgets the oldest names.
        self._of_address = [_Allowance(*limit) for limit in OF_ADDRESS.items()]
        self._of_all = [_Allowance(*limit) for limit in OF_ALL.items()]

    def is_used_up(self, address: str, now: float) -> bool:
        return any(allowance.is_used_up(EVERYBODY, now) for allowance in self._of_all) or any(
            allowance.is_used_up(address, now) for allowance in self._of_address
        )

    def take(self, address: str, now: float, size: int) -> None:
        """Counts a line that is written. The last line of a budget may exceed its bytes."""
        for allowance in self._of_all:
            allowance.take(EVERYBODY, now, size)
        for allowance in self._of_address:
            allowance.take(address, now, size)


class DroppedEvents:
    """Counts the events that were dropped since the last event that reported a count."""

    def __init__(self) -> None:
        self._count = 0
        self._addresses: set[str] = set()
        self._since = ""

    def add(self, address: str) -> bool:
        """Counts a dropped event. Returns True for the first one."""
        if self._count == 0:
            self._since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._count += 1
        if len(self._addresses) < ADDRESSES_MAX:
            self._addresses.add(address)
        return self._count == 1

    def take(self) -> dict[str, Any] | None:
        """Returns the counts to report and starts again, or returns None if nothing was dropped."""
        if self._count == 0:
            return None
        counts = {
            "droppedEvents": self._count,
            "addresses": len(self._addresses),
            "since": self._since,
        }
        self._count = 0
        self._addresses.clear()
        return counts
