"""The messages between the server and the process for large requests, over a private socket.

The server sends a job. The process asks for rights, values, held items and charges, one question at
a time, and finally sends its outcome. Each message is a frame (`foundation/child_process.py`) of
MessagePack.
"""

from __future__ import annotations

import msgspec

from partita.database.tables.definition.table_schema import ResourcePolicy


class DecisionJob(msgspec.Struct, tag=True):
    operation: str
    body: bytes
    now: float
    """The time of the request, the same in every run."""
    capacity: str
    is_charged: bool
    region: str
    account_id: str
    is_lenient: bool
    is_guarded: bool
    """True if the process must ask for the rights that the request needs."""
    tables: list[bytes] | None
    """The catalog, if it has changed since the job before."""


class GetValue(msgspec.Struct, tag=True):
    """Asks for a value: the latest one that was decided, or that of the snapshot."""

    key: bytes
    is_latest: bool


class GetIsHeld(msgspec.Struct, tag=True):
    key: bytes
    is_latest: bool


class RemoteCharge(msgspec.Struct, array_like=True):
    """A charge to the ledger; the account is given by the table's number and the index's name."""

    table: int
    index: str | None
    is_write: bool
    units: float
    place: int
    key: tuple[str, ...] | None


class AdmitCharges(msgspec.Struct, tag=True):
    """Asks the ledger to admit charges; the answer is a reason for throttling, or None, per group.

    In a transaction all groups are admitted, or none.
    """

    groups: list[list[RemoteCharge]]
    is_transaction: bool


class RequiredRight(msgspec.Struct, array_like=True):
    """A right that a request needs, with the values of its condition keys."""

    action: str
    resource: str
    keys: dict[str, list[str]]
    policy: ResourcePolicy | None


class AuthorizeParts(msgspec.Struct, tag=True):
    """Asks whether the caller has the rights for each part of the request, before anything is read.
    The answer is the text of a denial, or None, per part."""

    parts: list[list[RequiredRight]]


class RemoteError(msgspec.Struct, tag=True):
    """An error as its class and its arguments."""

    module: str
    name: str
    message: str | None
    members: dict[str, object]


class DraftChange(msgspec.Struct, tag=True):
    """One change of a draft. Each is a message of its own, so that the server can answer other
    requests between them."""

    key: bytes
    value: bytes | None


class DecisionOutcome(msgspec.Struct, tag=True):
    answer: bytes | RemoteError
    holds: list[bytes] | None
    """Items that the draft puts under a transaction; None for a request that only reads."""


class JobDeclined(msgspec.Struct, tag=True):
    """The process cannot decide this request: the server has to."""


Question = GetValue | GetIsHeld | AdmitCharges | AuthorizeParts
Message = Question | DraftChange | DecisionOutcome | JobDeclined

encode = msgspec.msgpack.encode
decode_job = msgspec.msgpack.Decoder(DecisionJob).decode
decode_message = msgspec.msgpack.Decoder(Message).decode
