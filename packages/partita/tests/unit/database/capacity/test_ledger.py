"""The ledger: charges are paid together or not at all."""

from __future__ import annotations

from typing import Any

from partita.database.capacity.capacity_accounts import CapacityAccount, Entitlement
from partita.database.capacity.insights_rules import (
    ACCESSED_AND_THROTTLED_KEYS,
    THROTTLED_KEYS,
    rule_kinds,
)
from partita.database.capacity.ledger import ENFORCE, OBSERVE, OFF, Charge, Ledger
from partita.database.capacity.throttling_errors import SCALING, TABLE_EXCEEDED
from partita.database.item.key_encoding import KeyAttribute

KEYS = ((KeyAttribute("id", "S"),), ())
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/t"


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def provisioned(units: float, index: str | None = None) -> CapacityAccount:
    return CapacityAccount("t", index, ARN, KEYS, Entitlement(False, units, units), 0)


def on_demand(**more: Any) -> CapacityAccount:
    return CapacityAccount("t", None, ARN, KEYS, Entitlement(True, 12_000, 4_000, **more), 0)


def write(account: CapacityAccount, units: float, place: int = 0, key: str = "k") -> Charge:
    return Charge(account, True, units, place, (key,))


def test_a_write_that_an_index_cannot_pay_costs_the_table_nothing() -> None:
    ledger, table, index = Ledger(Time(), ENFORCE), provisioned(10), provisioned(1, "by-date")
    assert ledger.admit([write(table, 1), write(index, 1)]) is None
    refusal = ledger.admit([write(table, 1), write(index, 1)])
    assert refusal is not None
    assert refusal.reason == "IndexWriteProvisionedThroughputExceeded"
    assert ledger.admit([write(table, 9)]) is None
    assert (table.write.consumed, index.write.consumed) == (10, 1)


def test_a_transaction_is_paid_whole_or_not_at_all() -> None:
    ledger, table = Ledger(Time(), ENFORCE), provisioned(10)
    refusals = ledger.admit_all([[write(table, 4)], [write(table, 4)], [write(table, 4)]])
    assert [refusal and refusal.reason for refusal in refusals] == [
        None,
        None,
        "TableWriteProvisionedThroughputExceeded",
    ]
    assert table.write.consumed == 0
    assert ledger.admit([write(table, 10)]) is None


def test_a_transaction_that_no_bucket_could_cover_takes_full_ones() -> None:
    time = Time()
    ledger, table = Ledger(time, ENFORCE), on_demand()
    large = [[write(table, 800)], [write(table, 800)]]
    assert ledger.admit_all(large) == [None, None]
    assert table.write.throttled == {}
    refusals = ledger.admit_all([[write(table, 800)], [write(table, 800)]])
    assert [refusal and refusal.limit for refusal in refusals] == ["KeyRangeThroughputExceeded"] * 2
    # 600 units are owed by the partition, and paid back with the first second.
    time.now = 1
    assert ledger.admit([write(table, 401)]) is not None
    assert ledger.admit([write(table, 400)]) is None


def test_observing_counts_what_would_be_refused_and_lets_it_pass() -> None:
    ledger, table = Ledger(Time(), OBSERVE), provisioned(5)
    assert [ledger.admit([write(table, 1)]) for _ in range(8)] == [None] * 8
    assert table.write.consumed == 8
    assert table.write.throttled == {"ProvisionedThroughputExceeded": 3}
    assert table.write.throttled_units == 3


def test_switched_off_it_only_counts() -> None:
    ledger, table = Ledger(Time(), OFF), provisioned(1)
    assert not ledger.is_on
    assert ledger.admit([write(table, 100)]) is None
    assert (table.write.consumed, table.write.throttled) == (100, {})


def test_reads_and_writes_have_units_of_their_own() -> None:
    ledger, table = Ledger(Time(), ENFORCE), provisioned(1)
    assert ledger.admit([write(table, 1)]) is None
    assert ledger.admit([Charge(table, False, 128.0, 0, None)]) is None
    refusal = ledger.admit([Charge(table, False, 0.5, 0, None)])
    assert refusal is not None
    assert refusal.reason == "TableReadProvisionedThroughputExceeded"


def test_one_key_gets_1000_write_units_a_second_whatever_the_table_has() -> None:
    time = Time()
    ledger, table = Ledger(time, ENFORCE), provisioned(5000)
    assert ledger.admit([write(table, 1000)]) is None
    refusal = ledger.admit([write(table, 1)])
    assert refusal is not None
    assert refusal.reason == "TableWriteKeyRangeThroughputExceeded"
    assert refusal.text == TABLE_EXCEEDED
    assert ledger.admit([write(table, 1000, place=1 << 63)]) is None
    time.now = 1
    assert ledger.admit([write(table, 1000)]) is None


def test_on_demand_serves_4000_writes_at_first_and_twice_the_peak_later() -> None:
    time = Time()
    ledger, table = Ledger(time, ENFORCE), on_demand()

    def served() -> int:
        places = range(0, 1 << 64, 1 << 58)
        return sum(ledger.admit([write(table, 100, place)]) is None for place in places) * 100

    assert served() == 4000
    refusal = ledger.admit([write(table, 100)])
    assert refusal is not None
    assert (refusal.text, refusal.cancellation_reason()["Code"]) == (SCALING, "ThrottlingError")
    time.now = 1800
    assert served() == 6400
    assert len(table.partitions) == 8
    time.now = 3600
    table.follow_peak(True, time.now)
    assert len(table.partitions) == 13
    for _ in range(2):
        assert table.write.refusing_limit(6400, time.now) is None
        table.write.take(6400)
    assert table.write.refusing_limit(1, time.now) == "KeyRangeThroughputExceeded"


def test_a_maximum_of_an_on_demand_table_is_kept() -> None:
    time = Time()
    ledger, table = Ledger(time, ENFORCE), on_demand(write_maximum=10.0)
    assert ledger.admit([write(table, 10)]) is None
    refusal = ledger.admit([write(table, 1)])
    assert refusal is not None
    assert refusal.reason == "TableWriteMaxOnDemandThroughputExceeded"
    time.now = 1
    assert ledger.admit([write(table, 10)]) is None


def test_contributors_are_counted_as_the_mode_wants_it() -> None:
    ledger, table = Ledger(Time(), ENFORCE), provisioned(2)
    table.watch_keys(rule_kinds(ACCESSED_AND_THROTTLED_KEYS, has_sort_key=True), 5.0)
    for key in ("a", "b", "a"):
        ledger.admit([Charge(table, True, 1, 0, (key, "1"))])
    assert table.insights is not None
    rules = table.insights.rules()
    assert {kind: rule.top(1) for kind, rule in rules.items()} == {
        "PKC": [(("a",), 1)],
        "SKC": [(("a", "1"), 1)],
        "PKT": [(("a",), 1)],
        "SKT": [(("a", "1"), 1)],
    }
    table.watch_keys(rule_kinds(THROTTLED_KEYS, has_sort_key=True), 5.0)
    assert list(table.insights.rules()) == ["PKT", "SKT"]
    assert table.insights.rules()["PKT"].total == 1
    table.watch_keys(["PKT"], 6.0)
    assert table.insights.rules()["PKT"].total == 0
    table.watch_keys([], None)
    assert table.insights is None


def test_consumption_is_known_by_the_minute() -> None:
    time = Time()
    ledger, table = Ledger(time, OFF), provisioned(1)
    for now in (0, 59, 60, 7200):
        time.now = now
        ledger.admit([write(table, 3)])
    assert table.write.minutes == {0: 6, 1: 3, 120: 3}
    for now in range(0, 100 * 60, 60):
        time.now = 10_000 + now
        ledger.admit([write(table, 1)])
    assert len(table.write.minutes) <= 60
