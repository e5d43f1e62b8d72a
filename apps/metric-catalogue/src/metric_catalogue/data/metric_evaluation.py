"""Computes the value of a metric at a time or in a period, from definitions and stored values.

A primitive metric has its stored values, which are aggregated in a period. A hybrid metric has its
formula, in the version valid at that time. In a period the formula is applied to the aggregates of
its metrics, so a ratio is a ratio of sums. Arithmetic is exact; the result of each metric is
rounded once, to the 38 digits of a number in DynamoDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from metric_catalogue.data.exact_numbers import rounded
from metric_catalogue.data.metric_definitions import MetricDefinition
from metric_catalogue.data.periods import TimeSpan, WeightedValue, aggregate
from metric_catalogue.metrics.catalogue_errors import RequestRefused
from metric_catalogue.metrics.formula import compiled, evaluate, names_in

Series = Mapping[str, WeightedValue]
"""The values of a metric by time, in order of time."""


class EvaluatedValue(NamedTuple):
    """A value, or the reason why the metric has no value."""

    number: Fraction | None = None
    reason: str | None = None
    has_data: bool = True
    """True when any of the metrics that it is computed from has a value."""


class MetricEvaluation:
    def __init__(
        self, definitions: Mapping[str, MetricDefinition | None], series: Mapping[str, Series]
    ) -> None:
        self._definitions = definitions
        self._series = series
        self._values_by_span: dict[tuple[str, TimeSpan], EvaluatedValue] = {}

    def times(self, span: TimeSpan) -> list[str]:
        """Returns the times in a span at which any of the metrics has a value."""
        return sorted(
            {time for series in self._series.values() for time in series if span.has(time)}
        )

    def source(self, name: str, time: str) -> MetricDefinition | None:
        """Follows the chain of a metric to the one that has its values at a time. Returns None when
        the chain is broken or leads back to itself."""
        walked = set()
        definition = self._definitions.get(name)
        while definition is not None and (chained := definition.metric.chained_at(time)):
            if definition.metric.name in walked:
                return None
            walked.add(definition.metric.name)
            definition = self._definitions.get(chained)
        return definition

    def value(self, name: str, span: TimeSpan) -> EvaluatedValue:
        key = (name, span)
        outcome = self._values_by_span.get(key)
        if outcome is None:
            # Before its first version a metric has that version, so the versions used together were
            # not always valid together, and may form a cycle that no rule has seen. An error in the
            # place of the value ends the recursion.
            self._values_by_span[key] = EvaluatedValue(
                None, f"{name} is computed from itself at this time."
            )
            outcome = self._values_by_span[key] = self._evaluate(name, span)
        return outcome

    def _evaluate(self, name: str, span: TimeSpan) -> EvaluatedValue:
        here = self._definitions.get(name)
        if here is not None and not here.metric.is_hybrid and _is_cut(here, span):
            return self._aggregated(here, self._values(name, span), span)
        definition = self.source(name, span.start)
        if definition is None:
            return EvaluatedValue(None, f"{name} has no value: the metric does not exist.", False)
        if definition.metric.is_hybrid:
            return self._computed(definition, span)
        return self._aggregated(definition, self._own_values(definition.metric.name, span), span)

    def _aggregated(
        self, definition: MetricDefinition, values: list[WeightedValue], span: TimeSpan
    ) -> EvaluatedValue:
        if not values:
            return EvaluatedValue(
                None, f"{definition.metric.name} has no value at this time.", False
            )
        if span.end is None:
            return EvaluatedValue(values[0].number)
        return _limited(definition.metric.name, aggregate(values, definition.at(span.start)))

    def _computed(self, definition: MetricDefinition, span: TimeSpan) -> EvaluatedValue:
        name = definition.metric.name
        try:
            program = compiled(definition.at(span.start).hybrid_formula or "")
        except RequestRefused as error:
            return EvaluatedValue(None, str(error))
        outcomes = {consumed: self.value(consumed, span) for consumed in names_in(program)}
        has_data = any(outcome.has_data for outcome in outcomes.values())
        numbers: dict[str, Fraction] = {}
        for consumed, outcome in outcomes.items():
            if outcome.number is None:
                return EvaluatedValue(None, outcome.reason, has_data)
            numbers[consumed] = outcome.number
        try:
            return _limited(name, evaluate(program, numbers))
        except ZeroDivisionError:
            return EvaluatedValue(None, f"The formula of {name} divides by zero.")

    def _own_values(self, name: str, span: TimeSpan) -> list[WeightedValue]:
        series = self._series.get(name, {})
        if span.end is None:
            return [series[span.start]] if span.start in series else []
        return [value for time, value in series.items() if span.has(time)]

    def _values(self, name: str, span: TimeSpan) -> list[WeightedValue]:
        """Returns the single values in a period; those before the cutoff date are the chained
        metric's."""
        values = []
        for time in self.times(span):
            definition = self.source(name, time)
            if definition is not None and not definition.metric.is_hybrid:
                values += self._own_values(definition.metric.name, TimeSpan(time))
            elif (number := self.value(name, TimeSpan(time)).number) is not None:
                values.append(WeightedValue(number, Fraction(1)))
        return values


def _is_cut(definition: MetricDefinition, span: TimeSpan) -> bool:
    """True when the cutoff date lies within a period."""
    metric = definition.metric
    if metric.chained_at(span.start) is None or span.end is None:
        return False
    return metric.chained_at(span.end) is None and metric.chain_cutoff_date != span.end


def _limited(name: str, number: Fraction) -> EvaluatedValue:
    decimal = rounded(number)
    if decimal is None:
        return EvaluatedValue(None, f"The value of {name} is beyond the range of numbers.")
    return EvaluatedValue(Fraction(decimal))
