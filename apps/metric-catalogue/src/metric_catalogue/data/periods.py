"""Periods, and how the values in a period become one value: by the metric's aggregation style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Literal, NamedTuple

from metric_catalogue.metrics.metric import MetricVersion, format_time, parse_time

Period = Literal["DAY", "WEEK", "MONTH", "ALL"]
MEDIAN = 50


class WeightedValue(NamedTuple):
    """The value of a primitive metric at one time."""

    number: Fraction
    weight: Fraction


class TimeSpan(NamedTuple):
    """The time from `start` to before `end`; without an end, the instant `start`."""

    start: str
    end: str | None = None

    def has(self, time: str) -> bool:
        return time == self.start if self.end is None else self.start <= time < self.end


def period_of(time: str, period: Period, whole: TimeSpan) -> TimeSpan:
    """Returns the period that a time lies in, cut at both ends of the whole span."""
    if period == "ALL":
        return whole
    begin = parse_time(time).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "DAY":
        end = begin + timedelta(days=1)
    elif period == "WEEK":
        begin -= timedelta(days=begin.weekday())
        end = begin + timedelta(days=7)
    else:
        begin = begin.replace(day=1)
        end = (begin + timedelta(days=32)).replace(day=1)
    assert whole.end is not None
    return TimeSpan(max(format_time(begin), whole.start), min(format_time(end), whole.end))


def aggregate(values: Sequence[WeightedValue], version: MetricVersion) -> Fraction:
    """Aggregates at least one value; the values are in order of time."""
    return STYLES[version.aggregation_style](values, version)


def _sum(values: Sequence[WeightedValue], version: MetricVersion) -> Fraction:
    if version.value_type != "WEIGHTED_AVERAGE":
        return sum((value.number for value in values), Fraction())
    weight = sum((value.weight for value in values), Fraction())
    return sum((value.number * value.weight for value in values), Fraction()) / weight


def _last(values: Sequence[WeightedValue], version: MetricVersion) -> Fraction:
    return values[-1].number


def _percentile(values: Sequence[WeightedValue], version: MetricVersion) -> Fraction:
    """Returns a percentile, interpolated between two values as SQL's PERCENTILE_CONT does."""
    ordered = sorted(value.number for value in values)
    share = Fraction(str(version.aggregation_param or MEDIAN)) / 100
    place = min(max(share, Fraction()), Fraction(1)) * (len(ordered) - 1)
    low = int(place)
    if low + 1 == len(ordered):
        return ordered[low]
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])


STYLES: dict[str, Callable[[Sequence[WeightedValue], MetricVersion], Fraction]] = {
    "SUM": _sum,
    "LAST_DAY_OF_PERIOD": _last,
    "PERCENTILE": _percentile,
}
