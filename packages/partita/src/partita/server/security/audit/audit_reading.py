"""Reads the latest events of the audit log from its end, a bounded part at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from partita.foundation.service_limits import MB
from partita.server.security.audit.audit_files import CURRENT, lines_from_end, rotated

LOOK_BYTES_MAX: Final = 8 * MB


class AuditEventPage(NamedTuple):
    events: list[dict[str, Any]]
    """The events, newest first."""
    before: int | None
    """The number at which the next page continues; None at the beginning of the log."""


def latest(folder: Path, most: int, before: int | None = None, text: str = "") -> AuditEventPage:
    """Returns the latest events with a number below `before` that contain a text.

    A page may be empty although there are more: one call reads at most LOOK_BYTES_MAX.
    """
    searched_text = text.lower().encode()
    events: list[dict[str, Any]] = []
    read_bytes, last = 0, None
    for line in _lines_from_end(folder, before):
        read_bytes += len(line)
        try:
            event = json.loads(line)
            number = int(event["sequence"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
        if before is not None and number >= before:
            continue
        last = number
        if searched_text in line.lower():
            events.append(event)
        if len(events) == most or read_bytes > LOOK_BYTES_MAX:
            return AuditEventPage(events, last)
    return AuditEventPage(events, None)


def _lines_from_end(folder: Path, before: int | None) -> Iterator[bytes]:
    if (folder / CURRENT).exists():
        yield from lines_from_end(folder / CURRENT)
    for first, _, path in reversed(rotated(folder)):
        if before is None or first < before:
            yield from lines_from_end(path)
