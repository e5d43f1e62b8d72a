"""Against abuse: how many wrong signatures, requests, bytes and connections one key or address may
have.

Wrong signatures count per address. Beyond their number, an address is closed to strangers: they are
refused unread until a while has passed. Keys that were right from there before are verified all the
same, for many people may share an address, and one of them must not lock the others out. Whether a
key was right is remembered by its id, and not by what it was right with: a signature's scope ends
at midnight, and decisions are void when policies change. A key that was disabled meanwhile is
refused by its id, before anything is hashed.

Whoever guesses with the id of such a key from its own address is verified each time, too. That
costs one hash of bytes that have been received already, and a limit there would lock out the owner,
whom nothing but the signature tells from the one who guesses. Secrets are too long to be guessed.

Requests count per key, bytes per key and address.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Final, NamedTuple, NoReturn

from partita.errors import ThrottlingException
from partita.foundation.prometheus_text import MetricFamily, counter

FAILURES_MAX: Final = 60
"""Wrong signatures a minute, of an address."""
WINDOW_SECONDS: Final = 60.0
KNOWN_MAX: Final = 10_000
"""Addresses and keys that are counted at once."""
RATE_EXCEEDED: Final = "Rate exceeded"
TOO_MANY_FAILURES: Final = "Rate exceeded: too many requests with a wrong signature"


class AbuseLimitSettings(NamedTuple):
    failures_max: int = FAILURES_MAX
    requests_max: int = 0
    """A second, of one key; 0 is without limit."""
    connections_max: int = 0
    """At once, of one address; 0 is without limit."""
    bytes_max: int = 0
    """A second, in bodies of requests of one key or address; 0 is without limit."""


class RateWindow:
    """Counts by name, which start anew after a while; the oldest are forgotten first."""

    __slots__ = ("_counts", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._counts: dict[str, tuple[float, int]] = {}

    def count(self, name: str, now: float) -> int:
        """So many since the window of that name began."""
        began, count = self._counts.get(name, (now, 0))
        return 0 if now - began > self._seconds else count

    def add(self, name: str, now: float, amount: int = 1) -> int:
        began, count = self._counts.get(name, (now, 0))
        if now - began > self._seconds:
            began, count = now, 0
        if name not in self._counts and len(self._counts) >= KNOWN_MAX:
            del self._counts[next(iter(self._counts))]
        self._counts[name] = (began, count + amount)
        return count + amount


class AbuseLimits:
    def __init__(self, settings: AbuseLimitSettings | None = None) -> None:
        self._settings = settings or AbuseLimitSettings()
        self._failures = RateWindow(WINDOW_SECONDS)
        self._right: dict[tuple[str, str], None] = {}
        """Addresses and ids of keys whose signature was right, those used last at the end."""
        self._requests = RateWindow(1.0)
        self._bytes = RateWindow(1.0)
        self.counts_requests = self._settings.requests_max > 0
        self.counts_bytes = self._settings.bytes_max > 0
        self.refused_total = 0
        self.failures_total = 0

    def is_closed(self, address: str, access_key_id: str) -> bool:
        """Whether too many signatures from an address were wrong, and the key was never right."""
        failures = self._failures.count(address, monotonic())
        return (
            failures >= self._settings.failures_max and (address, access_key_id) not in self._right
        )

    def refuse_unread(self) -> NoReturn:
        self.refused_total += 1
        raise ThrottlingException(TOO_MANY_FAILURES)

    def note_right(self, address: str, access_key_id: str) -> None:
        pair = address, access_key_id
        self._right.pop(pair, None)
        self._right[pair] = None
        if len(self._right) > KNOWN_MAX:
            del self._right[next(iter(self._right))]

    def note_failure(self, address: str) -> None:
        self.failures_total += 1
        self._failures.add(address, monotonic())

    def check_rate(self, access_key_id: str) -> None:
        """For a request whose signature is right, where there is a limit."""
        if self._requests.add(access_key_id, monotonic()) > self._settings.requests_max:
            self.refused_total += 1
            raise ThrottlingException(RATE_EXCEEDED)

    def check_bytes(self, name: str, size: int) -> None:
        """Of a key or an address, where there is a limit. One request may be as large as it likes:
        those behind it wait."""
        now = monotonic()
        if self._bytes.count(name, now) >= self._settings.bytes_max:
            self.refused_total += 1
            raise ThrottlingException(RATE_EXCEEDED)
        self._bytes.add(name, now, size)

    def metric_families(self) -> Iterator[MetricFamily]:
        yield counter(
            "partita_wrong_signatures_total",
            "Requests with a wrong signature or key.",
            self.failures_total,
        )
        yield counter(
            "partita_limited_requests_total",
            "Requests refused by limits of keys, addresses.",
            self.refused_total,
        )
