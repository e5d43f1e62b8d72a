"""Tests that texts in keys sort as their values do."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita_migrate.model.keys.key_formats import NotEncodable, bound_text, field_text
from partita_migrate.model.keys.key_templates import SEPARATOR, escaped

NUMBERS = st.decimals(min_value=-99_999, max_value=99_999, places=2)


def written(number: Decimal) -> str:
    return field_text("n5.2", {"N": str(number)})


@given(NUMBERS, NUMBERS)
def test_numbers_in_fixed_point_sort_as_numbers(one: Decimal, other: Decimal) -> None:
    assert (written(one) < written(other)) == (one < other)
    assert (written(one) == written(other)) == (one == other)


@given(st.text(), st.text())
def test_escaped_texts_sort_as_they_are_whatever_follows(one: str, other: str) -> None:
    first, second = (escaped(text) + SEPARATOR for text in (one, other))
    assert (first < second) == (one < other)
    assert SEPARATOR not in escaped(one)


@given(st.text(), st.text())
def test_an_escaped_beginning_is_the_beginning_of_the_escaped(one: str, other: str) -> None:
    assert escaped(one + other).startswith(escaped(one))


@pytest.mark.parametrize("text", ["123456", "1.005"])
def test_a_number_that_does_not_fit_is_refused_and_never_cut(text: str) -> None:
    with pytest.raises(NotEncodable):
        field_text("n5.2", {"N": text})


@given(st.decimals(min_value=-(10**7), max_value=10**7, places=4), NUMBERS, st.booleans())
def test_the_end_of_a_range_leaves_out_nothing_that_is_within_it(
    end: Decimal, number: Decimal, is_high: bool
) -> None:
    text = bound_text("n5.2", {"N": str(end)}, is_high=is_high)
    is_within = number <= end if is_high else number >= end
    if text is None:
        assert not is_within
    else:
        found = written(number) <= text if is_high else written(number) >= text
        assert found == is_within


def test_collations_fold_as_their_servers_compare() -> None:
    said = {
        fold: [field_text(fold, {"S": text}) for text in ("Éve", "eve", "EVE")]
        for fold in ("ai", "ci", "nocase")
    }
    assert said["ai"] == ["EVE", "EVE", "EVE"]
    assert said["ci"] == ["éve", "eve", "eve"]
    assert said["nocase"] == ["Éve", "eve", "eve"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T10:15:30.5", "2026-01-31T10:15:30.500Z"),
        ("2026-01-31", "2026-01-31T00:00:00.000Z"),
        ("2026-01-31T10:15:30.123456+02:00", "2026-01-31T08:15:30.123Z"),
        ("0000-00-00", "0000-00-00"),
    ],
)
def test_a_moment_to_the_millisecond_is_in_utc(text: str, moment: str) -> None:
    assert field_text("ms", {"S": text}) == moment
