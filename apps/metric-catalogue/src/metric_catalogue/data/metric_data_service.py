"""GetMetricData and PutMetricData over a catalogue and a value store.

A query is answered in three steps. The service reads the definitions of the metric and of
everything that it may be computed from, level by level; then the values of the primitive metrics
among them; then it evaluates, which reads nothing. Both reads are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from time import monotonic

from metric_catalogue.data.data_messages import (
    DataPoint,
    DataQuery,
    Dimensions,
    MetricData,
    NewValue,
    StoredCount,
)
from metric_catalogue.data.exact_numbers import is_storable, rounded, text_of
from metric_catalogue.data.metric_definitions import MetricDefinition, MetricDefinitions
from metric_catalogue.data.metric_evaluation import MetricEvaluation
from metric_catalogue.data.periods import TimeSpan, period_of
from metric_catalogue.data.value_store import (
    Packed,
    StoredValue,
    ValueStore,
    count_of,
    series_of,
    texts,
    together,
    unpacked,
)
from metric_catalogue.metrics import metric_rules
from metric_catalogue.metrics.catalogue_errors import RequestRefused, no_metric
from metric_catalogue.stores.catalogue import Catalogue
from metric_catalogue.stores.dynamodb.batched_reads import BatchedReads
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables

CACHE_SECONDS = 5.0
VALUES_MAX = 10_000
"""How many values one request may read."""
METRICS_MAX = 200
"""How many metrics one value may be computed from."""


class ReadBudget:
    """Counts how many values one request may still read."""

    def __init__(self) -> None:
        self.left = VALUES_MAX

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise RequestRefused(
                f"A request may read at most {VALUES_MAX:,} values: ask for a shorter time."
            )


class MetricDataService:
    def __init__(
        self,
        reads: BatchedReads,
        tables: CatalogueTables,
        cache_seconds: float = CACHE_SECONDS,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.values = ValueStore(reads, tables, cache_seconds, now)
        self.definitions = MetricDefinitions(cache_seconds, now)

    async def get(self, store: Catalogue, query: DataQuery, budget: ReadBudget) -> MetricData:
        span = _span(query)
        series = series_of(query.dimensions)
        definitions = await self._definitions(store, query.metric, span)
        primitives = _primitives(definitions)
        _refuse_unrelated(primitives, query.dimensions)
        names = [definition.metric.name for definition in primitives]
        read = await self._read(names, series, span, budget)
        points = _as_stored(definitions[query.metric], query, span, read)
        if points is None:
            points = _evaluated(definitions, query, span, read)
        return MetricData(metric=query.metric, dimensions=query.dimensions, points=points)

    async def _read(
        self, names: Sequence[str], series: str, span: TimeSpan, budget: ReadBudget
    ) -> dict[str, Packed]:
        values = self.values
        cached = {name: values.cached(name, series, span) for name in names}
        absent = [name for name, packed in cached.items() if packed is None]
        if absent:
            read = await values.read(absent, series, span, budget.left)
            cached.update(zip(absent, read, strict=True))
        complete = {name: packed for name, packed in cached.items() if packed is not None}
        budget.spend(sum(map(count_of, complete.values())))
        return complete

    async def _definitions(
        self, store: Catalogue, name: str, span: TimeSpan
    ) -> dict[str, MetricDefinition | None]:
        """Returns the definitions of everything reached from a metric; None for a metric that does
        not exist any more."""
        definitions: dict[str, MetricDefinition | None] = {}
        missing = {name}
        while missing:
            level = {metric: self.definitions.cached(metric, span.start) for metric in missing}
            absent = [metric for metric, definition in level.items() if definition is None]
            loaded = await together(
                self.definitions.load(store, metric, span.start) for metric in absent
            )
            level.update(zip(absent, loaded, strict=True))
            definitions.update(level)
            if definitions[name] is None:
                raise no_metric(name)
            references = (d.references_in(span) for d in level.values() if d is not None)
            missing = set().union(*references) - definitions.keys()
            if len(definitions) + len(missing) > METRICS_MAX:
                raise RequestRefused(
                    f"{name} is computed from more than {METRICS_MAX} metrics: too many for a "
                    "request."
                )
        return definitions

    async def put(self, store: Catalogue, new: Iterable[NewValue]) -> StoredCount:
        stored: dict[tuple[str, str], StoredValue] = {}
        for value in new:
            checked = await self._checked(store, value)
            if (checked.metric, checked.place) in stored:
                raise RequestRefused(
                    f"{checked.metric} is given twice for {checked.time} and these dimensions."
                )
            stored[checked.metric, checked.place] = checked
        await self.values.put(list(stored.values()))
        return StoredCount(stored=len(stored))

    async def _checked(self, store: Catalogue, value: NewValue) -> StoredValue:
        time = metric_rules.cutoff_time(value.time, "time")
        definition = await self.definitions.find(store, value.metric, time)
        if definition is None:
            raise no_metric(value.metric)
        if definition.metric.is_hybrid:
            raise RequestRefused(f"{value.metric} is a hybrid metric: its values are computed.")
        _refuse_unrelated([definition], value.dimensions)
        if not is_storable(value.value) or not is_storable(value.weight) or value.weight <= 0:
            raise RequestRefused(
                f"The value of {value.metric} at {time} must be a number of at most 38 digits "
                "between 1E-130 and 1E+126, and its weight a number above 0."
            )
        return StoredValue(
            value.metric,
            series_of(value.dimensions),
            time,
            value.value,
            value.weight,
            definition.at(time).version,
        )

    def forget(self, name: str) -> None:
        """Forgets the definition of a metric that is changed through this server."""
        self.definitions.cache.forget(name)


def _span(query: DataQuery) -> TimeSpan:
    if query.time is not None:
        if (query.start, query.end, query.period) != (None, None, None):
            raise RequestRefused("Give either time, or start and end.")
        return TimeSpan(metric_rules.cutoff_time(query.time, "time"))
    if query.start is None or query.end is None:
        raise RequestRefused("Give either time, or start and end.")
    span = TimeSpan(
        metric_rules.cutoff_time(query.start, "start"), metric_rules.cutoff_time(query.end, "end")
    )
    if str(span.end) <= span.start:
        raise RequestRefused(f"end must be later than start: {span.end} is not after {span.start}.")
    return span


def _as_stored(
    definition: MetricDefinition | None,
    query: DataQuery,
    span: TimeSpan,
    read: Mapping[str, Packed],
) -> list[DataPoint] | None:
    """Returns the single values of a primitive metric that is not chained in this span, which need
    no computing. Returns None for other queries."""
    if definition is None or definition.metric.is_hybrid or query.period is not None:
        return None
    packed = read[query.metric]
    if definition.metric.chained_at(span.start) is not None or (span.end is None and not packed):
        return None
    return [
        DataPoint(time=time, value=value, version=definition.at(time).version)
        for time, value in texts(packed)
    ]


def _evaluated(
    definitions: dict[str, MetricDefinition | None],
    query: DataQuery,
    span: TimeSpan,
    read: Mapping[str, Packed],
) -> list[DataPoint]:
    evaluation = MetricEvaluation(
        definitions, {name: unpacked(packed) for name, packed in read.items()}
    )
    return [
        _point(evaluation, query.metric, part)
        for part in _spans(evaluation, query, span)
        if span.end is None or evaluation.value(query.metric, part).has_data
    ]


def _spans(evaluation: MetricEvaluation, query: DataQuery, whole: TimeSpan) -> Iterable[TimeSpan]:
    """Returns what the answer has a point for: the time of the query, every time with a value, or
    every period with one."""
    if whole.end is None:
        return [whole]
    times = evaluation.times(whole)
    if query.period is None:
        return map(TimeSpan, times)
    # A dictionary removes duplicates and keeps the order.
    return dict.fromkeys(period_of(time, query.period, whole) for time in times)


def _point(evaluation: MetricEvaluation, name: str, span: TimeSpan) -> DataPoint:
    outcome = evaluation.value(name, span)
    source = evaluation.source(name, span.start)
    chained = source.metric.name if source is not None and source.metric.name != name else None
    return DataPoint(
        time=span.start,
        value=None if outcome.number is None else _text(outcome.number),
        version=0 if source is None else source.at(span.start).version,
        metric=chained,
        reason=outcome.reason,
    )


def _text(number: Fraction) -> str:
    decimal = rounded(number)
    assert decimal is not None
    return text_of(decimal)


def _primitives(definitions: dict[str, MetricDefinition | None]) -> list[MetricDefinition]:
    return [d for d in definitions.values() if d is not None and not d.metric.is_hybrid]


def _refuse_unrelated(primitives: Iterable[MetricDefinition], dimensions: Dimensions) -> None:
    for definition in primitives:
        unrelated = sorted(dimensions.keys() - set(definition.metric.related_dimensions or ()))
        if unrelated:
            raise RequestRefused(
                f"{definition.metric.name} has no dimension {', '.join(unrelated)}."
            )
