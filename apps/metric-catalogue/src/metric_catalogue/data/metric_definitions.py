"""The definition of a metric as GetMetricData needs it: the latest version, and older versions when
a query asks for a time at which they were valid."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from metric_catalogue.data.periods import TimeSpan
from metric_catalogue.data.value_cache import ValueCache
from metric_catalogue.metrics.catalogue_errors import MetricNotFound, RequestRefused
from metric_catalogue.metrics.formula import compiled, names_in
from metric_catalogue.metrics.metric import Metric, MetricVersion
from metric_catalogue.stores.catalogue import Catalogue

DEFINITIONS_MAX = 100_000


class MetricDefinition(Struct, frozen=True, gc=False):
    metric: Metric
    versions: tuple[MetricVersion, ...] | None
    """All versions in order, or None when only the latest was needed."""

    def covers(self, time: str) -> bool:
        """True when the definition includes the version that was valid at that time."""
        metric = self.metric
        return self.versions is not None or metric.latest_version == 1 or metric.updated_at <= time

    def at(self, time: str) -> MetricVersion:
        """Returns the version valid at a time; before the first version, the first."""
        if self.versions is None:
            return self.metric
        place = bisect_right(self.versions, time, key=lambda version: version.updated_at)
        return self.versions[max(place - 1, 0)]

    def references_in(self, span: TimeSpan) -> set[str]:
        """Returns every metric that a value in this span may be taken or computed from."""
        references = set()
        if (chained := self.metric.chained_at(span.start)) is not None:
            references.add(chained)
        if self.metric.is_hybrid:
            for version in self._valid_in(span):
                # The evaluation reports a formula that is not valid.
                with suppress(RequestRefused):
                    references.update(names_in(compiled(version.hybrid_formula or "")))
        return references

    def _valid_in(self, span: TimeSpan) -> list[MetricVersion]:
        if self.versions is None:
            return [self.metric]
        first = self.at(span.start)
        later = [
            version
            for version in self.versions
            if span.end is not None and first.updated_at < version.updated_at < span.end
        ]
        return [first, *later]


class MetricDefinitions:
    """The definitions of the catalogue, cached."""

    def __init__(self, cache_seconds: float, now: Callable[[], float]) -> None:
        self.cache: ValueCache[MetricDefinition] = ValueCache(cache_seconds, DEFINITIONS_MAX, now)

    def cached(self, name: str, time: str) -> MetricDefinition | None:
        definition = self.cache.get(name)
        return definition if definition is not None and definition.covers(time) else None

    async def find(self, store: Catalogue, name: str, time: str) -> MetricDefinition | None:
        """Returns a definition with the versions valid from that time on, or None when the metric
        does not exist."""
        return self.cached(name, time) or await self.load(store, name, time)

    async def load(self, store: Catalogue, name: str, time: str) -> MetricDefinition | None:
        """Reads a definition from the catalogue."""
        writes = self.cache.writes
        try:
            definition = MetricDefinition(await store.get(name), None)
            if not definition.covers(time):
                versions = tuple(await store.list_versions(name))
                definition = MetricDefinition(definition.metric, versions)
        except MetricNotFound:
            return None
        self.cache.keep(name, definition, writes, size=len(definition.versions or (1,)))
        return definition
