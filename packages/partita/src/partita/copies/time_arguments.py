"""Times on the command line: moments such as 14:02, 2026-11-16T14:02:10Z, 10m (ago) or now, and
durations such as 6h."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from partita.errors import PartitaError

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_EPOCH: Final = re.compile(r"\d{9,}(\.\d+)?")
_AGO: Final = re.compile(r"(\d+)([smhd])(?: ago)?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


def moment_of(text: str, now: float) -> float:
    """Parses a moment into seconds since the epoch.

    A time without a zone is local. A time of day is its last occurrence: 23:00 in the morning is
    yesterday's.
    """
    text = text.strip()
    if text == "now":
        return now
    if _EPOCH.fullmatch(text):
        return float(text)
    if ago := _AGO.fullmatch(text):
        return now - int(ago[1]) * UNITS[ago[2]]
    try:
        if clock := _CLOCK.fullmatch(text):
            return _time_of_day(now, *(int(part or 0) for part in clock.groups()))
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise PartitaError(
            f"{text!r} is not a time; write 14:02, 14:02:10, 2026-11-16T14:02:10Z, 10m (ago) or "
            "now."
        ) from None


def _time_of_day(now: float, hour: int, minute: int, second: int) -> float:
    today = datetime.fromtimestamp(now).replace(
        hour=hour, minute=minute, second=second, microsecond=0
    )
    if today.timestamp() > now:
        today -= timedelta(days=1)
    return today.timestamp()


def seconds_of(text: str) -> int:
    """Parses a duration such as 6h, 30m or 1d."""
    match = _AGO.fullmatch(text)
    if match is None or not int(match[1]):
        raise PartitaError(f"{text!r} is not a duration; write for example 30m, 6h or 1d.")
    return int(match[1]) * UNITS[match[2]]


def format_moment(moment: float) -> str:
    """Formats a moment in UTC, as `moment_of` reads it: 2026-11-16T14:02:10.000Z."""
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"
