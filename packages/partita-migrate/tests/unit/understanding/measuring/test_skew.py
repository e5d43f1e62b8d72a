"""Tests distinct values, shares and entropy: exact for all rows, close for a sample."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita_migrate.understanding.analysis import KeySkew
from partita_migrate.understanding.measuring.key_skew import KeyCounts


def skew(values: list[str | None], rows: int | None = None, **members: bool) -> KeySkew:
    counts = KeyCounts(
        ["key"],
        is_unique=members.get("is_unique", False),
        is_shown=members.get("is_shown", True),
    )
    for value in values:
        counts.add([value])
    return counts.skew(rows if rows is not None else len(values), rows is None)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=200))
def test_when_every_row_was_seen_all_is_exact(values: list[str]) -> None:
    counted = Counter(values)
    found = skew([*values])
    top = max(counted.values())
    assert found.distinct == len(counted)
    assert found.rows_per_value_max == top
    assert found.top_share == pytest.approx(top / len(values), rel=1e-5)
    entropy = -sum(n / len(values) * math.log2(n / len(values)) for n in counted.values())
    assert found.entropy_bits == pytest.approx(entropy, abs=0.006)
    assert counted[found.top_value or ""] == top
    squares = sum(n * n for n in counted.values())
    assert found.rows_per_call == pytest.approx(squares / len(values), abs=0.006)
    assert found.rows_per_call >= found.rows_per_value - 0.01


def test_what_a_call_finds_is_estimated_from_a_sample() -> None:
    """Half of a million rows have one value, the others one of 5,000."""
    random = Random(7)
    values = [
        "often" if random.random() < 0.5 else str(random.randrange(5_000)) for _ in range(20_000)
    ]
    found = skew([*values], rows=1_000_000)
    # 0.5 * 500,000 + 0.5 * 100
    assert found.rows_per_call == pytest.approx(250_050, rel=0.03)
    assert found.rows_per_value < 250


def test_nulls_are_told_apart_and_count_for_nothing_else() -> None:
    found = skew(["a", None, "a", None])
    assert (found.distinct, found.null_share, found.top_share) == (1, 0.5, 1)
    assert found.rows_per_value == 2


def test_a_key_of_nothing_but_null_has_no_values() -> None:
    found = skew([None, None])
    assert (found.distinct, found.rows_per_value_max, found.null_share) == (0, 0, 1)


def test_a_unique_key_has_as_many_values_as_rows_however_few_were_seen() -> None:
    found = skew([str(i) for i in range(100)], rows=1_000_000, is_unique=True)
    assert found.distinct == 1_000_000
    assert found.entropy_bits == pytest.approx(math.log2(1_000_000), abs=0.01)


@pytest.mark.parametrize("values_in_table", [50, 2_000, 100_000])
def test_distinct_values_of_the_table_are_estimated_from_a_sample(values_in_table: int) -> None:
    random = Random(3)
    rows = 500_000
    sample = [str(random.randrange(values_in_table)) for _ in range(20_000)]
    found = skew([*sample], rows=rows)
    assert found.distinct == pytest.approx(values_in_table, rel=0.25)
    assert found.entropy_bits == pytest.approx(math.log2(values_in_table), rel=0.05)


def test_a_value_that_half_the_rows_have_is_found() -> None:
    random = Random(4)
    sample = ["7" if random.random() < 0.5 else str(random.randrange(10**6)) for _ in range(20_000)]
    found = skew([*sample], rows=10_000_000)
    assert found.top_value == "7"
    assert found.top_share == pytest.approx(0.5, abs=0.02)
    assert found.rows_per_value_max == pytest.approx(5_000_000, rel=0.05)


def test_a_text_is_not_shown() -> None:
    assert skew(["ann@example.org"] * 3, is_shown=False).top_value is None


def test_minus_one_and_minus_two_are_two_values() -> None:
    assert skew(["-1", "-2"]).distinct == 2


def test_of_values_that_are_equally_frequent_the_first_is_told() -> None:
    """Python's hashes of texts differ between processes; the files must be the same."""
    for first, second in ((1, 2), (2, 1)):
        values: list[str | None] = [str(first), str(second), *map(str, range(100, 200))]
        values += [str(second), str(first)]
        assert skew(values, is_shown=True).top_value == str(first)


def test_all_is_exact_beside_nulls_too() -> None:
    """13378 * (1 - 12029 / 13378) is a little more than 1349."""
    values = [str(number if number < 1000 else number % 52) for number in range(1349)]
    found = skew([*values, *[None] * 12029])
    counted = Counter(values)
    entropy = -sum(n / 1349 * math.log2(n / 1349) for n in counted.values())
    assert found.distinct == len(counted)
    assert found.entropy_bits == pytest.approx(entropy, abs=0.006)
