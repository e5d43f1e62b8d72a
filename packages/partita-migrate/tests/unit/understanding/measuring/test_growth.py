"""Tests the growth of tables."""

from __future__ import annotations

from array import array

from partita_migrate.understanding.measuring.table_growth import (
    DAY_SECONDS,
    creation_column,
    growth,
)
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.inventory import SourceTable

from ...shop import column, orders


def test_growth_is_that_of_the_last_thirty_days_when_they_have_rows() -> None:
    old = [float(day * DAY_SECONDS) for day in range(300)]
    new = [(270 + i / 100) * DAY_SECONDS for i in range(2971)]
    per_day, reason = growth(
        orders(), 3271, column("created_at", "datetime"), array("d", old + new), array("d"), []
    )
    assert per_day is not None
    assert 95 < per_day < 105
    assert reason == "of the last 30 days, by created_at"


def test_a_young_table_grows_by_its_age() -> None:
    moments = array("d", [0.0, 5.0 * DAY_SECONDS, 10.0 * DAY_SECONDS])
    per_day, reason = growth(
        orders(), 3000, column("created_at", "datetime"), moments, array("d"), []
    )
    assert per_day == 300
    assert reason == "over 10 days, by created_at"


def test_without_a_time_the_patterns_that_insert_tell() -> None:
    made = AccessPattern(
        name="make", category="write only", operation="insert", table="orders", calls_per_second=2.0
    )
    gone = AccessPattern(
        name="end", category="write only", operation="delete", table="orders", calls_per_second=0.5
    )
    per_day, _ = growth(orders(), 10, None, array("d"), array("d"), [made, gone])
    assert per_day == 1.5 * DAY_SECONDS


def test_without_either_nothing_is_told() -> None:
    assert growth(orders(), 10, None, array("d"), array("d"), []) == (None, "")


def test_the_column_that_says_when_is_known_by_its_name() -> None:
    found = creation_column(orders())
    assert found is not None
    assert found.name == "created_at"


def test_a_time_that_rises_with_the_numbers_of_the_rows_tells_too() -> None:
    when = column("paid", "datetime")
    moments = array("d", [float(i * DAY_SECONDS) for i in range(31)])
    rising = array("d", range(31))
    assert growth(orders(), 310, when, moments, rising, []) == (10.33, "over 30 days, by paid")
    mixed = array("d", [(i * 7) % 31 for i in range(31)])
    assert growth(orders(), 310, when, moments, mixed, []) == (None, "")


def test_only_a_numbered_table_has_its_times_looked_at() -> None:
    columns = [column("id", is_auto_increment=True), column("updated", "datetime")]
    paid = column("paid", "datetime")
    assert creation_column(SourceTable(name="t", columns=[*columns, paid])) == paid
    assert creation_column(SourceTable(name="t", columns=columns)) is None
    assert creation_column(SourceTable(name="t", columns=[column("id"), paid])) is None
