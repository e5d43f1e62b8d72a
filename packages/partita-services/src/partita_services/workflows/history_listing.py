"""The history of an execution as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

TEXT_CHARS_MAX = 72
HEADINGS = ("id", "seconds", "type", "state", "what")
_SHOWN_DETAILS = ("error", "cause", "output", "input", "resource", "name", "index", "length")
"""The details of an event that can be shown; the first ones win."""
_NAMING = ("StateEntered", "StateExited")


def lines(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    rows = [HEADINGS, *_rows(events)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def _rows(events: Iterable[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    began: float | None = None
    states: dict[int, str] = {0: ""}
    for event in events:
        began = event["timestamp"] if began is None else began
        details = _details(event)
        # An event belongs to the state of the previous one, unless it names its own.
        named = details.get("name") if event["type"].endswith(_NAMING) else None
        state = named or states.get(event.get("previousEventId", 0), "")
        states[event["id"]] = "" if event["type"].endswith("StateExited") else state
        seconds = f"{event['timestamp'] - began:.3f}"
        yield str(event["id"]), seconds, event["type"], state, _what(details)


def _details(event: dict[str, Any]) -> dict[str, Any]:
    for name, value in event.items():
        if name.endswith("EventDetails"):
            details: dict[str, Any] = value
            return details
    return {}


def _what(details: dict[str, Any]) -> str:
    parts = [str(details[name]) for name in _SHOWN_DETAILS[:2] if details.get(name)]
    if not parts:
        parts = [str(details[name]) for name in _SHOWN_DETAILS[2:] if name in details][:1]
    text = ": ".join(parts).replace("\n", " ")
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[: TEXT_CHARS_MAX - 1]}…"
