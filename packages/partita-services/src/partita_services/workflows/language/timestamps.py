"""Timestamps of the language: RFC 3339 with an upper-case T, and Z or an offset."""

from __future__ import annotations

import re
from datetime import datetime

from partita_services.iso_time import iso_time

_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")


def parse_timestamp(text: object) -> float | None:
    """Seconds since the epoch; None when it is not a timestamp."""
    match = _TIMESTAMP.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    whole, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(whole + offset.replace("Z", "+00:00"))
        return moment.timestamp() + float(fraction or 0)
    except (ValueError, OverflowError):
        return None


def format_timestamp(seconds: float) -> str:
    """The format of the context object: milliseconds, UTC."""
    return iso_time(seconds)
