"""Limits against abuse: wrong signatures, requests, bytes and connections per key or address.

Wrong signatures are counted per address. When an address has had too many, requests from there are
refused unread for a while. Exempt are keys that have signed correctly from this address before:
many people may share an address, and one of them must not lock out the others. Only the id of such
a key is remembered, not its signature or a decision, because the scope of a signature ends at
midnight and policies may change. A key that was disabled meanwhile is refused by its id, before
anything is hashed.

So an attacker at the same address may use the id of such a key and have every guess verified. This
is accepted: a guess costs one hash of bytes that have been received anyway, secrets are too long to
be guessed, and a limit would lock out the owner of the key, whom only the signature distinguishes
from the attacker.

Requests are counted per key, bytes per key and per address.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Final, NamedTuple, NoReturn

from partita.errors import ThrottlingException
from partita.foundation.prometheus_text import MetricFamily, counter

FAILURES_MAX: Final = 60
"""The number of wrong signatures that one address may send in a minute."""
WINDOW_SECONDS: Final = 60.0
KNOWN_MAX: Final = 10_000
"""The largest number of addresses and keys that are remembered."""
RATE_EXCEEDED: Final = "Rate exceeded"
TOO_MANY_FAILURES: Final = "Rate exceeded: too many requests with a wrong signature"


class AbuseLimitSettings(NamedTuple):
    failures_max: int = FAILURES_MAX
    requests_max: int = 0
    """Requests per second of one key; 0 means no limit."""
    connections_max: int = 0
    """Open connections of one address; 0 means no limit."""
    bytes_max: int = 0
    """Bytes per second in the bodies of one key or one address; 0 means no limit."""


class RateWindow:
    """Counts per name within a period. When there are too many names, the oldest are forgotten."""

    __slots__ = ("_counts", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._counts: dict[str, tuple[float, int]] = {}

    def count(self, name: str, now: float) -> int:
        """Returns the count since the period of this name began."""
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
        """Pairs of an address and the id of a key that has signed correctly there, in order of
        their last use."""
        self._requests = RateWindow(1.0)
        self._bytes = RateWindow(1.0)
        self.counts_requests = self._settings.requests_max > 0
        self.counts_bytes = self._settings.bytes_max > 0
        self.refused_total = 0
        self.failures_total = 0

    def is_closed(self, address: str, access_key_id: str) -> bool:
        """True if an address has sent too many wrong signatures, and the key has never signed
        correctly from there."""
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
        """Counts a request whose signature is right. Raises if its key exceeds the limit."""
        if self._requests.add(access_key_id, monotonic()) > self._settings.requests_max:
            self.refused_total += 1
            raise ThrottlingException(RATE_EXCEEDED)

    def check_bytes(self, name: str, size: int) -> None:
        """Counts the bytes of a key or an address. Raises if the limit was exceeded before.

        So a single request may be larger than the limit; later ones must wait.
        """
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
