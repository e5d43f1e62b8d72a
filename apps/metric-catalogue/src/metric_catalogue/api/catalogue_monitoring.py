"""Monitoring: metrics for Prometheus, the progress of a migration, and the readings of alarms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from metric_catalogue.api.api_messages import refusal
from metric_catalogue.data.metric_data_service import MetricDataService
from metric_catalogue.data.value_cache import ValueCache
from metric_catalogue.metrics.catalogue_errors import CatalogueError
from metric_catalogue.stores.catalogue_modes import Mode, ModeWatch
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue
from metric_catalogue.stores.mariadb.metric_rows import IN_MIGRATION, MIGRATED, NOT_MIGRATED
from partita.foundation.prometheus_text import MetricFamily, PrometheusSample, counter, gauge
from partita.server.http.web.web_service import WebRequest, WebResponse, json_response
from partita.server.monitoring.web_service_metrics import WebServiceMetrics, page

PREFIX = "partita_catalogue"
MEASURES = {
    "requests_per_second",
    "failed_share",
    "p99_ms",
    "takes_writes",
    "not_migrated",
    "migrated_share",
}
"""The readings that an alarm can watch."""
SCRAPERS = ("text/plain", "application/openmetrics-text")


class CatalogueMonitoring:
    def __init__(
        self,
        watch: ModeWatch,
        mariadb: MariaDBCatalogue | None,
        data: MetricDataService | None,
    ) -> None:
        self.requests = WebServiceMetrics(PREFIX)
        self._watch = watch
        self._mariadb = mariadb
        self._data = data

    async def prometheus(self, request: WebRequest) -> WebResponse:
        try:
            states = await self._states()
        except CatalogueError:
            # The other figures are needed most while a database is down.
            states = None
        return page(self._families(states or {}))

    async def migration(self, request: WebRequest) -> WebResponse:
        try:
            states = await self._states()
        except CatalogueError as error:
            return refusal(error)
        progress: dict[str, object] = {"mode": self._watch.mode}
        if states is not None:
            progress |= {
                "metrics": sum(states.values()),
                "notMigrated": states.get(NOT_MIGRATED, 0),
                "inMigration": states.get(IN_MIGRATION, 0),
                "migrated": states.get(MIGRATED, 0),
                "migratedShare": _migrated_share(states),
            }
        return json_response(progress)

    async def readings(self) -> dict[str, float]:
        readings = self.requests.readings() | {"takes_writes": float(self._watch.is_current)}
        try:
            states = await self._states()
        except CatalogueError:
            states = None
        if states is not None:
            readings["not_migrated"] = float(sum(states.values()) - states.get(MIGRATED, 0))
            readings["migrated_share"] = _migrated_share(states)
        return readings

    async def _states(self) -> dict[str, int] | None:
        """Counts metrics by the state of their migration. Returns None once the catalogue is in
        DynamoDB alone."""
        if self._mariadb is None or self._watch.mode == Mode.DYNAMODB:
            return None
        return await self._mariadb.count_by_state()

    def _families(self, states: Mapping[str, int]) -> Iterator[MetricFamily]:
        yield from self.requests.families()
        modes = [PrometheusSample(mode == self._watch.mode, {"mode": mode}) for mode in Mode]
        yield MetricFamily(f"{PREFIX}_mode", "gauge", "1 for the mode of this server.", modes)
        text = "Whether this server takes writes."
        yield gauge(f"{PREFIX}_takes_writes", text, self._watch.is_current)
        if states:
            samples = [
                PrometheusSample(count, {"state": state}) for state, count in sorted(states.items())
            ]
            text = "Metrics in MariaDB, by the state of their migration."
            yield MetricFamily(f"{PREFIX}_metrics", "gauge", text, samples)
        if self._data is not None:
            yield from _cache_families("definitions", self._data.definitions.cache)
            yield from _cache_families("values", self._data.values.cache)


def _cache_families(what: str, cache: ValueCache[Any]) -> Iterator[MetricFamily]:
    name = f"{PREFIX}_cached_{what}"
    yield counter(f"{name}_hits_total", f"Reads of {what} from the cache.", cache.hits)
    yield counter(f"{name}_misses_total", f"Reads of {what} from a database.", cache.misses)


def _migrated_share(states: Mapping[str, int]) -> float:
    total = sum(states.values())
    return states.get(MIGRATED, 0) / total if total else 1.0


def is_scrape(request: WebRequest) -> bool:
    """True when the request comes from Prometheus, which accepts only its own formats."""
    accepted = request.header(b"accept") or b""
    return any(accepted.startswith(kind.encode()) for kind in SCRAPERS)
