"""The metrics of a server: requests, connections, response caches, memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

from partita.database.execution.response_cache import ResponseCache
from partita.foundation import prometheus_text
from partita.foundation.prometheus_text import MetricFamily, PrometheusSample, gauge
from partita.server.monitoring.request_metrics import RequestMetrics

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


class ServerMetrics(RequestMetrics):
    def __init__(self, response_caches: Mapping[str, ResponseCache] = {}) -> None:
        super().__init__("partita", SECONDS_BOUNDS)
        self.connections = 0
        self._response_caches = response_caches
        self._started = monotonic()
        self.more: list[Callable[[], Iterable[MetricFamily]]] = []
        """Functions that return the metrics of other parts of the server."""

    def count_connections(self, change: int) -> None:
        self.connections += change

    def text(self) -> str:
        return prometheus_text.text(self._families())

    def _families(self) -> Iterator[MetricFamily]:
        yield from self.request_families()
        if self._response_caches:
            yield from _cache_families(self._response_caches)
        yield gauge("partita_connections", "Open client connections.", self.connections)
        uptime = round(monotonic() - self._started, 3)
        yield gauge("partita_uptime_seconds", "Time since the server started.", uptime)
        for families in self.more:
            yield from families()
        if STATM.exists():
            yield gauge("process_resident_memory_bytes", "Resident memory.", _resident_bytes())


_CACHE_METRICS: Final[tuple[tuple[str, str, str, Callable[[ResponseCache], int]], ...]] = (
    ("hits_total", "counter", "Reads answered from the response cache.", lambda cache: cache.hits),
    ("misses_total", "counter", "Reads that it had no response to.", lambda cache: cache.misses),
    (
        "evictions_total",
        "counter",
        "Responses evicted for newer ones.",
        lambda cache: cache.evictions,
    ),
    ("entries", "gauge", "Responses in the response cache.", len),
    ("bytes", "gauge", "Memory that they take, about.", lambda cache: cache.size_bytes),
)


def _cache_families(caches: Mapping[str, ResponseCache]) -> Iterator[MetricFamily]:
    for name, kind, help_text, value in _CACHE_METRICS:
        yield MetricFamily(
            f"partita_response_cache_{name}",
            kind,
            help_text,
            [
                PrometheusSample(value(cache), {"operation": operation})
                for operation, cache in caches.items()
            ],
        )


def _resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
