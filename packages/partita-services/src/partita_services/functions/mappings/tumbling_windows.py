"""Tumbling windows: the events that describe them, and the state that a function passes from call
to call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from math import floor
from typing import Any

import msgspec
import orjson

from partita.foundation.service_limits import MB
from partita_services.functions.mappings.event_sources import SourceRecord, SourceShard
from partita_services.iso_time import iso_time

STATE_BYTES_MAX = 1 * MB


class TumblingWindow(msgspec.Struct):
    """An open window. Its state is what the function returned last."""

    start: int
    end: int
    state: Any = {}

    @property
    def is_too_large(self) -> bool:
        return len(orjson.dumps(self.state)) > STATE_BYTES_MAX


def window_of(moment: float, seconds: int) -> TumblingWindow:
    start = floor(moment) // seconds * seconds
    return TumblingWindow(start, start + seconds)


def by_window(
    records: Iterable[SourceRecord], seconds: int
) -> Iterator[tuple[TumblingWindow, list[SourceRecord]]]:
    """Groups records by window, in their order."""
    for start, group in groupby(
        records, lambda record: window_of(record.created_at, seconds).start
    ):
        yield TumblingWindow(start, start + seconds), list(group)


def event_of_window(
    window: TumblingWindow,
    shard: SourceShard,
    records: Iterable[SourceRecord],
    *,
    is_final: bool,
    is_early: bool,
) -> bytes:
    """The event for a call within a window. (Lambda guide, "Using Lambda for stateful
    processing")"""
    members = {
        "window": {
            "start": iso_time(window.start, "seconds"),
            "end": iso_time(window.end, "seconds"),
        },
        "state": window.state,
        "shardId": shard.name,
        "eventSourceARN": shard.stream_arn,
        "isFinalInvokeForWindow": is_final,
        "isWindowTerminatedEarly": is_early,
    }
    # The records are JSON already, and need not be encoded again.
    bodies = b",".join(record.body for record in records)
    return b'{"Records":[%b],%b' % (bodies, orjson.dumps(members)[1:])


def state_in(result: Any) -> Any:
    """The state that a function has returned; an empty one when it returned none."""
    state = result.get("state") if isinstance(result, dict) else None
    return {} if state is None else state
