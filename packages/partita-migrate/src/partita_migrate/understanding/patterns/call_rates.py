"""Parses rates as people write them: a number per second, "120/min", "8 million per day",
"1.5k/s"."""

from __future__ import annotations

import math
import re

_SECONDS = {
    "s": 1, "sec": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
    "d": 86_400, "day": 86_400, "days": 86_400,
    "week": 604_800, "month": 2_628_000, "year": 31_536_000,
}  # fmt: skip
_TIMES = {
    "": 1.0, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9,
}  # fmt: skip
_RATE = re.compile(
    r"(?P<number>\d[\d,_ ]*(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?P<times>thousand|million|billion|bn|k|m|)"
    r"\s*(?:calls|requests|times|)\s*(?:(?:/|per|an?|each|every)\s*(?P<unit>[a-z]+))?",
)


def rate_per_second(written: object) -> float | None:
    """Returns None for a text that is not a rate."""
    # bool is a subclass of int, and `rate = true` is a mistake.
    if isinstance(written, bool):
        return None
    if isinstance(written, int | float):
        return float(written) if math.isfinite(written) and written >= 0 else None
    match = _RATE.fullmatch(str(written).strip().lower())
    if match is None:
        return None
    seconds = _SECONDS.get(match["unit"] or "s")
    if seconds is None:
        return None
    rate = float(re.sub(r"[,_ ]", "", match["number"])) * _TIMES[match["times"]] / seconds
    return rate if math.isfinite(rate) else None
