"""Samples of a move while it is followed: lag, latency, errors and differences, over days."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec import Struct

from partita.client import ClientError
from partita_migrate.moving.move import Move
from partita_migrate.moving.way_back.stream_markers import marker_key
from partita_migrate.row_store.state_store import MOVE
from partita_migrate.workspace.migration_folder import Folder

WATCH = "watch.jsonl"
EVERY_SECONDS = 60.0
DAY_SECONDS = 86_400


class MoveSample(Struct, kw_only=True, omit_defaults=True):
    """One line of `move/watch.jsonl`."""

    at: float
    lag_seconds: float
    latency_ms: float | None = None
    """The latency of a GetItem at the target; None when it failed."""
    errors: int = 0
    """Error responses of the target since the last sample, throttling included."""
    differences: int = 0
    """Rows or items that differ or could not be carried over."""


class SampleSummary(Struct, kw_only=True):
    """All samples of a move in a few figures."""

    days: float
    samples: int
    errors: int
    latency_ms_median: float
    latency_ms_99th: float
    lag_seconds_max: float
    differences_max: int


class MoveSampler:
    """Takes a sample once a minute; `look` may be called as often as is convenient."""

    def __init__(self, move: Move) -> None:
        self.move = move
        self._next = 0.0
        self._errors = 0

    def look(self, lag_seconds: float, differences: Callable[[], int]) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_SECONDS
        latency_ms = self._latency_ms()
        errors, self._errors = self.move.target.errors - self._errors, self.move.target.errors
        sample = MoveSample(
            at=time.time(),
            lag_seconds=round(lag_seconds, 3),
            latency_ms=latency_ms,
            errors=errors,
            differences=differences(),
        )
        with (self.move.folder.path / MOVE / WATCH).open("ab") as file:
            file.write(msgspec.json.encode(sample) + b"\n")

    def _latency_ms(self) -> float | None:
        table = self.move.design.tables[0]
        began = time.perf_counter()
        try:
            self.move.target.call_once("GetItem", TableName=table.name, Key=marker_key(table))
        except ClientError:
            return None
        return round((time.perf_counter() - began) * 1000, 3)


def summarize_samples(folder: Folder) -> SampleSummary | None:
    """Returns all samples in a few figures; None without samples."""
    path = folder.path / MOVE / WATCH
    if not path.is_file():
        return None
    samples = []
    for line in path.read_bytes().splitlines():
        # A kill may have cut off the last line.
        with suppress(msgspec.DecodeError):
            samples.append(msgspec.json.decode(line, type=MoveSample))
    if not samples:
        return None
    latencies = sorted(
        sample.latency_ms for sample in samples if sample.latency_ms is not None
    ) or [0.0]
    return SampleSummary(
        days=round((samples[-1].at - samples[0].at) / DAY_SECONDS, 2),
        samples=len(samples),
        errors=sum(sample.errors for sample in samples),
        latency_ms_median=latencies[len(latencies) // 2],
        latency_ms_99th=latencies[min(len(latencies) * 99 // 100, len(latencies) - 1)],
        lag_seconds_max=max(sample.lag_seconds for sample in samples),
        differences_max=max(sample.differences for sample in samples),
    )
