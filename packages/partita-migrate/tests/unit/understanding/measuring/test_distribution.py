"""Compares percentiles and their intervals with exact counts."""

from __future__ import annotations

from array import array
from fractions import Fraction
from math import comb
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita_migrate.understanding.measuring.percentiles import (
    distribution,
    histogram,
    interval,
    percentile,
)

sizes = st.lists(st.integers(0, 500_000), min_size=1, max_size=300)


@given(sizes, st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_the_least_value_that_enough_do_not_exceed(
    values: list[int], share: float
) -> None:
    found = percentile(sorted(values), share)
    assert sum(value <= found for value in values) >= share * len(values)
    smaller = [value for value in values if value < found]
    assert len(smaller) < share * len(values)


@given(sizes)
def test_a_histogram_has_every_row_once(values: list[int]) -> None:
    bars = histogram(sorted(values))
    assert sum(rows for _, rows in bars) == len(values)
    assert [bound for bound, _ in bars] == sorted({bound for bound, _ in bars})
    below = 0
    for bound, rows in bars:
        assert sum(below < value <= bound or (value == 0 == below) for value in values) == rows
        below = bound


@pytest.mark.parametrize("count", [20, 100, 500])
def test_ranks_hold_the_percentile_as_often_as_they_say(count: int) -> None:
    """The number of sampled values below a percentile has a binomial distribution."""
    below, above = interval(range(count), 0.95)
    share = Fraction(95, 100)
    probability = sum(
        comb(count, k) * share**k * (1 - share) ** (count - k)
        for k in range(below + 1, above + 1 if above < count - 1 else count + 1)
    )
    assert probability >= 0.95 or above == count - 1


def test_intervals_of_samples_hold_the_truth_about_nineteen_times_in_twenty() -> None:
    random = Random(5)
    population = sorted(int(random.lognormvariate(6, 1)) for _ in range(20_000))
    truth = percentile(population, 0.95)
    held = 0
    for _ in range(300):
        drawn = sorted(random.choices(population, k=400))
        least, most = interval(drawn, 0.95)
        held += least <= truth <= most
    assert held / 300 > 0.92


def test_a_table_without_rows_has_a_distribution_of_zeros() -> None:
    empty = distribution(array("Q"), is_exact=True)
    assert (empty.mean, empty.max, empty.histogram) == (0, 0, [])


def test_every_row_leaves_nothing_to_be_unsure_of() -> None:
    found = distribution(array("Q", range(1, 101)), is_exact=True)
    assert (found.mean, found.p50, found.p95, found.p99, found.max) == (50.5, 50, 95, 99, 100)
    assert found.p95_interval is None
