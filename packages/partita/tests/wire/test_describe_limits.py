"""DescribeLimits: the quotas of an account."""

from __future__ import annotations

from typing import Any

QUOTAS = {
    "AccountMaxReadCapacityUnits",
    "AccountMaxWriteCapacityUnits",
    "TableMaxReadCapacityUnits",
    "TableMaxWriteCapacityUnits",
}


def test_an_account_has_four_quotas(raw: Any) -> None:
    answer = raw("DescribeLimits", {})
    assert answer.status == 200
    assert set(answer.body) == QUOTAS
    assert all(isinstance(quota, int) and quota > 0 for quota in answer.body.values())


def test_the_quotas_are_those_of_a_new_account(client: Any) -> None:
    # Guide, "Service, account, and table quotas": 80,000 per account and 40,000 per table
    answer = client.describe_limits()
    assert {name: answer[name] for name in QUOTAS} == {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }


def test_parameters_are_ignored(raw: Any) -> None:
    assert raw("DescribeLimits", {"Nonsense": True}).status == 200
