"""Samples of a server's /metrics page, and what happened between two samples."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')

Labels = dict[str, str]
Series = dict[tuple[str, str], float]
"""Values by two labels, such as an operation and a bucket."""


@dataclass(slots=True)
class MetricsSample:
    """The values of all metrics at one time. `latencies` count the requests up to each bound."""

    uptime_seconds: float
    mode: str
    requests: dict[str, float]
    refused: dict[str, float]
    """Requests with a status from 400 to 499, which are the client's fault."""
    failed: dict[str, float]
    """Requests with a status of 500 or more, which are the server's fault."""
    seconds: dict[str, float]
    latencies: Series
    consumed: dict[tuple[str, str, str], float]
    """Consumed units by table, index and kind (read or write); likewise the next two."""
    throttled: dict[tuple[str, str, str], float]
    entitled: dict[tuple[str, str, str], float]
    hot_partitions: dict[tuple[str, str, str], float]
    """Loads of hot partitions by table, index and number."""


def read_sample(text: str) -> MetricsSample:
    values: defaultdict[str, list[tuple[Labels, float]]] = defaultdict(list)
    for name, labels, value in _parsed(text):
        values[name].append((labels, value))
    requests: defaultdict[str, float] = defaultdict(float)
    refused: defaultdict[str, float] = defaultdict(float)
    failed: defaultdict[str, float] = defaultdict(float)
    for labels, count in values["partita_requests_total"]:
        requests[labels["operation"]] += count
        if labels["code"] != "200":
            kind = failed if labels["code"] >= "500" else refused
            kind[labels["operation"]] += count

    def by_kind(name: str, last: str = "kind") -> dict[tuple[str, str, str], float]:
        return {
            (labels["table"], labels["index"], labels[last]): value
            for labels, value in values[name]
        }

    return MetricsSample(
        uptime_seconds=next((value for _, value in values["partita_uptime_seconds"]), 0.0),
        mode=next((labels["mode"] for labels, _ in values["partita_capacity_mode"]), "off"),
        requests=dict(requests),
        refused=dict(refused),
        failed=dict(failed),
        seconds={
            labels["operation"]: value for labels, value in values["partita_request_seconds_sum"]
        },
        latencies={
            (labels["operation"], labels["le"]): value
            for labels, value in values["partita_request_seconds_bucket"]
        },
        consumed=by_kind("partita_consumed_units_total"),
        throttled=by_kind("partita_throttled_units_total"),
        entitled=by_kind("partita_entitled_units"),
        hot_partitions=by_kind("partita_hot_partition_load", "partition"),
    )


def since_start(sample: MetricsSample) -> MetricsSample:
    """Returns a sample with zeros, to compare the first sample of a server with."""
    return MetricsSample(0.0, sample.mode, {}, {}, {}, {}, {}, {}, {}, {}, {})


def percentile_seconds(
    before: MetricsSample, after: MetricsSample, operation: str, percent: float
) -> float | None:
    """Returns the bound of seconds that a percentage of an operation's requests stayed below."""
    counts = [
        (float(bound), count - before.latencies.get((name, bound), 0.0))
        for (name, bound), count in after.latencies.items()
        if name == operation
    ]
    total = max((count for _, count in counts), default=0.0)
    if not total:
        return None
    return next(bound for bound, count in sorted(counts) if count >= total * percent / 100)


def _parsed(text: str) -> Iterator[tuple[str, Labels, float]]:
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match and not line.startswith("#"):
            yield match.group(1), dict(LABEL.findall(match.group(2) or "")), float(match.group(3))
