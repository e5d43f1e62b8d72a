"""The requests and responses of GetMetricData and PutMetricData."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from metric_catalogue.data.periods import Period
from metric_catalogue.metrics.metric import DIMENSION_CHARS_MAX, Name, Time

QUERIES_MAX = 100
NEW_VALUES_MAX = 500

DimensionValue = Annotated[str, Meta(min_length=1, max_length=DIMENSION_CHARS_MAX)]
Dimensions = dict[str, DimensionValue]


class DataQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks for the value at `time`, or for the values from `start` to before `end`. With a
    `period` it asks for one value in each period."""

    metric: Name
    dimensions: Dimensions = {}
    time: str | None = None
    start: str | None = None
    end: str | None = None
    period: Period | None = None


class DataQueries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queries: Annotated[list[DataQuery], Meta(min_length=1, max_length=QUERIES_MAX)]


class DataPoint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    time: Time
    value: str | None
    """The exact value; null when the metric has no value, and then there is a reason."""
    version: int
    """The version valid at that time."""
    metric: str | None = None
    """The chained metric, if the value comes from it."""
    reason: str | None = None


class MetricData(Struct, frozen=True, kw_only=True):
    metric: str
    dimensions: Dimensions
    points: list[DataPoint]


class NewValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    metric: Name
    time: str
    value: Decimal
    dimensions: Dimensions = {}
    weight: Decimal = Decimal(1)


class NewValues(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    values: Annotated[list[NewValue], Meta(min_length=1, max_length=NEW_VALUES_MAX)]


class StoredCount(Struct, frozen=True, kw_only=True):
    stored: int
