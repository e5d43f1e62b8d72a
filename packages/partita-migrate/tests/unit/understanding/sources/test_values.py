"""Tests the mapping from source values to attribute values that AWS accepts."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.database.item.attribute_values import normalize_value
from partita.database.item.item_sizes import value_size
from partita_migrate.understanding.schema.inventory import ColumnKind
from partita_migrate.understanding.sources.value_mapping import (
    MAPPING,
    attribute_value,
    iso_8601,
    single_float,
)

KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "", {"S": ""}),
        ("string", "naïve", {"S": "naïve"}),
        ("integer", 0, {"N": "0"}),
        ("integer", 18446744073709551615, {"N": "18446744073709551615"}),
        ("integer", 10**37, {"N": str(10**37)}),
        ("integer", 10**60, {"N": str(10**60)}),
        ("integer", 10**38 + 1, {"S": str(10**38 + 1)}),
        ("integer", b"\x01\x00", {"N": "256"}),
        ("decimal", Decimal("1.10"), {"N": "1.1"}),
        ("decimal", Decimal("-0.00"), {"N": "0"}),
        ("decimal", Decimal("NaN"), {"S": "NaN"}),
        ("decimal", Decimal("-Infinity"), {"S": "-Infinity"}),
        ("decimal", Decimal("9" * 39), {"S": "9" * 39}),
        ("float", 0.1, {"N": "0.1"}),
        ("float", 1e300, {"S": "1E+300"}),
        ("float", float("nan"), {"S": "NaN"}),
        ("float", float("-inf"), {"S": "-Infinity"}),
        ("boolean", 1, {"BOOL": True}),
        ("boolean", b"\x00", {"BOOL": False}),
        ("boolean", 2, {"N": "2"}),
        ("date", date(2021, 11, 22), {"S": "2021-11-22"}),
        ("date", "0000-00-00", {"S": "0000-00-00"}),
        ("time", timedelta(hours=-838, minutes=-59, seconds=-59), {"S": "-838:59:59"}),
        ("time", timedelta(seconds=1, microseconds=500000), {"S": "00:00:01.5"}),
        ("time", time(10, 15, 30), {"S": "10:15:30"}),
        ("datetime", datetime(2021, 11, 22, 10, 15, 30), {"S": "2021-11-22T10:15:30"}),
        ("datetime", datetime(2021, 11, 22, 10, 15, 30, 120000), {"S": "2021-11-22T10:15:30.12"}),
        (
            "datetime",
            datetime(2021, 11, 22, 10, 15, 30, tzinfo=timezone(timedelta(hours=2))),
            {"S": "2021-11-22T08:15:30+00:00"},
        ),
        ("datetime", datetime(2021, 11, 22, tzinfo=UTC), {"S": "2021-11-22T00:00:00+00:00"}),
        ("binary", b"\x00\xff", {"B": "AP8="}),
        ("binary", memoryview(b"ab"), {"B": "YWI="}),
        ("json", '{"a": [1.10, null, true, "x"]}',
         {"M": {"a": {"L": [{"N": "1.1"}, {"NULL": True}, {"BOOL": True}, {"S": "x"}]}}}),
        ("json", "null", {"NULL": True}),
        ("json", '{"a": 1, "a": 2}', {"S": '{"a": 1, "a": 2}'}),
        ("json", '{"": 1}', {"S": '{"": 1}'}),
        ("json", '{"a": ' + "9" * 39 + "}", {"S": '{"a": ' + "9" * 39 + "}"}),
        ("json", '["\\ud800"]', {"S": '["\\ud800"]'}),
        ("json", "not json", {"S": "not json"}),
        ("enum", "new", {"S": "new"}),
        ("set", "b,a", {"SS": ["a", "b"]}),
        ("set", "", {"L": []}),
        ("uuid", "550E8400-E29B-41D4-A716-446655440000",
         {"S": "550e8400-e29b-41d4-a716-446655440000"}),
        ("uuid", UUID(int=1), {"S": "00000000-0000-0000-0000-000000000001"}),
        ("array", '[1, null, ["x"]]', {"L": [{"N": "1"}, {"NULL": True}, {"L": [{"S": "x"}]}]}),
        ("array", [1, None], {"L": [{"N": "1"}, {"NULL": True}]}),
        ("geometry", b"\x01", {"B": "AQ=="}),
        ("other", "1 mon 3 days", {"S": "1 mon 3 days"}),
        ("integer", "not a number", {"S": "not a number"}),
    ],
)  # fmt: skip
def test_a_value_becomes(kind: ColumnKind, value: Any, expected: dict[str, Any]) -> None:
    assert attribute_value(kind, value) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_null_has_no_attribute(kind: ColumnKind) -> None:
    assert attribute_value(kind, None) is None


def test_every_kind_is_written_down() -> None:
    assert {mapped.kind for mapped in MAPPING} == set(KINDS)


anything = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.decimals(), st.text(), st.binary(), st.dates(),
    st.datetimes(), st.times(), st.timedeltas(), st.uuids(), st.lists(st.integers()),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).map(json.dumps),
)  # fmt: skip


@given(st.sampled_from(KINDS), anything)
def test_whatever_comes_is_a_value_that_the_database_takes(kind: ColumnKind, value: Any) -> None:
    converted = attribute_value(kind, value)
    assert converted is not None
    assert normalize_value(converted) == converted
    assert value_size(converted) >= 0


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_no_digit_of_a_decimal_is_lost(value: Decimal) -> None:
    converted = attribute_value("decimal", value)
    assert converted is not None
    assert Decimal(next(iter(converted.values()))) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_reads_back_as_itself(value: float) -> None:
    converted = attribute_value("float", value)
    assert converted is not None
    assert float(next(iter(converted.values()))) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_single_float_is_told_by_digits_that_give_it_back(value: float) -> None:
    shorter = single_float(value)
    assert struct.pack("f", shorter) == struct.pack("f", value)
    assert digits(shorter) <= digits(value)


def digits(value: float) -> int:
    """Returns the count of significant digits of a number."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


@given(st.lists(st.datetimes(min_value=datetime(1000, 1, 1)), min_size=2, max_size=5))
def test_instants_sort_as_their_texts_do(moments: list[datetime]) -> None:
    """A sort key compares bytes, and fractions of a second differ in length."""
    aware = [moment.replace(tzinfo=UTC) for moment in moments]
    for found in (moments, aware):
        by_text = sorted(found, key=lambda moment: str(attribute_value("datetime", moment)))
        assert by_text == sorted(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2021-11-22 10:15:30.5", "2021-11-22T10:15:30.5"),
        ("2021-11-22 10:15:30+00", "2021-11-22T10:15:30+00:00"),
        ("infinity", "infinity"),
        ("0044-03-15 00:00:00 BC", "0044-03-15 00:00:00 BC"),
        ("12021-01-01 00:00:00", "12021-01-01 00:00:00"),
    ],
)
def test_postgresql_s_texts_become_iso_8601_where_that_can_say_it(text: str, expected: str) -> None:
    assert iso_8601(text) == expected
