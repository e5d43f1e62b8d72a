"""Serves `/metrics` for Prometheus, `/figures` for the dashboard, and `/alarms`; takes the readings
that alarms watch."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator

import orjson

from page_hit_counter.counting.counter_checkpoints import CountingProgress
from page_hit_counter.monitoring.service_figures import SLOT_SECONDS, ServiceFigures, Values
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.authorization import AccessControl
from partita.client import Client, ClientError
from partita.client.lambda_invoke import invoke
from partita.foundation.clock import Clock, system_clock
from partita.foundation.prometheus_text import MetricFamily, PrometheusSample, counter, gauge
from partita.server.http.web.web_service import (
    WebRequest,
    WebResponse,
    WebService,
    json_response,
    problem,
)
from partita.server.monitoring.web_service_metrics import page
from partita_services.alarms import Alarms

PREFIX = "partita_pagehits"
HOURS = 24
HOURS_MAX = 7 * 24
RECENT_SECONDS = 60.0
OVERDUE_SECONDS = 10.0
"""A window that is overdue by less does not count as late."""
COUNTERS = {
    "visits": "Visits that were valid.",
    "withheld": "Visits that the spam filter withheld, or would have.",
    "refused": "Events that were not valid visits.",
    "writeUnits": "Write units that storing rows has consumed.",
    "consumerRuns": "Runs of the consumer.",
    "consumerMs": "Milliseconds that the consumer has run.",
    "consumerFailures": "Rows that could not be stored and were tried again.",
    "listHits": "Lists that were answered from memory.",
    "listMisses": "Lists for which the database was read.",
    "deliveries": "Files or batches that were delivered to the counter.",
    "deliveryFailures": "Deliveries that failed and were tried again.",
    "partFailures": "Failures of a part, after which it started again.",
}
FAILURES = ("consumerFailures", "deliveryFailures", "partFailures")


class PageHitMonitoring:
    def __init__(
        self,
        client: Client,
        settings: PageHitSettings,
        figures: ServiceFigures,
        progress: Callable[[], CountingProgress],
        clock: Clock = system_clock,
    ) -> None:
        self._client = client
        self._settings = settings
        self._figures = figures
        self._progress = progress
        self._clock = clock
        self._recent: deque[tuple[float, Values]] = deque()
        self.alarms = Alarms(
            settings.alarms, self.readings, clock, self._invoke, settings.alarm_check_seconds
        )

    def add_routes(self, web: WebService, access: AccessControl) -> None:
        web.add("GET", "/metrics", access.internal(self.prometheus))
        web.add("GET", "/figures", access.internal(self.show_figures))
        web.add("GET", "/alarms", access.internal(self.alarms.show))

    async def prometheus(self, request: WebRequest) -> WebResponse:
        try:
            totals = await self._figures.totals()
        except ClientError:
            # The other figures are needed most while the database is down.
            totals = {}
        return page(self._families(totals))

    async def show_figures(self, request: WebRequest) -> WebResponse:
        text = dict(request.query).get("hours", str(HOURS))
        if re.fullmatch("[0-9]{1,3}", text) is None or not 1 <= int(text) <= HOURS_MAX:
            return problem(400, f"hours is a number from 1 to {HOURS_MAX}, not {text!r}.")
        now = self._clock()
        try:
            slots = await self._figures.slots(now - int(text) * 3_600)
            totals = await self._figures.totals()
        except ClientError as error:
            return problem(503, f"The figures cannot be read at the moment: {error}")
        return json_response(
            {
                "slotSeconds": SLOT_SECONDS,
                "until": now,
                "writeUnitsAllowed": self._settings.write_units,
                "lagSeconds": round(self.lag_seconds(), 3),
                "lateWindows": self.late_windows(),
                "totals": totals,
                "slots": [{"start": start, **values} for start, values in slots],
            }
        )

    def lag_seconds(self) -> float:
        """Returns how long the next window has been due. That is 0 for a counter that does not
        report its progress, such as Flink, and for one that has just started."""
        closed_until, counts = self._progress().closed_until, self._progress().counts
        if not closed_until or not counts:
            return 0.0
        shortest, lateness = self._settings.periods[0], self._settings.lateness_seconds
        due = shortest.start(closed_until - lateness) + shortest.seconds + lateness
        return max(0.0, self._clock() - due)

    def late_windows(self) -> int:
        lag = self.lag_seconds()
        seconds = self._settings.periods[0].seconds
        return 0 if lag < min(OVERDUE_SECONDS, 2 * seconds) else 1 + int(lag // seconds)

    async def readings(self) -> dict[str, float]:
        """Takes the readings of the alarms. Rates and shares are those of the last minute; without
        visits the shares are left out."""
        now, progress = self._clock(), self._progress()
        try:
            totals = await self._figures.totals()
        except ClientError:
            # The lag is known even while the database is down; the other figures stay as they were.
            totals = self._recent[-1][1] if self._recent else {}
        self._recent.append((now, totals | {name: float(n) for name, n in progress.counts.items()}))
        while self._recent[0][0] < now - RECENT_SECONDS:
            self._recent.popleft()
        first, last = self._recent[0][1], self._recent[-1][1]

        def since(name: str) -> float:
            return last.get(name, 0.0) - first.get(name, 0.0)

        readings = {
            "lag_seconds": self.lag_seconds(),
            "late_windows": float(self.late_windows()),
            "failures_per_minute": sum(map(since, FAILURES)),
        }
        if since("visits") > 0:
            readings["spam_share"] = since("withheld") / since("visits")
        arrived = since("counted") + since("late")
        if arrived > 0:
            readings["late_share"] = since("late") / arrived
        return readings

    async def _invoke(self, function: str, change: dict[str, object]) -> None:
        await invoke(self._client, function, orjson.dumps(change), is_event=True)

    def _families(self, totals: Values) -> Iterator[MetricFamily]:
        for name, text in COUNTERS.items():
            if name in totals:
                yield counter(f"{PREFIX}_{_snake(name)}_total", text, totals[name])
        progress = self._progress()
        yield MetricFamily(
            f"{PREFIX}_counted_total",
            "counter",
            "Visits on the stream, by outcome.",
            [PrometheusSample(n, {"outcome": name}) for name, n in sorted(progress.counts.items())],
        )
        lag = self.lag_seconds()
        yield gauge(f"{PREFIX}_lag_seconds", "How long the next window has been due.", lag)
        yield gauge(f"{PREFIX}_late_windows", "Windows that are overdue.", self.late_windows())
        yield gauge(
            f"{PREFIX}_closed_until_seconds",
            "The time up to which windows are closed.",
            progress.closed_until,
        )


def _snake(name: str) -> str:
    return re.sub("([A-Z])", lambda match: f"_{match[1].lower()}", name)
