"""The input and the result of a driver."""

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
    """The number of responses with a status other than 2xx."""
    broken: int
    """The number of requests without a response: refused or lost connections, timeouts."""


class Driver(Protocol):
    @property
    def name(self) -> str: ...

    def drive(self, port: int, load: Load, connections: int, seconds: int) -> Measurement:
        """Keeps that many connections busy, with one request at a time on each."""
        ...
