"""What a Partita tells about itself: the counters behind `partita top`, and its partitions."""

from __future__ import annotations

from typing import Any

from partita.server.monitoring.fetching import fetch, fetch_json
from partita.server.monitoring.samples import read_sample


class Heat:
    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def sample(self) -> dict[str, Any]:
        """Counters since the server started; the page has the differences."""
        sample = read_sample(fetch(self._endpoint, "/metrics").decode())
        return {
            "UptimeSeconds": sample.uptime_seconds,
            "CapacityMode": sample.mode,
            "Operations": [
                {
                    "Name": name,
                    "Requests": count,
                    "Refused": sample.refused.get(name, 0.0),
                    "Failed": sample.failed.get(name, 0.0),
                    "Seconds": sample.seconds.get(name, 0.0),
                    "Latencies": sorted(
                        (float(bound), counted)
                        for (operation, bound), counted in sample.latencies.items()
                        if operation == name and bound != "+Inf"
                    ),
                }
                for name, count in sorted(sample.requests.items())
            ],
            "Units": [
                {
                    "Table": table,
                    "Index": index,
                    "Kind": kind,
                    "Consumed": consumed,
                    "Throttled": sample.throttled.get((table, index, kind), 0.0),
                    "Entitled": sample.entitled.get((table, index, kind), 0.0),
                }
                for (table, index, kind), consumed in sorted(sample.consumed.items())
            ],
        }

    def partitions(self, table: str) -> dict[str, Any]:
        return fetch_json(self._endpoint, "/partitions", table=table)
