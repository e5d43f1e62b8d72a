"""What an operation is given: the service around it, and a view of the data.

A read sees a snapshot of what is committed. A write gets a write batch: it sees everything decided
before it, and its changes are part of the next group commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any, Final, NewType

from partita.clock import Clock, Stopwatch
from partita.database.capacity.ledger import OFF, Ledger
from partita.database.events.streams import EventStreams
from partita.database.events.throughput import Throughput
from partita.database.recovery.tasks import Workplace
from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.catalog import Catalog
from partita.database.tables.schema import Table
from partita.errors import DynamoDBError

Request = dict[str, Any]
PermittedBytes = NewType("PermittedBytes", bytes)
"""The body of a read that its caller may make, and that is answered without being decoded."""
Refusals = Mapping[int, DynamoDBError]
"""By their place: the statements of a batch that its caller may not run."""
NO_REFUSALS: Final[Refusals] = {}

KEY_SECRET_BYTES: Final = 32


def _random_id() -> str:
    return str(uuid.uuid4())


def _allow_any_policy(document: str, arn: str) -> str:
    return ""


@dataclass(slots=True)
class Service:
    """One running database: what all of its requests share."""

    catalog: Catalog
    clock: Clock
    stopwatch: Stopwatch
    region: str
    account_id: str
    transient_seconds: float
    """How long a table shows CREATING, UPDATING or DELETING after the response that says so."""
    ledger: Ledger
    """Where requests are charged, while it is on."""
    event_streams: EventStreams
    throughput: Throughput
    """What shards of event streams have taken and given in this second."""
    new_id: Callable[[], str] = _random_id
    is_lenient: bool = False
    """Whether tables are created that the service refuses and clients of DynamoDB Local ask for."""
    address: str = "localhost:8000"
    """Where clients reach the database, once it listens."""
    is_kept: bool = False
    """Whether data outlives the process, so that it is at rest somewhere."""
    encryption_key: str = ""
    """Which key data is encrypted under, if it is."""
    check_policy: Callable[[str, str], str] = _allow_any_policy
    """What is wrong with a policy for the resource of an ARN, if anything is."""

    recovery: Workplace | None = None
    """Where backups and the past of tables are, unless requests are decided elsewhere."""

    def new_key_secret(self) -> bytes:
        """What the hashes of a table's partition keys are keyed with."""
        return token_bytes(KEY_SECRET_BYTES)

    def table(self, name_or_arn: str) -> Table:
        """The table that items are read from or written to."""
        return self.catalog.table(table_name(name_or_arn), self.clock())

    def meter(self) -> None:
        """Turn the ledger on if capacity is, or if a table has to be metered; otherwise off."""
        self.ledger.is_on = self.ledger.mode != OFF or any(
            table.is_metered for table in self.catalog
        )

    def table_arn(self, name: str) -> str:
        return f"arn:aws:dynamodb:{self.region}:{self.account_id}:table/{name}"


class Permitted:
    """A decoded request with what its caller was granted: the only thing that runs an operation.

    Whoever makes one has asked for the rights of the caller (`server/admission.py`), or is the
    server itself (`OWN_REQUEST`). It is handed on as it is: decoding the bytes of the request again
    yields a request, but no permit.
    """

    __slots__ = ("again", "refusals", "request")

    def __init__(self, request: Request, refusals: Refusals = NO_REFUSALS) -> None:
        self.request = request
        self.refusals = refusals
        self.again: Callable[[], Permitted] | None = None
        """Asks once more: rights follow from tables, and where others change those too, they may be
        found to be different when the request is decided. Raises as the first time."""


OWN_REQUEST: Final = Permitted({})
"""What the server does for itself, in functions of its own that read nothing of a request."""


class ReadContext:
    __slots__ = ("is_held", "partition", "refusals", "service", "snapshot")

    def __init__(
        self,
        service: Service,
        snapshot: Snapshot,
        is_held: Callable[[bytes], bool],
        refusals: Refusals = NO_REFUSALS,
    ) -> None:
        self.service = service
        self.snapshot = snapshot
        self.is_held = is_held
        self.refusals = refusals
        self.partition: bytes | None = None
        """The partition that the operation reads, if it reads only one."""

    def take_partition(self) -> bytes | None:
        partition = self.partition
        self.partition = None
        return partition


class WriteContext:
    __slots__ = ("_is_held", "refusals", "service", "write_batch")

    def __init__(
        self,
        service: Service,
        write_batch: WriteBatch,
        refusals: Refusals = NO_REFUSALS,
        is_held: Callable[[bytes], bool] | None = None,
    ) -> None:
        """`is_held`, if given, is asked instead of the write batch."""
        self.service = service
        self.write_batch = write_batch
        self.refusals = refusals
        self._is_held = is_held

    def is_held(self, key: bytes) -> bool:
        """Whether an item is part of another transaction that is not committed yet."""
        if self._is_held is not None:
            return self._is_held(key)
        return self.write_batch.is_held(key)


ReadHandler = Callable[[ReadContext, Request], bytes]
PlainHandler = Callable[[ReadContext, PermittedBytes], bytes | None]
"""From the bytes of a request; None if it needs the operation's ReadHandler."""
WriteHandler = Callable[[WriteContext, Request], bytes]


def table_name(name_or_arn: str) -> str:
    """Wherever a table name is accepted, so is its ARN, with any account and region."""
    return name_or_arn.rpartition(":table/")[2] if name_or_arn.startswith("arn:") else name_or_arn
