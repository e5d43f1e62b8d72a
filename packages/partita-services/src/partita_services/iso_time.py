"""ISO 8601 times in UTC, as AWS's services write them: 2026-11-18T19:30:00.123Z."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_time(seconds: float, precision: str = "milliseconds") -> str:
    """Formats seconds since the epoch; `precision` is a `timespec` of `datetime.isoformat`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision)[:-6] + "Z"
