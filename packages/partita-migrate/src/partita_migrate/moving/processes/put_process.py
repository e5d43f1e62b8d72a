"""Puts items over older ones in a process of its own, which needs little more than a client."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from partita_migrate.moving.processes.worker_processes import Handler
from partita_migrate.moving.target_access.target_client import TargetClient


class PutProcessSetup(Struct):
    """Sent to the process when it starts."""

    endpoint: str | None
    region: str
    write_units: float | None
    agent: str


class PutResult(Struct):
    """The outcome of some requests."""

    refused: list[tuple[int, str]]
    """The indexes of requests that the target refused, and why."""
    errors: int
    """Error responses and missing responses; these requests were sent again."""


def worker(content: bytes) -> Handler:
    """Handles put tasks in a process of its own."""
    setup = msgspec.msgpack.decode(content, type=PutProcessSetup)
    target = TargetClient(setup.endpoint, setup.region, setup.write_units, setup.agent)
    decode = msgspec.msgpack.Decoder(list[bytes]).decode

    def handle(task: bytes) -> PutResult:
        errors = target.errors
        refused = target.put_bodies(decode(task))
        return PutResult(refused, target.errors - errors)

    return handle
