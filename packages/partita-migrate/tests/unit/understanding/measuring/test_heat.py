"""Tests hot keys at the rates of the patterns, and the sentence with the reason."""

from __future__ import annotations

from typing import Any

from partita_migrate.understanding.analysis import KeySkew
from partita_migrate.understanding.measuring.key_heat import with_heat
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.inventory import SourceTable

from ...shop import column, orders


def pattern(**members: Any) -> AccessPattern:
    usual: dict[str, Any] = {
        "name": "a pattern",
        "category": "range of items",
        "operation": "read",
        "table": "orders",
        "equality": ["orders.customer_id"],
        "calls_per_second": 1.0,
    }
    return AccessPattern(**(usual | members))


def skew(top_share: float, columns: list[str] | None = None) -> KeySkew:
    return KeySkew(
        columns=columns or ["customer_id"],
        distinct=10,
        rows_per_value=100,
        rows_per_value_max=500,
        top_share=top_share,
        entropy_bits=3,
        top_value="42",
    )


def test_reads_of_a_value_that_many_rows_share_are_hot() -> None:
    busy = pattern(calls_per_second=10_000.0, items=50)
    found = with_heat(skew(0.5), orders(), [busy], item_bytes=700)
    # 50 items of 700 bytes are 9 units, half of that eventually consistent.
    assert found.is_hot
    assert found.reason == (
        "50% of the rows share the value 42, which would take 22,500 of 45,000 read units a"
        " second; a partition serves 3,000."
    )


def test_the_same_reads_spread_evenly_are_not() -> None:
    busy = pattern(calls_per_second=10_000.0, items=50)
    assert not with_heat(skew(0.001), orders(), [busy], item_bytes=700).is_hot


def test_every_write_of_the_table_counts_for_each_of_its_keys() -> None:
    writes = pattern(operation="insert", equality=[], calls_per_second=3_000.0)
    found = with_heat(skew(0.5), orders(), [writes], item_bytes=1500)
    assert found.is_hot
    assert found.writes_per_second == 3_000
    assert "3,000 of 6,000 write units" in found.reason


def test_reads_by_another_column_do_not_count() -> None:
    others = pattern(equality=["orders.status"], calls_per_second=1e6)
    found = with_heat(skew(0.5), orders(), [others], item_bytes=700)
    assert found.reads_per_second == 0
    assert "no pattern uses it" in found.reason


def test_all_that_is_written_today_has_today_s_date() -> None:
    table = SourceTable(name="visit", columns=[column("day", "date")])
    writes = pattern(table="visit", operation="insert", equality=[], calls_per_second=2_000.0)
    found = with_heat(skew(0.001, ["day"]), table, [writes], item_bytes=100)
    assert found.is_hot
    assert found.reason.startswith("Everything written on one day has the same value")
