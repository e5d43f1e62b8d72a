"""The metrics of a web service: its page for Prometheus, and the last minute of its requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic

from partita.foundation import prometheus_text
from partita.foundation.prometheus_text import CONTENT_TYPE, MetricFamily
from partita.server.http.web.web_service import WebResponse
from partita.server.monitoring.request_metrics import RequestMetrics

SECONDS_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5)
RECENT_SECONDS = 60.0
RECENT_MAX = 100_000
SERVER_ERROR = 500


def page(families: Iterable[MetricFamily]) -> WebResponse:
    return WebResponse(200, prometheus_text.text(families).encode(), CONTENT_TYPE)


class WebServiceMetrics:
    """Counts requests for Prometheus, and remembers those of the last minute for alarms."""

    def __init__(self, prefix: str, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._total = RequestMetrics(prefix, SECONDS_BOUNDS)
        self._recent: deque[tuple[float, float, bool]] = deque(maxlen=RECENT_MAX)

    def observe(self, operation: str, status: int, seconds: float) -> None:
        self._total.observe(operation, status, seconds)
        self._recent.append((self._now(), seconds, status >= SERVER_ERROR))

    def families(self) -> list[MetricFamily]:
        return self._total.request_families()

    def readings(self) -> dict[str, float]:
        """Returns rate, share of failures and 99th percentile of the last minute.

        The last two are missing if there were no requests.
        """
        oldest = self._now() - RECENT_SECONDS
        while self._recent and self._recent[0][0] < oldest:
            self._recent.popleft()
        if not self._recent:
            return {"requests_per_second": 0.0}
        times = sorted(seconds for _, seconds, _ in self._recent)
        failed = sum(is_failed for _, _, is_failed in self._recent)
        return {
            "requests_per_second": len(times) / RECENT_SECONDS,
            "failed_share": failed / len(times),
            "p99_ms": 1000 * times[min(len(times) - 1, len(times) * 99 // 100)],
        }
