"""Metrics in the text format that Prometheus reads: the only writer of it in this repository.

    text([gauge("partita_connections", "Open client connections.", 3)])

    # HELP partita_connections Open client connections.
    # TYPE partita_connections gauge
    partita_connections 3

(prometheus.io, "Exposition formats", version 0.0.4)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class PrometheusSample(NamedTuple):
    """One value of a metric, for one combination of labels."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""
    """What a histogram adds to the name of its metric: `_bucket`, `_sum` or `_count`."""


class MetricFamily(NamedTuple):
    """A metric with its samples, one for each combination of labels."""

    name: str
    kind: str
    help: str
    samples: Iterable[PrometheusSample]


def gauge(name: str, text: str, value: float) -> MetricFamily:
    return MetricFamily(name, "gauge", text, [PrometheusSample(value)])


def counter(name: str, text: str, value: float) -> MetricFamily:
    return MetricFamily(name, "counter", text, [PrometheusSample(value)])


def text(families: Iterable[MetricFamily]) -> str:
    """Returns a page for Prometheus, or a part of one: parts may be joined."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: MetricFamily) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for value, labels, suffix in family.samples:
        pairs = ",".join(f'{key}="{label.translate(ESCAPES)}"' for key, label in labels.items())
        yield f"{family.name}{suffix}{f'{{{pairs}}}' if pairs else ''} {_number(value)}"


def _number(value: float) -> str:
    # `g` alone would round a counter after its first million.
    return f"{value:d}" if isinstance(value, int) else f"{value:.12g}"
