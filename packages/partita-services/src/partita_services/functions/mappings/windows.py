"""Tumbling windows: what a function is told of the window, and the state that it hands on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from math import floor
from typing import Any

import msgspec
import orjson

from partita.limits import MB
from partita_services.functions.mappings.sources import Record, ShardOf

STATE_BYTES_MAX = 1 * MB


class Window(msgspec.Struct):
    """One that is open. Its state is what the function returned last."""

    start: int
    end: int
    state: Any = {}

    @property
    def is_too_large(self) -> bool:
        return len(orjson.dumps(self.state)) > STATE_BYTES_MAX


def window_of(moment: float, seconds: int) -> Window:
    start = floor(moment) // seconds * seconds
    return Window(start, start + seconds)


def by_window(records: Iterable[Record], seconds: int) -> Iterator[tuple[Window, list[Record]]]:
    """Records in their order, those of one window together."""
    for start, group in groupby(records, lambda one: window_of(one.created_at, seconds).start):
        yield Window(start, start + seconds), list(group)


def event_of_window(
    window: Window, shard: ShardOf, records: Iterable[Record], *, is_final: bool, is_early: bool
) -> bytes:
    """(Lambda guide, "Using Lambda for stateful processing of streams")"""
    told = {
        "window": {"start": _moment(window.start), "end": _moment(window.end)},
        "state": window.state,
        "shardId": shard.name,
        "eventSourceARN": shard.stream_arn,
        "isFinalInvokeForWindow": is_final,
        "isWindowTerminatedEarly": is_early,
    }
    bodies = b",".join(record.body for record in records)
    return b'{"Records":[%b],%b' % (bodies, orjson.dumps(told)[1:])


def state_in(result: Any) -> Any:
    """What the function hands on; nothing, when it returns no state."""
    state = result.get("state") if isinstance(result, dict) else None
    return {} if state is None else state


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
