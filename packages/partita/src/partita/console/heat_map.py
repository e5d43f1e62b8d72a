"""The heat map's figures: the counters of /metrics, which `partita top` shows too, as JSON."""

from __future__ import annotations

from typing import Any

from partita.server.monitoring.metrics_samples import read_sample


def sample(metrics: bytes) -> dict[str, Any]:
    """Returns the counters since the server started; the page computes the differences."""
    counters = read_sample(metrics.decode())
    return {
        "UptimeSeconds": counters.uptime_seconds,
        "CapacityMode": counters.mode,
        "Operations": [
            {
                "Name": name,
                "Requests": count,
                "Refused": counters.refused.get(name, 0.0),
                "Failed": counters.failed.get(name, 0.0),
                "Seconds": counters.seconds.get(name, 0.0),
                "Latencies": sorted(
                    (float(bound), counted)
                    for (operation, bound), counted in counters.latencies.items()
                    if operation == name and bound != "+Inf"
                ),
            }
            for name, count in sorted(counters.requests.items())
        ],
        "Units": [
            {
                "Table": table,
                "Index": index,
                "Kind": kind,
                "Consumed": consumed,
                "Throttled": counters.throttled.get((table, index, kind), 0.0),
                "Entitled": counters.entitled.get((table, index, kind), 0.0),
            }
            for (table, index, kind), consumed in sorted(counters.consumed.items())
        ],
    }
