"""Metrics, their versions, and the requests that create them. The rules are in `metric_rules`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

HYBRID = "HYBRID"
ValueType = Literal["SCALAR", "WEIGHTED_AVERAGE", "HYBRID", "PERCENTILE"]
AggregationStyle = Literal["SUM", "LAST_DAY_OF_PERIOD", "PERCENTILE"]

NAME = r"^[A-Za-z_][A-Za-z0-9_.]*\Z"
"""The pattern makes sure that every name can be used in a formula."""
NAME_CHARS_MAX = 150
DIMENSION_CHARS_MAX = 100
FORMULA_CHARS_MAX = 1000
REASON_CHARS_MAX = 500
USER_CHARS_MAX = 50
RELATED_DIMENSIONS_MAX = 100
CONSUMED_METRICS_MAX = 45
"""A transaction has at most 100 actions, and an update may add this many entries of consumers and
remove as many."""

Name = Annotated[str, Meta(pattern=NAME, max_length=NAME_CHARS_MAX)]
DimensionName = Annotated[str, Meta(pattern=NAME, max_length=DIMENSION_CHARS_MAX)]
Dimensions = Annotated[list[DimensionName], Meta(min_length=1, max_length=RELATED_DIMENSIONS_MAX)]
Formula = Annotated[str, Meta(min_length=1, max_length=FORMULA_CHARS_MAX)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Parameter = Annotated[float, Meta(gt=-1e8, lt=1e8)]


class MetricVersion(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """A metric between two updates. The attributes are those of figure 5.3.

    The relational database has dimensions and consumed metrics of the latest version only.
    """

    name: str
    version: int
    updated_at: Time
    updated_by: str
    aggregation_style: AggregationStyle
    value_type: ValueType
    aggregation_param: float | None = None
    chained_metric: str | None = None
    chain_cutoff_date: Time | None = None
    hybrid_formula: str | None = None
    consumed_metrics: tuple[str, ...] | None = None
    related_dimensions: tuple[str, ...] | None = None
    deprecated_at: Time | None = None
    deprecated_by: str | None = None
    deprecated_reason: str | None = None

    @property
    def is_hybrid(self) -> bool:
        return self.value_type == HYBRID

    def chained_at(self, time: str) -> str | None:
        """Returns the metric that stands for this one before the cutoff date, or None. Rows of the
        old catalogue may have a date without a metric, which has no effect."""
        cutoff = self.chain_cutoff_date
        return self.chained_metric if cutoff is not None and time < cutoff else None

    @property
    def references(self) -> set[str]:
        """The metrics that this one depends on."""
        chained = [self.chained_metric] if self.chained_metric else []
        return {*(self.consumed_metrics or ()), *chained}


class Metric(
    MetricVersion, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """The latest version of a metric, with the attributes of the metric itself."""

    latest_version: int
    created_at: Time
    created_by: str


class LatestVersion(NamedTuple):
    """Identifies the latest version. The time of creation differs when a metric was deleted and
    added again."""

    created_at: str
    version: int


class NewMetric(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    name: Name
    value_type: ValueType
    aggregation_style: AggregationStyle
    aggregation_param: Parameter | None = None
    chained_metric: Name | None = None
    chain_cutoff_date: str | None = None
    hybrid_formula: Formula | None = None


class MetricChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A complete new version; only related dimensions are kept when none are given."""

    value_type: ValueType
    aggregation_style: AggregationStyle
    aggregation_param: Parameter | None = None
    chained_metric: Name | None = None
    chain_cutoff_date: str | None = None
    hybrid_formula: Formula | None = None
    related_dimensions: Dimensions | None = None


class Deprecation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(min_length=1, max_length=REASON_CHARS_MAX)]


class NewDimension(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: DimensionName


class NewGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The dimensions of a primitive metric of the same name, which is added next."""

    name: Name
    related_dimensions: Dimensions


def as_metric(version: MetricVersion, created_at: str, created_by: str) -> Metric:
    return Metric(
        **msgspec.structs.asdict(version),
        latest_version=version.version,
        created_at=created_at,
        created_by=created_by,
    )


def timestamp(seconds: float) -> str:
    """Returns a time in the format of every store: "2026-01-31T00:00:00.000Z"."""
    return format_time(datetime.fromtimestamp(seconds, UTC))


def format_time(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_time(text: str) -> datetime:
    """Parses a date or a time in ISO 8601; without a zone it is UTC. Raises ValueError."""
    time = datetime.fromisoformat(text)
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
