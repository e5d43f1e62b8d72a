"""Token buckets, on a clock of numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.database.capacity.token_buckets import BURST_SECONDS, TokenBucket


def burst(rate: float, **more: float) -> TokenBucket:
    return TokenBucket(rate, 0, burst_seconds=BURST_SECONDS, **more)


def test_a_new_bucket_has_one_second_of_units() -> None:
    bucket = burst(5)
    for _ in range(5):
        assert bucket.allows_write(1, 0)
        bucket.take(1)
    assert not bucket.allows_write(1, 0)


def test_units_come_back_once_a_second_and_not_before() -> None:
    bucket = burst(5)
    bucket.take(5)
    assert not bucket.allows_write(1, 0.999)
    assert bucket.allows_write(5, 1.0)


def test_what_is_not_used_is_saved_for_300_seconds() -> None:
    bucket = burst(5)
    bucket.refill(299)
    assert bucket.tokens == 1500
    bucket.refill(10_000)
    assert bucket.tokens == 1500


def test_a_bucket_that_was_idle_before_begins_with_what_was_saved() -> None:
    assert burst(5, idle_seconds=9.9).tokens == 50
    assert burst(5, idle_seconds=1e9).tokens == 1500


def test_a_read_may_leave_a_debt_that_the_next_seconds_pay_back() -> None:
    bucket = burst(10)
    assert bucket.allows_read(0)
    bucket.take(128)
    assert not bucket.allows_read(11)
    assert bucket.allows_read(12)


def test_a_write_must_be_covered() -> None:
    bucket = burst(10)
    assert not bucket.allows_write(11, 0)
    assert bucket.allows_write(11, 1)


def test_a_write_larger_than_the_bucket_takes_a_full_one() -> None:
    bucket = burst(1)
    assert not bucket.allows_write(400, 298)
    assert bucket.allows_write(400, 299)


def test_another_rate_keeps_what_was_saved_as_far_as_there_is_room() -> None:
    bucket = burst(10)
    bucket.change_rate(1, 1000)
    assert bucket.tokens == 300
    bucket.change_rate(100, 1000)
    assert bucket.tokens == 300 + 99


def test_a_clock_put_back_gives_nothing() -> None:
    bucket = TokenBucket(5, 100)
    bucket.take(5)
    assert not bucket.allows_write(1, 50)
    assert bucket.allows_write(5, 51)


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30)), max_size=60),
)
def test_no_more_is_served_than_was_saved_and_came_back(
    rate: int, asked: list[tuple[int, int]]
) -> None:
    bucket, now, served = burst(rate), 0, 0
    for seconds, units in asked:
        now += seconds
        if bucket.allows_write(units, now):
            bucket.take(units)
            served += units
        assert served <= rate * (now + 1) + max(0, units - bucket.room)
