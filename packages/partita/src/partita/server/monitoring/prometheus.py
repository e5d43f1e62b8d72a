"""Figures in the text format that Prometheus reads, and the requests of a service among them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic
from typing import NamedTuple

from partita.server.http.web import Response

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5)
RECENT_SECONDS = 60.0
RECENT_MAX = 100_000
SERVER_ERROR = 500
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


class Family(NamedTuple):
    """A figure with its samples, one for each combination of labels."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]


def gauge(name: str, text: str, value: float) -> Family:
    return Family(name, "gauge", text, [Sample(value)])


def counter(name: str, text: str, value: float) -> Family:
    return Family(name, "counter", text, [Sample(value)])


def page(families: Iterable[Family]) -> Response:
    text = "".join(f"{line}\n" for family in families for line in _lines(family))
    return Response(200, text.encode(), CONTENT_TYPE)


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for value, labels, suffix in family.samples:
        written = ",".join(f'{key}="{text.translate(ESCAPES)}"' for key, text in labels.items())
        yield f"{family.name}{suffix}{f'{{{written}}}' if written else ''} {value:.12g}"


class _Observed:
    """The requests of one operation."""

    def __init__(self) -> None:
        self.statuses: dict[int, int] = {}
        self.counts = [0] * (len(SECONDS_BOUNDS) + 1)
        self.seconds = 0.0


class Requests:
    """Requests by operation, status and time; and the last minute of them for alarms."""

    def __init__(self, prefix: str, now: Callable[[], float] = monotonic) -> None:
        self._prefix = prefix
        self._now = now
        self._observed: dict[str, _Observed] = {}
        self._recent: deque[tuple[float, float, bool]] = deque(maxlen=RECENT_MAX)

    def observe(self, operation: str, status: int, seconds: float) -> None:
        observed = self._observed.get(operation)
        if observed is None:
            observed = self._observed[operation] = _Observed()
        observed.statuses[status] = observed.statuses.get(status, 0) + 1
        observed.counts[bisect_left(SECONDS_BOUNDS, seconds)] += 1
        observed.seconds += seconds
        self._recent.append((self._now(), seconds, status >= SERVER_ERROR))

    def families(self) -> Iterator[Family]:
        yield Family(
            f"{self._prefix}_requests_total",
            "counter",
            "Requests answered, by operation and HTTP status.",
            [
                Sample(count, {"operation": operation, "code": str(status)})
                for operation, observed in sorted(self._observed.items())
                for status, count in sorted(observed.statuses.items())
            ],
        )
        yield Family(
            f"{self._prefix}_request_seconds",
            "histogram",
            "Time to answer a request.",
            [
                sample
                for operation, observed in sorted(self._observed.items())
                for sample in _histogram(operation, observed)
            ],
        )

    def readings(self) -> dict[str, float]:
        """Of the last minute; without requests there are none."""
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


def _histogram(operation: str, observed: _Observed) -> Iterator[Sample]:
    total = 0
    for bound, count in zip((*SECONDS_BOUNDS, "+Inf"), observed.counts, strict=True):
        total += count
        yield Sample(total, {"operation": operation, "le": str(bound)}, "_bucket")
    yield Sample(observed.seconds, {"operation": operation}, "_sum")
    yield Sample(total, {"operation": operation}, "_count")
