"""Items put over older ones, in a process of its own: it needs little more than a client."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from partita_migrate.moving.target import Target
from partita_migrate.moving.workers import Handler


class Setup(Struct):
    endpoint: str | None
    region: str
    write_units: float | None
    agent: str


class Put(Struct):
    """What became of some requests."""

    refused: list[tuple[int, str]]
    """The places of those that the target did not take, and why."""
    errors: int
    """Of the target, and answers that did not come; these were asked again."""


def worker(content: bytes) -> Handler:
    setup = msgspec.msgpack.decode(content, type=Setup)
    target = Target(setup.endpoint, setup.region, setup.write_units, setup.agent)
    decode = msgspec.msgpack.Decoder(list[bytes]).decode

    def handle(task: bytes) -> Put:
        errors = target.errors
        refused = target.put_bodies(decode(task))
        return Put(refused, target.errors - errors)

    return handle
