"""What a Partita tells about itself: the counters behind `partita top`, and its partitions."""

from __future__ import annotations

from typing import Any

from partita.server.monitoring.metrics_samples import read_sample


def sample(metrics: bytes) -> dict[str, Any]:
    """Counters since the server started; the page has the differences."""
    found = read_sample(metrics.decode())
    return {
        "UptimeSeconds": found.uptime_seconds,
        "CapacityMode": found.mode,
        "Operations": [
            {
                "Name": name,
                "Requests": count,
                "Refused": found.refused.get(name, 0.0),
                "Failed": found.failed.get(name, 0.0),
                "Seconds": found.seconds.get(name, 0.0),
                "Latencies": sorted(
                    (float(bound), counted)
                    for (operation, bound), counted in found.latencies.items()
                    if operation == name and bound != "+Inf"
                ),
            }
            for name, count in sorted(found.requests.items())
        ],
        "Units": [
            {
                "Table": table,
                "Index": index,
                "Kind": kind,
                "Consumed": consumed,
                "Throttled": found.throttled.get((table, index, kind), 0.0),
                "Entitled": found.entitled.get((table, index, kind), 0.0),
            }
            for (table, index, kind), consumed in sorted(found.consumed.items())
        ],
    }
