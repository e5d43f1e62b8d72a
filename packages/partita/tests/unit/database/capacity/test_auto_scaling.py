"""Target tracking: what a policy wants, from the minutes before."""

from __future__ import annotations

from typing import Any

import pytest

from partita.database.capacity.scaling.auto_scaling import ScalingPolicy, scaled_units

NOW = 1000 * 60.0


def policy(**more: Any) -> ScalingPolicy:
    figures: dict[str, Any] = {
        "minimum": 5,
        "maximum": 1000,
        "target_percent": 70.0,
        "policy_name": "p",
    }
    return ScalingPolicy(**(figures | more))


def minutes(*units_a_second: float) -> dict[int, float]:
    """Consumption of the last minutes, the newest first."""
    return {999 - back: units * 60 for back, units in enumerate(units_a_second)}


def test_out_after_two_minutes_above_the_target() -> None:
    assert scaled_units(policy(), 100, minutes(90), NOW) == 100
    assert scaled_units(policy(), 100, minutes(90, 60), NOW) == 100
    assert scaled_units(policy(), 100, minutes(90, 84), NOW) == 129


def test_exactly_at_the_target_nothing_happens() -> None:
    assert scaled_units(policy(), 100, minutes(70, 70), NOW) == 100


def test_in_after_fifteen_minutes_below() -> None:
    assert scaled_units(policy(), 100, minutes(*[7] * 14), NOW) == 100
    assert scaled_units(policy(), 100, minutes(*[7] * 15), NOW) == 10
    assert scaled_units(policy(), 100, minutes(*[7] * 14, 21), NOW) == 30


def test_a_minute_without_consumption_has_no_data() -> None:
    assert scaled_units(policy(), 100, minutes(*[7] * 7, 0, *[7] * 7), NOW) == 100
    assert scaled_units(policy(), 100, {}, NOW) == 100


def test_the_minute_that_is_running_does_not_count() -> None:
    assert scaled_units(policy(), 100, {1000: 1e9, 999: 1e9}, NOW) == 100


def test_units_stay_between_minimum_and_maximum() -> None:
    assert scaled_units(policy(maximum=120), 100, minutes(90, 90), NOW) == 120
    assert scaled_units(policy(minimum=50), 100, minutes(*[7] * 15), NOW) == 50
    assert scaled_units(policy(minimum=200), 100, {}, NOW) == 200
    assert scaled_units(policy(maximum=60), 100, {}, NOW) == 60


def test_scale_in_can_be_switched_off() -> None:
    assert scaled_units(policy(disable_scale_in=True), 100, minutes(*[7] * 15), NOW) == 100


@pytest.mark.parametrize(("passed", "expected"), [(59, 100), (60, 129)])
def test_a_cool_down_is_waited_for(passed: float, expected: int) -> None:
    cooled = policy(scale_out_cooldown=60)
    assert scaled_units(cooled, 100, minutes(90, 90), NOW, NOW - passed) == expected
    quiet = policy(scale_in_cooldown=60)
    wanted = scaled_units(quiet, 100, minutes(*[7] * 15), NOW, NOW - passed)
    assert wanted == (10 if passed >= 60 else 100)


def test_steady_consumption_settles() -> None:
    units = 100
    for _ in range(5):
        units = scaled_units(policy(), units, minutes(*[90] * 15), NOW)
    assert units == 129
