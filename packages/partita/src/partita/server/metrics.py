"""Counters of the server, in the text format that Prometheus reads."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

from partita.database.response_cache import ResponseCache

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
SECONDS_BOUNDS: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.5,
    1,
    5,
)
STATM: Final = Path("/proc/self/statm")


class Observed:
    """The requests of one operation.

    How many had each status, how many took at most each bound, how long they took together.
    """

    __slots__ = ("counts", "seconds", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[int, int] = {}
        self.counts = [0] * (len(SECONDS_BOUNDS) + 1)
        self.seconds = 0.0


class Metrics:
    def __init__(self, response_caches: Mapping[str, ResponseCache] = {}) -> None:
        self.connections = 0
        self._response_caches = response_caches
        self._started = monotonic()
        self._observed: dict[str, Observed] = {}
        self.more: list[Callable[[], Iterator[str]]] = []
        """Lines of others."""

    def count_connections(self, change: int) -> None:
        self.connections += change

    def observe(self, operation: str, status: int, seconds: float) -> None:
        observed = self._observed.get(operation)
        if observed is None:
            observed = self._observed[operation] = Observed()
        observed.statuses[status] = observed.statuses.get(status, 0) + 1
        observed.counts[bisect_left(SECONDS_BOUNDS, seconds)] += 1
        observed.seconds += seconds

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# HELP partita_requests_total Requests answered, by operation and HTTP status."
        yield "# TYPE partita_requests_total counter"
        for operation, observed in sorted(self._observed.items()):
            for status, count in sorted(observed.statuses.items()):
                yield f'partita_requests_total{{operation="{operation}",code="{status}"}} {count}'
        yield "# HELP partita_request_seconds Time from a request's last byte to its answer."
        yield "# TYPE partita_request_seconds histogram"
        for operation, observed in sorted(self._observed.items()):
            yield from _histogram(operation, observed)
        if self._response_caches:
            yield from _cache_lines(self._response_caches)
        yield "# HELP partita_connections Open client connections."
        yield "# TYPE partita_connections gauge"
        yield f"partita_connections {self.connections}"
        yield "# HELP partita_uptime_seconds Time since the server started."
        yield "# TYPE partita_uptime_seconds gauge"
        yield f"partita_uptime_seconds {monotonic() - self._started:.3f}"
        for lines in self.more:
            yield from lines()
        if STATM.exists():
            yield "# HELP process_resident_memory_bytes Resident memory."
            yield "# TYPE process_resident_memory_bytes gauge"
            yield f"process_resident_memory_bytes {_resident_bytes()}"


def _histogram(operation: str, observed: Observed) -> Iterator[str]:
    total = 0
    for bound, count in zip((*SECONDS_BOUNDS, "+Inf"), observed.counts, strict=True):
        total += count
        yield f'partita_request_seconds_bucket{{operation="{operation}",le="{bound}"}} {total}'
    yield f'partita_request_seconds_sum{{operation="{operation}"}} {observed.seconds:.6f}'
    yield f'partita_request_seconds_count{{operation="{operation}"}} {total}'


_CACHE_METRICS: Final[tuple[tuple[str, str, str, Callable[[ResponseCache], int]], ...]] = (
    ("hits_total", "counter", "Reads answered from the response cache.", lambda one: one.hits),
    ("misses_total", "counter", "Reads that it had no response to.", lambda one: one.misses),
    ("evictions_total", "counter", "Responses evicted for newer ones.", lambda one: one.evictions),
    ("entries", "gauge", "Responses in the response cache.", len),
    ("bytes", "gauge", "Memory that they take, about.", lambda one: one.size_bytes),
)


def _cache_lines(caches: Mapping[str, ResponseCache]) -> Iterator[str]:
    for name, kind, text, value in _CACHE_METRICS:
        yield f"# HELP partita_response_cache_{name} {text}"
        yield f"# TYPE partita_response_cache_{name} {kind}"
        for operation, one in caches.items():
            yield f'partita_response_cache_{name}{{operation="{operation}"}} {value(one)}'


def _resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
