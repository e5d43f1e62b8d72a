"""Counts of requests by operation and status, and a histogram of the time that they took."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from partita.foundation.prometheus_text import MetricFamily, PrometheusSample


class ObservedRequests:
    """The requests of one operation: how many had each status, how many took at most each bound,
    and how long they took together."""

    __slots__ = ("counts", "seconds", "statuses")

    def __init__(self, bound_count: int) -> None:
        self.statuses: dict[int, int] = {}
        self.counts = [0] * (bound_count + 1)
        self.seconds = 0.0


class RequestMetrics:
    """Counts the requests of a server. `prefix` is how the names of its metrics begin, `bounds` are
    the upper bounds of the histogram's buckets in seconds."""

    def __init__(self, prefix: str, bounds: tuple[float, ...]) -> None:
        self._prefix = prefix
        self._bounds = bounds
        self._observed: dict[str, ObservedRequests] = {}

    def observe(self, operation: str, status: int, seconds: float) -> None:
        observed = self._observed.get(operation)
        if observed is None:
            observed = self._observed[operation] = ObservedRequests(len(self._bounds))
        observed.statuses[status] = observed.statuses.get(status, 0) + 1
        observed.counts[bisect_left(self._bounds, seconds)] += 1
        observed.seconds += seconds

    def request_families(self) -> list[MetricFamily]:
        by_operation = sorted(self._observed.items())
        return [
            MetricFamily(
                f"{self._prefix}_requests_total",
                "counter",
                "Requests answered, by operation and HTTP status.",
                [
                    PrometheusSample(count, {"operation": operation, "code": str(status)})
                    for operation, observed in by_operation
                    for status, count in sorted(observed.statuses.items())
                ],
            ),
            MetricFamily(
                f"{self._prefix}_request_seconds",
                "histogram",
                "Time from a request's last byte to its answer.",
                [
                    sample
                    for operation, observed in by_operation
                    for sample in self._histogram(operation, observed)
                ],
            ),
        ]

    def _histogram(self, operation: str, observed: ObservedRequests) -> Iterator[PrometheusSample]:
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), observed.counts, strict=True):
            total += count
            yield PrometheusSample(total, {"operation": operation, "le": str(bound)}, "_bucket")
        yield PrometheusSample(round(observed.seconds, 6), {"operation": operation}, "_sum")
        yield PrometheusSample(total, {"operation": operation}, "_count")
