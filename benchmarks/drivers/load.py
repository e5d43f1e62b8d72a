"""What a driver gets and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Load:
    """Requests of one operation, sent one after the other and then again from the first."""

    name: str
    target: str
    bodies: list[bytes]


@dataclass(frozen=True)
class Measurement:
    requests: int
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    refused: int
    """Answers that were not 2xx."""
    broken: int
    """Requests without an answer: connections refused or lost, time-outs."""


class Driver(Protocol):
    @property
    def name(self) -> str: ...

    def drive(self, port: int, load: Load, connections: int, seconds: int) -> Measurement:
        """Keep that many connections busy, one request at a time on each."""
        ...
