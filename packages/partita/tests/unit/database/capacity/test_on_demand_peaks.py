"""On-demand tables start with an initial throughput, and grow to twice the previous peak."""

from __future__ import annotations

from partita.database.capacity.scaling.on_demand_peaks import WINDOW_SECONDS, PreviousPeak


def test_a_new_table_serves_what_it_begins_with() -> None:
    assert PreviousPeak(4000, 0).rate(0) == 4000


def test_a_peak_counts_when_its_half_hour_is_over() -> None:
    peak = PreviousPeak(4000, 0)
    for _ in range(10):
        peak.use(300, 60)
    assert peak.rate(WINDOW_SECONDS - 1) == 4000
    assert peak.rate(WINDOW_SECONDS) == 6000


def test_a_peak_is_what_was_used_in_one_second() -> None:
    peak = PreviousPeak(4000, 0)
    for second in range(10):
        peak.use(2100, second)
    assert peak.rate(WINDOW_SECONDS) == 4200


def test_it_does_not_scale_down() -> None:
    peak = PreviousPeak(4000, 0)
    peak.use(5000, 1)
    assert peak.rate(WINDOW_SECONDS) == 10_000
    assert peak.rate(100 * WINDOW_SECONDS) == 10_000


def test_doubling_goes_on() -> None:
    peak, now = PreviousPeak(4000, 0), 0.0
    for expected in (8000, 16_000, 32_000):
        peak.use(peak.rate(now), now)
        now += WINDOW_SECONDS
        assert peak.rate(now) == expected
