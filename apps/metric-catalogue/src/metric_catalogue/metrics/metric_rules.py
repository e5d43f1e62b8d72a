"""The rules of the catalogue, the same for every store.

They are pure functions that take the current version and a request, and return the next version.
Which names exist and what they refer to, only the store knows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache

from metric_catalogue.metrics.catalogue_errors import MetricConflict, RequestRefused
from metric_catalogue.metrics.formula import consumed_metrics
from metric_catalogue.metrics.metric import (
    CONSUMED_METRICS_MAX,
    HYBRID,
    Deprecation,
    Metric,
    MetricChange,
    MetricVersion,
    NewMetric,
    as_metric,
    format_time,
    parse_time,
    timestamp,
)

PARAMETER_DECIMALS_MAX = 4
REACHED_METRICS_MAX = 2000
DEPENDANTS_SHOWN_MAX = 5
TIMES_MAX = 10_000
"""How many parsed times are cached: most requests ask for the same ones."""
HYBRID_GROUP = "hybrid metrics"
"""The group of all hybrid metrics; it has no dimensions, and no metric can have its name."""

Revision = Callable[[Metric], Metric]
"""Takes the latest version of a metric and returns the next one."""
References = Callable[[str], Awaitable[set[str]]]


def first_version(
    new: NewMetric, related_dimensions: tuple[str, ...] | None, user: str, now: float
) -> Metric:
    time = timestamp(now)
    version = _version(new, new.name, 1, related_dimensions, user, time)
    return as_metric(version, created_at=time, created_by=user)


def change(request: MetricChange, user: str, now: float) -> Revision:
    def revise(metric: Metric) -> Metric:
        _refuse_deprecated(metric)
        if (request.value_type == HYBRID) != metric.is_hybrid:
            raise MetricConflict(
                f"{metric.name} has the value type {metric.value_type}: a primitive metric cannot "
                "become a hybrid one, or the other way round."
            )
        related = metric.related_dimensions
        if request.related_dimensions is not None:
            if metric.is_hybrid:
                raise RequestRefused("A hybrid metric has no related dimensions.")
            related = tuple(sorted(set(request.related_dimensions)))
        number = metric.latest_version + 1
        version = _version(request, metric.name, number, related, user, timestamp(now))
        return as_metric(version, metric.created_at, metric.created_by)

    return revise


def deprecation(request: Deprecation, user: str, now: float) -> Revision:
    def revise(metric: Metric) -> Metric:
        _refuse_deprecated(metric)
        time = timestamp(now)
        fields = {name: getattr(metric, name) for name in MetricVersion.__struct_fields__}
        version = MetricVersion(
            **{
                **fields,
                "version": metric.latest_version + 1,
                "updated_at": time,
                "updated_by": user,
                "deprecated_at": time,
                "deprecated_by": user,
                "deprecated_reason": request.reason,
            }
        )
        return as_metric(version, metric.created_at, metric.created_by)

    return revise


def _refuse_deprecated(metric: Metric) -> None:
    if metric.deprecated_at is not None:
        raise MetricConflict(
            f"{metric.name} was deprecated at {metric.deprecated_at} and cannot be changed."
        )


def _version(
    request: NewMetric | MetricChange,
    name: str,
    number: int,
    related_dimensions: tuple[str, ...] | None,
    user: str,
    time: str,
) -> MetricVersion:
    return MetricVersion(
        name=name,
        version=number,
        updated_at=time,
        updated_by=user,
        aggregation_style=request.aggregation_style,
        value_type=request.value_type,
        aggregation_param=_parameter(request.aggregation_param),
        chained_metric=request.chained_metric,
        chain_cutoff_date=_cutoff_date(request, name),
        hybrid_formula=request.hybrid_formula,
        consumed_metrics=_consumed(request, name),
        related_dimensions=related_dimensions,
    )


def _parameter(value: float | None) -> float | None:
    if value is None:
        return None
    if round(value, PARAMETER_DECIMALS_MAX) != value:
        raise RequestRefused(
            f"aggregationParam may have at most {PARAMETER_DECIMALS_MAX} decimals: {value}."
        )
    # 3.0 and 3 are one number; DynamoDB stores it as 3, and both stores must answer the same.
    return int(value) if value == int(value) else value


def _cutoff_date(request: NewMetric | MetricChange, name: str) -> str | None:
    if (request.chained_metric is None) != (request.chain_cutoff_date is None):
        raise RequestRefused("chainedMetric and chainCutoffDate must be given together.")
    if request.chain_cutoff_date is None:
        return None
    if request.chained_metric == name:
        raise RequestRefused(f"{name} cannot be its own chained metric.")
    return cutoff_time(request.chain_cutoff_date, "chainCutoffDate")


@lru_cache(TIMES_MAX)
def cutoff_time(text: str, what: str) -> str:
    """Returns a date or time in the format in which times are stored and compared."""
    try:
        return format_time(parse_time(text))
    except (ValueError, OverflowError):
        raise RequestRefused(
            f"{what} must be a date or time such as 2019-01-01 or 2019-01-01T12:00:00Z, not "
            f"{text!r}."
        ) from None


def _consumed(request: NewMetric | MetricChange, name: str) -> tuple[str, ...] | None:
    if request.value_type != HYBRID:
        if request.hybrid_formula is not None:
            raise RequestRefused(
                "Only a metric with the value type HYBRID can have a hybridFormula."
            )
        return None
    if request.hybrid_formula is None:
        raise RequestRefused("A metric with the value type HYBRID needs a hybridFormula.")
    consumed = consumed_metrics(request.hybrid_formula)
    if name in consumed:
        raise RequestRefused(f"{name} cannot be used in its own formula.")
    if len(consumed) > CONSUMED_METRICS_MAX:
        raise RequestRefused(
            f"A formula may use at most {CONSUMED_METRICS_MAX} different metrics, not "
            f"{len(consumed)}."
        )
    return consumed


def added_references(previous: Metric | None, metric: Metric) -> set[str]:
    """Returns the references that have to be checked; those of the previous version were checked
    when it was written."""
    return metric.references - (previous.references if previous is not None else set())


def refuse_missing(kind: str, names: Iterable[str]) -> None:
    missing = sorted(names)
    if missing:
        raise RequestRefused(f"There is no {kind} {', '.join(missing)}.")


def refuse_dependants(name: str, consumers: Iterable[str], chained: Iterable[str]) -> None:
    """Raises an error when other metrics need the metric that is to be deleted."""
    for verb, others in (("is consumed by", sorted(consumers)), ("is chained by", sorted(chained))):
        if others:
            shown = ", ".join(others[:DEPENDANTS_SHOWN_MAX])
            more = len(others) - DEPENDANTS_SHOWN_MAX
            rest = f" and {more} more" if more > 0 else ""
            raise MetricConflict(f"{name} {verb} {shown}{rest}: change or delete those first.")


def no_group(name: str) -> RequestRefused:
    return RequestRefused(
        f"A primitive metric needs a metric group with its name: add the group {name} first."
    )


async def refuse_cycle(name: str, added: set[str], references: References) -> None:
    """Follows references transitively, and raises an error when one leads back to the metric."""
    reached: set[str] = set()
    waiting = sorted(added)
    while waiting:
        here = waiting.pop()
        if here == name:
            raise RequestRefused(f"{name} would be computed from itself.")
        # Several ways may lead to one metric.
        if here in reached:
            continue
        reached.add(here)
        if len(reached) > REACHED_METRICS_MAX:
            raise RequestRefused(
                f"{name} would be computed from more than {REACHED_METRICS_MAX} metrics."
            )
        waiting += await references(here)


async def resolve(metric: Metric, time: str, get: Callable[[str], Awaitable[Metric]]) -> Metric:
    """Returns the metric to use at a time: before the cutoff date that is the chained metric."""
    walked = {metric.name}
    while (chained := metric.chained_at(time)) is not None:
        metric = await get(chained)
        if metric.name in walked:
            raise MetricConflict(f"The chain of {metric.name} leads back to itself.")
        walked.add(metric.name)
    return metric
