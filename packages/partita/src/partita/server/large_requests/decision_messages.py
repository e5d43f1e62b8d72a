"""What the server and the process for large requests say to each other, over a socket of theirs.

The server sends a job. The process asks for rights, values, holds and payments, one at a time and
each answered at once, then sends what it has decided. Each message is a frame of MessagePack
(`foundation/child_process.py`).
"""

from __future__ import annotations

import msgspec

from partita.database.tables.definition.table_schema import ResourcePolicy


class DecisionJob(msgspec.Struct, tag=True):
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


class GetValue(msgspec.Struct, tag=True):
    """A value is asked for: the latest one decided, or that of the snapshot."""

    key: bytes
    is_latest: bool


class GetIsHeld(msgspec.Struct, tag=True):
    key: bytes
    is_latest: bool


class RemoteCharge(msgspec.Struct, array_like=True):
    """A charge of the ledger, without the account that stands for its table or index."""

    table: int
    index: str | None
    is_write: bool
    units: float
    place: int
    key: tuple[str, ...] | None


class AdmitCharges(msgspec.Struct, tag=True):
    """All groups are paid, or none; the answer is a refusal or None for each."""

    groups: list[list[RemoteCharge]]
    is_transaction: bool


class RequiredRight(msgspec.Struct, array_like=True):
    """A need, with its condition keys worked out."""

    action: str
    resource: str
    keys: dict[str, list[str]]
    policy: ResourcePolicy | None


class AuthorizeParts(msgspec.Struct, tag=True):
    """Before anything is read; the answer is why not, or None, for each part of the request."""

    parts: list[list[RequiredRight]]


class RemoteError(msgspec.Struct, tag=True):
    """An error of the error tree, by its class."""

    module: str
    name: str
    message: str | None
    members: dict[str, object]


class DraftChange(msgspec.Struct, tag=True):
    """One change of the draft that the outcome ends: each for itself, so that the server has turns
    for others between them."""

    key: bytes
    value: bytes | None


class DecisionOutcome(msgspec.Struct, tag=True):
    answer: bytes | RemoteError
    holds: list[bytes] | None
    """Of the draft; None when nothing was to be written."""


class JobDeclined(msgspec.Struct, tag=True):
    """What has to be decided by the server itself."""


Question = GetValue | GetIsHeld | AdmitCharges | AuthorizeParts
Message = Question | DraftChange | DecisionOutcome | JobDeclined

encode = msgspec.msgpack.encode
decode_job = msgspec.msgpack.Decoder(DecisionJob).decode
decode_message = msgspec.msgpack.Decoder(Message).decode
