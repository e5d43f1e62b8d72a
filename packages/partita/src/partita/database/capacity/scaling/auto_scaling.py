"""Auto scaling: computes the units that a policy wants from the consumption of the last minutes.

This is target tracking as the service does it (guide, "Managing throughput capacity with auto
scaling"): a table is scaled out when utilization was above the target for two minutes, and in when
it was below for fifteen. A minute without consumption has no data, so an unused table is not scaled
in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

import msgspec

MINUTE_SECONDS = 60
OUT_MINUTES = 2
IN_MINUTES = 15


class ScalingPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The scaling policy of reads or writes: the range of units, and the target utilization."""

    minimum: int
    maximum: int
    target_percent: float
    policy_name: str
    disable_scale_in: bool | None = None
    scale_in_cooldown: int | None = None
    scale_out_cooldown: int | None = None

    def within(self, units: int) -> int:
        return max(self.minimum, min(self.maximum, units))


def scaled_units(
    policy: ScalingPolicy,
    units: int,
    minutes: Mapping[int, float],
    now: float,
    scaled_at: float | None = None,
) -> int:
    """Returns the units to provision instead of `units`.

    `minutes` has the units consumed, by minute since the epoch; `scaled_at` is when the units were
    last changed, for the cooldown.
    """
    allowed = policy.within(units)
    if allowed != units:
        return allowed
    since = float("inf") if scaled_at is None else now - scaled_at
    target = _units_for(policy, minutes, now, OUT_MINUTES, min)
    if target > units and since >= (policy.scale_out_cooldown or 0):
        return policy.within(_units_for(policy, minutes, now, OUT_MINUTES, max))
    target = _units_for(policy, minutes, now, IN_MINUTES, max)
    if 0 < target < units and not policy.disable_scale_in:
        if since >= (policy.scale_in_cooldown or 0):
            return policy.within(target)
    return units


def _units_for(
    policy: ScalingPolicy,
    minutes: Mapping[int, float],
    now: float,
    count: int,
    pick: Callable[[list[float]], float],
) -> int:
    """Returns the units at which the minimum or maximum of the last minutes meets the target.

    `pick` is min or max. Returns 0 if one of the minutes has no data.
    """
    this_minute = int(now // MINUTE_SECONDS)
    consumed = [minutes.get(this_minute - back, 0.0) for back in range(1, count + 1)]
    if min(consumed) <= 0:
        return 0
    return ceil(pick(consumed) * 100 / (MINUTE_SECONDS * policy.target_percent))
