"""Tests the number of items that a call touches, and the shares of a sample."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partita_migrate.understanding.analysis import (
    Analysis,
    KeySkew,
    SizeDistribution,
    TableAnalysis,
)
from partita_migrate.understanding.measuring.candidate_keys import candidate_keys
from partita_migrate.understanding.measuring.table_sampling import shares
from partita_migrate.understanding.patterns.access_patterns import AccessPattern, Patterns
from partita_migrate.understanding.patterns.item_counts import with_items
from partita_migrate.understanding.schema.inventory import SourceTable

from ...shop import orders, shop

ANALYSIS = Analysis(
    tables=[
        TableAnalysis(
            table="orders",
            rows=1000,
            sampled=1000,
            confidence="",
            item_bytes=SizeDistribution(mean=1, p50=1, p95=1, p99=1, max=1),
            columns=[],
            keys=[
                KeySkew(
                    columns=["customer_id"],
                    distinct=40,
                    rows_per_value=25,
                    rows_per_value_max=50,
                    top_share=0.05,
                    entropy_bits=5,
                )
            ],
        )
    ]
)


def pattern(**members: Any) -> AccessPattern:
    usual: dict[str, Any] = {
        "name": "x",
        "category": "range of items",
        "operation": "read",
        "table": "orders",
        "calls_per_second": 1.0,
        "items": 0.0,
    }
    return AccessPattern(**(usual | members))


@pytest.mark.parametrize(
    ("members", "items"),
    [
        ({"equality": ["orders.customer_id"]}, 25),
        ({"equality": ["orders.customer_id"], "limit": 10}, 10),
        ({"equality": ["orders.customer_id", "orders.status"]}, 25),
        ({"equality": ["orders.customer_id"], "operation": "delete"}, 25),
        ({}, 1000),
        ({"limit": 3}, 3),
        ({"operation": "aggregate"}, 1000),
        ({"operation": "aggregate", "limit": 5}, 1000),
        ({"operation": "insert"}, 1),
        ({"equality": ["customer.email"]}, 25),
        ({"table": "customer", "equality": ["customer.id"], "joins": ["orders"]}, 25),
        ({"equality": ["orders.customer_id"], "items": 4.5}, 4.5),
    ],
)
def test_what_nobody_counted_is_told_by_the_sampled_rows(
    members: dict[str, Any], items: float
) -> None:
    known = with_items(Patterns(patterns=[pattern(**members)]), shop("mysql"), ANALYSIS)
    assert known.patterns[0].items == items


def test_values_that_occur_often_are_asked_for_often() -> None:
    (table,) = ANALYSIS.tables
    skewed = replace(table, keys=[replace(table.keys[0], rows_per_call=400.0)])
    by_customer = pattern(equality=["orders.customer_id"])
    known = with_items(Patterns(patterns=[by_customer]), shop("mysql"), Analysis(tables=[skewed]))
    assert known.patterns[0].items == 400


tables = st.lists(st.integers(0, 10**9), min_size=1, max_size=40).map(
    lambda counts: [
        SourceTable(name=f"t{i}", columns=[], row_count=count) for i, count in enumerate(counts)
    ]
)


@given(tables, st.integers(1000, 10**6))
def test_a_sample_is_shared_by_all_and_small_tables_leave_theirs_to_others(
    found: list[SourceTable], total: int
) -> None:
    given_rows = shares(found, total)
    assert sum(given_rows.values()) <= total + len(found)
    assert min(given_rows.values()) >= 1
    largest = max(found, key=lambda table: table.row_count)
    assert given_rows[largest.name] >= max(given_rows.values()) - 1
    if sum(max(table.row_count, 1000) for table in found) <= total:
        assert all(given_rows[table.name] >= table.row_count for table in found)


def test_wide_rows_are_sampled_less() -> None:
    wide = SourceTable(name="wide", columns=[], row_count=10**6, data_bytes=10**12)
    assert shares([wide], 10**6)["wide"] < 3000


def test_every_column_that_names_or_finds_rows_is_a_candidate() -> None:
    by_status = pattern(equality=["orders.status", "orders.customer_id"])
    keys = [key.columns for key in candidate_keys(orders(), [by_status])]
    assert keys == [["id"], ["customer_id"], ["status", "customer_id"], ["status"]]
