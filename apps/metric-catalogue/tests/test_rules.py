"""The rules by themselves: formulas, versions, chains, modes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_catalogue.metrics import metric_rules
from metric_catalogue.metrics.catalogue_errors import MetricConflict, RequestRefused
from metric_catalogue.metrics.formula import consumed_metrics
from metric_catalogue.metrics.metric import Metric, MetricChange, MetricVersion, NewMetric
from metric_catalogue.stores.catalogue_modes import Mode, steps
from metric_catalogue.stores.dynamodb.metric_items import (
    latest_item,
    metric_of,
    version_item,
    version_of,
)

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,8}", fullmatch=True)
NUMBERS = st.sampled_from(["1", "0.5", ".5", "2.", "1e3", "1.5E-7"])
FORMULAS: st.SearchStrategy[tuple[str, frozenset[str]]] = st.recursive(
    NAMES.map(lambda name: (name, frozenset([name])))
    | NUMBERS.map(lambda number: (number, frozenset())),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner, st.sampled_from(["", " "])).map(
        lambda parts: (
            f"({parts[0][0]}{parts[3]}{parts[1]}{parts[3]}-{parts[2][0]})",
            parts[0][1] | parts[2][1],
        )
    ),
    max_leaves=12,
)


@given(FORMULAS)
def test_the_metrics_of_a_formula_are_found(formula: tuple[str, frozenset[str]]) -> None:
    text, names = formula
    if names:
        assert consumed_metrics(text) == tuple(sorted(names))
    else:
        with pytest.raises(RequestRefused, match="uses no metric"):
            consumed_metrics(text)


@given(st.text(alphabet="ab1.(+-*/) \té", max_size=12))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    with suppress(RequestRefused):
        assert consumed_metrics(text)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("", "has its end at position 1, where a metric, a number or a bracket is expected"),
        ("a b", "has 'b' at position 3, where an operator or its end is expected"),
        ("(a", "has its end at position 3, where ) is expected"),
        ("a)", "has ')' at position 2, where an operator or its end is expected"),
        ("a / ?", "has '?' at position 5, where a metric, a number or a bracket is expected"),
        ("2a", "has '2' at position 1, where a metric, a number or a bracket is expected"),
        ("(" * 51 + "a" + ")" * 51, "at most 50 deep"),
    ],
)
def test_a_wrong_formula_is_shown_where_it_is_wrong(formula: str, words: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        consumed_metrics(formula)
    assert words in str(caught.value)


def primitive(**attributes: object) -> Metric:
    new = NewMetric(name="m", value_type="SCALAR", aggregation_style="SUM", **attributes)  # type: ignore[arg-type]
    return metric_rules.first_version(new, ("d1", "d2"), "me", 0.0)


def test_items_are_those_of_figure_5_3() -> None:
    metric = primitive(aggregation_param=99.5, chained_metric="n", chain_cutoff_date="2019-01-01")
    assert version_item(metric) == {
        "name": {"S": "m"},
        "version": {"S": "1"},
        "updatedAt": {"S": "1970-01-01T00:00:00.000Z"},
        "updatedBy": {"S": "me"},
        "aggregationStyle": {"S": "SUM"},
        "aggregationParam": {"N": "99.5"},
        "valueType": {"S": "SCALAR"},
        "chainedMetric": {"S": "n"},
        "chainCutoffDate": {"S": "2019-01-01T00:00:00.000Z"},
        "relatedDimensions": {"SS": ["d1", "d2"]},
    }
    whole = {
        "version": {"S": "0"},
        "latestVersion": {"N": "1"},
        "createdAt": {"S": "1970-01-01T00:00:00.000Z"},
        "createdBy": {"S": "me"},
    }
    assert latest_item(metric) == {**version_item(metric), **whole}
    assert metric_of(latest_item(metric)) == metric
    fields = {name: getattr(metric, name) for name in MetricVersion.__struct_fields__}
    assert version_of(version_item(metric)) == MetricVersion(**fields)


def test_a_version_follows_from_the_one_before() -> None:
    asked = MetricChange(
        value_type="PERCENTILE", aggregation_style="PERCENTILE", aggregation_param=50.0
    )
    metric = metric_rules.change(asked, "you", 1.5)(primitive())
    assert (metric.version, metric.latest_version) == (2, 2)
    assert (metric.updated_at, metric.updated_by) == ("1970-01-01T00:00:01.500Z", "you")
    assert (metric.created_at, metric.created_by) == ("1970-01-01T00:00:00.000Z", "me")
    assert metric.aggregation_param == 50
    assert metric.related_dimensions == ("d1", "d2")


def test_a_chain_that_leads_back_to_itself_is_refused() -> None:
    a = primitive(chained_metric="n", chain_cutoff_date="2019-01-01")

    async def get(name: str) -> Metric:
        return a

    with pytest.raises(MetricConflict, match="The chain of m leads back to itself"):
        asyncio.run(metric_rules.resolve(a, "2018-01-01", get))


def test_modes_change_one_step_at_a_time() -> None:
    assert steps(Mode.LEGACY, Mode.DYNAMODB) == (Mode.MIGRATING, Mode.SEALED, Mode.DYNAMODB)
    assert steps(Mode.DYNAMODB, Mode.LEGACY) == (Mode.SEALED, Mode.MIGRATING, Mode.LEGACY)
    assert steps(Mode.SEALED, Mode.SEALED) == ()
