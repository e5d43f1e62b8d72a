"""What the server and the process for large requests say to each other, over a socket of theirs.

The server sends a job. The process asks for rights, values, holds and payments, one at a time and
each answered at once, then sends what it has decided. A message is its length and MessagePack.
"""

from __future__ import annotations

import struct

import msgspec

from partita.database.tables.schema import ResourcePolicy

LENGTH = struct.Struct(">I")


class Job(msgspec.Struct, tag=True):
    operation: str
    body: bytes
    now: float
    """Time stands still for a request, however often it is decided."""
    capacity: str
    is_charged: bool
    region: str
    account_id: str
    is_lenient: bool
    is_guarded: bool
    """Whether the rights that the request needs are asked for first."""
    tables: list[bytes] | None
    """The catalog, when it is another than that of the job before."""


class Get(msgspec.Struct, tag=True):
    """A value is asked for: the latest one decided, or that of the snapshot."""

    key: bytes
    is_latest: bool


class IsHeld(msgspec.Struct, tag=True):
    key: bytes
    is_latest: bool


class Charged(msgspec.Struct, array_like=True):
    """A charge of the ledger, without the account that stands for its table or index."""

    table: int
    index: str | None
    is_write: bool
    units: float
    place: int
    key: tuple[str, ...] | None


class Pay(msgspec.Struct, tag=True):
    """All groups are paid, or none; the answer is a refusal or None for each."""

    groups: list[list[Charged]]
    is_transaction: bool


class Needed(msgspec.Struct, array_like=True):
    """A need, with its condition keys worked out."""

    action: str
    resource: str
    keys: dict[str, list[str]]
    policy: ResourcePolicy | None


class Authorize(msgspec.Struct, tag=True):
    """Before anything is read; the answer is why not, or None, for each part of the request."""

    parts: list[list[Needed]]


class Refused(msgspec.Struct, tag=True):
    """An error of the error tree, by its class."""

    module: str
    name: str
    message: str | None
    members: dict[str, object]


class Change(msgspec.Struct, tag=True):
    """One change of the draft that the outcome ends: each for itself, so that the server has turns
    for others between them."""

    key: bytes
    value: bytes | None


class Outcome(msgspec.Struct, tag=True):
    answer: bytes | Refused
    holds: list[bytes] | None
    """Of the draft; None when nothing was to be written."""


class Declined(msgspec.Struct, tag=True):
    """What has to be decided by the server itself."""


Question = Get | IsHeld | Pay | Authorize
Message = Question | Change | Outcome | Declined

encode = msgspec.msgpack.encode
decode_job = msgspec.msgpack.Decoder(Job).decode
decode_message = msgspec.msgpack.Decoder(Message).decode


def framed(content: bytes) -> bytes:
    return LENGTH.pack(len(content)) + content
