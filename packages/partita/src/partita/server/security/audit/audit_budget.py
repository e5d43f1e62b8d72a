"""How much of the audit log requests may have that nobody known has signed, and what was dropped.

Refused strangers share this, whatever they asked for: whoever sends many requests, long ones, or
from many addresses must not drive out what others have done. Ten files of 64 MB are kept, so the
lines of a day's budget take more than a month to replace them all.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from partita.foundation.service_limits import KB, MB
from partita.server.security.abuse_limits import RateWindow

MINUTE, DAY = 60.0, 86_400.0
ADDRESSES_MAX: Final = 1000
"""Addresses that are told apart among those whose lines were dropped."""
EVERYBODY: Final = ""


class AuditBudget(NamedTuple):
    lines_max: int
    bytes_max: int


OF_ADDRESS: Final = {MINUTE: AuditBudget(60, 64 * KB), DAY: AuditBudget(4000, 2 * MB)}
OF_ALL: Final = {MINUTE: AuditBudget(600, 512 * KB), DAY: AuditBudget(40_000, 16 * MB)}


class _AddressAllowance:
    """A budget of each name, over one stretch of time."""

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
    def __init__(self) -> None:
        # What all have in common is counted apart, where no number of addresses displaces it.
        self._of_address = [_AddressAllowance(*one) for one in OF_ADDRESS.items()]
        self._of_all = [_AddressAllowance(*one) for one in OF_ALL.items()]

    def is_used_up(self, address: str, now: float) -> bool:
        return any(one.is_used_up(EVERYBODY, now) for one in self._of_all) or any(
            one.is_used_up(address, now) for one in self._of_address
        )

    def take(self, address: str, now: float, size: int) -> None:
        """Counts a line that is written. The last one of a budget may go beyond its bytes."""
        for one in self._of_all:
            one.take(EVERYBODY, now, size)
        for one in self._of_address:
            one.take(address, now, size)


class DroppedEvents:
    """Lines that were not written since the last line that told of any."""

    def __init__(self) -> None:
        self._count = 0
        self._addresses: set[str] = set()
        self._since = ""

    def add(self, address: str) -> bool:
        """True for the first."""
        if self._count == 0:
            self._since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._count += 1
        if len(self._addresses) < ADDRESSES_MAX:
            self._addresses.add(address)
        return self._count == 1

    def take(self) -> dict[str, Any] | None:
        """What is to be told, once; None when nothing was dropped."""
        if self._count == 0:
            return None
        told = {
            "droppedEvents": self._count,
            "addresses": len(self._addresses),
            "since": self._since,
        }
        self._count = 0
        self._addresses.clear()
        return told
