"""The arguments of every operation: the service that it belongs to, and a view of the data.

A read gets a snapshot of committed data. A write gets a write batch: it sees everything decided
before it, and its changes are part of the next group commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any, Final, NewType

from partita.database.capacity.ledger import OFF, Ledger
from partita.database.logs.event_log.event_streams import EventStreams
from partita.database.logs.event_log.shard_throughput import ShardThroughput
from partita.database.recovery.recovery_context import RecoveryContext
from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import Table
from partita.errors import DynamoDBError
from partita.foundation.clock import Clock, Stopwatch

Request = dict[str, Any]
PermittedBytes = NewType("PermittedBytes", bytes)
"""The body of a read that its caller is allowed to make, for handlers that do not decode it."""
Refusals = Mapping[int, DynamoDBError]
"""Errors of the statements of a batch that the caller may not run, by their index."""
NO_REFUSALS: Final[Refusals] = {}

KEY_SECRET_BYTES: Final = 32


def _random_id() -> str:
    return str(uuid.uuid4())


def _allow_any_policy(document: str, arn: str) -> str:
    return ""


@dataclass(slots=True)
class DatabaseService:
    """The state that all requests to one running database share."""

    catalog: TableCatalog
    clock: Clock
    stopwatch: Stopwatch
    region: str
    account_id: str
    transient_seconds: float
    """How long a table shows CREATING, UPDATING or DELETING after the response that says so."""
    ledger: Ledger
    """Requests are charged here while `ledger.is_on`."""
    event_streams: EventStreams
    throughput: ShardThroughput
    """Throughput of the shards of event streams in the current second."""
    new_id: Callable[[], str] = _random_id
    is_lenient: bool = False
    """True if CreateTable accepts requests that DynamoDB Local accepts and AWS refuses."""
    address: str = "localhost:8000"
    """The address at which clients reach the database, known once it listens."""
    is_kept: bool = False
    """True if data outlives the process, so that encryption at rest concerns it."""
    encryption_key: str = ""
    """Names the key that data is encrypted under; empty without encryption."""
    check_policy: Callable[[str, str], str] = _allow_any_policy
    """Returns what is wrong with a resource policy (its document and the resource's ARN), or an
    empty string."""

    recovery: RecoveryContext | None = None
    """Backups and earlier states of tables. None in the process that decides large requests."""

    def new_key_secret(self) -> bytes:
        """A random key for the hash of a table's partition keys. In an encrypted folder, nobody
        should be able to test guesses of partition keys by the hashes in storage keys."""
        return token_bytes(KEY_SECRET_BYTES)

    def table(self, name_or_arn: str) -> Table:
        """Returns a table whose items can be read and written; raises while it is being created."""
        return self.catalog.table(table_name(name_or_arn), self.clock())

    def meter(self) -> None:
        """Turn the ledger on if capacity is measured, or if some table needs it; otherwise off."""
        self.ledger.is_on = self.ledger.mode != OFF or any(
            table.is_metered for table in self.catalog
        )

    def table_arn(self, name: str) -> str:
        return f"arn:aws:dynamodb:{self.region}:{self.account_id}:table/{name}"


class PermittedRequest:
    """A decoded request whose caller was authorized: handlers of operations take nothing else.

    It is made only after the caller's rights were checked (`server/admission.py`), or by the server
    for itself (`OWN_REQUEST`). Code that passes a request on passes this object on; decoding the
    body a second time would give a request without authorization.
    """

    __slots__ = ("again", "refusals", "request")

    def __init__(self, request: Request, refusals: Refusals = NO_REFUSALS) -> None:
        self.request = request
        self.refusals = refusals
        self.again: Callable[[], PermittedRequest] | None = None
        """Authorizes the request again. Rights depend on tables and their policies, which another
        server may have changed by the time the request is decided. Raises if it is denied."""


OWN_REQUEST: Final = PermittedRequest({})
"""For handlers that the server runs for itself; they do not look at the request."""


class ReadContext:
    __slots__ = ("is_held", "partition", "refusals", "service", "snapshot")

    def __init__(
        self,
        service: DatabaseService,
        snapshot: Snapshot,
        is_held: Callable[[bytes], bool],
        refusals: Refusals = NO_REFUSALS,
    ) -> None:
        self.service = service
        self.snapshot = snapshot
        self.is_held = is_held
        self.refusals = refusals
        self.partition: bytes | None = None
        """The storage prefix of the partition that was read, if it was only one."""

    def take_partition(self) -> bytes | None:
        partition = self.partition
        self.partition = None
        return partition


class WriteContext:
    __slots__ = ("_is_held", "refusals", "service", "write_batch")

    def __init__(
        self,
        service: DatabaseService,
        write_batch: WriteBatch,
        refusals: Refusals = NO_REFUSALS,
        is_held: Callable[[bytes], bool] | None = None,
    ) -> None:
        """`is_held` replaces the write batch's own, to simulate conflicts in tests."""
        self.service = service
        self.write_batch = write_batch
        self.refusals = refusals
        self._is_held = is_held

    def is_held(self, key: bytes) -> bool:
        """True while an item is part of another transaction that is not committed yet."""
        if self._is_held is not None:
            return self._is_held(key)
        return self.write_batch.is_held(key)


ReadHandler = Callable[[ReadContext, Request], bytes]
PlainHandler = Callable[[ReadContext, PermittedBytes], bytes | None]
"""Answers a request from its undecoded body; None if only the ReadHandler can answer it."""
WriteHandler = Callable[[WriteContext, Request], bytes]


def table_name(name_or_arn: str) -> str:
    """The table name in an ARN. Every operation accepts either, with any account and region."""
    return name_or_arn.rpartition(":table/")[2] if name_or_arn.startswith("arn:") else name_or_arn
