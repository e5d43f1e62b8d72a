"""A request to a shared database, from its arrival to its answer.

It may be run many times; its time is fixed, and it is charged once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from partita.database.capacity.ledger import Charge, Ledger
from partita.database.capacity.throttling_errors import ThrottlingReason
from partita.database.capacity.token_buckets import TokenBucket
from partita.database.execution.optimistic.charged_once import ChargedOnce
from partita.database.logs.event_log.shard_throughput import ShardMeter, ShardThroughput
from partita.database.shared.client_sessions import ClientSession
from partita.database.storage.postgresql.trip_plans import FencingLease
from partita.database.storage.write_batch import WriteBatch
from partita.foundation.clock import Clock

Done = Callable[[Any], None]


class SharedRequest:
    __slots__ = (
        *(
            "charged",
            "done",
            "predicted_keys",
            "conflicting_items",
            "is_transaction",
            "lease",
            "now",
            "read",
        ),
        *("fence", "is_old", "session", "write"),
    )

    def __init__(
        self,
        now: float,
        done: Done,
        read: Callable[[], Any] | None = None,
        write: Callable[[WriteBatch], Any] | None = None,
        lease: FencingLease | None = None,
        predicted_keys: Set[bytes] = frozenset(),
        *,
        is_transaction: bool = False,
        session: ClientSession | None = None,
        fence: FencingLease | None = None,
    ) -> None:
        self.now = now
        """The time at which every run of the request happens."""
        self.done = done
        self.read = read
        self.write = write
        self.lease = lease
        """Background work is committed only while this server holds this lease."""
        self.predicted_keys = predicted_keys
        """Keys that are fetched before the first run."""
        self.is_transaction = is_transaction
        """True for a read that needs everything from one moment."""
        self.fence = fence
        """A companion's write is committed only while its server holds this lease."""
        self.is_old = False
        """True once a replica has answered it."""
        self.session = session
        """The newest state that the client has read; None for a read that must not be old."""
        self.conflicting_items: Set[bytes] = frozenset()
        """Items that others kept changing while this transaction was decided: the next run fails
        with a TransactionConflict on them."""
        self.charged = ChargedOnce()

    @property
    def is_free(self) -> bool:
        """True if it does not depend on which server leads."""
        return self.lease is None and self.fence is None


class RequestLedger(Ledger):
    """Charges a request once, in the first run that has fetched everything it read so far."""

    def __init__(self, clock: Clock, mode: str) -> None:
        super().__init__(clock, mode)
        self.has_misses: Callable[[], bool] = bool
        self._charged: ChargedOnce | None = None
        """The charges of the request that is running; None outside of a run."""

    def begin(self, request: SharedRequest) -> None:
        self._charged = request.charged
        self._charged.begin_run()

    def end(self) -> None:
        self._charged = None

    def admit(self, charges: Sequence[Charge]) -> ThrottlingReason | None:
        admit = super().admit
        refusal: ThrottlingReason | None = self.once(lambda: admit(charges), None)
        return refusal

    def admit_all(self, groups: Sequence[Sequence[Charge]]) -> list[ThrottlingReason | None]:
        admit_all = super().admit_all
        refusals: list[ThrottlingReason | None] = self.once(
            lambda: admit_all(groups), [None] * len(groups)
        )
        return refusals

    def once(self, charge: Callable[[], Any], unknown: Any) -> Any:
        """Charges now, or returns what this charge came to in an earlier run.

        A run that has read a missing value is going to be repeated: it is not charged, and goes on
        with `unknown`.
        """
        if self._charged is None:
            return charge()
        return unknown if self.has_misses() else self._charged.once(charge)


class RequestThroughput(ShardThroughput):
    """Throughput of shards, which is charged in the same way."""

    def __init__(self, clock: Clock, ledger: RequestLedger) -> None:
        super().__init__(clock)
        self._ledger = ledger

    def meter(self, stream_number: int, shard_number: int) -> ShardMeter:
        return RequestMeter(super().meter(stream_number, shard_number), self._ledger)


class RequestMeter(ShardMeter):
    def __init__(self, meter: ShardMeter, ledger: RequestLedger) -> None:
        self._meter = meter
        self._ledger = ledger
        self.read_bytes = RequestBucket(meter.read_bytes, ledger)

    def take_record(self, size: int, now: float) -> bool:
        meter = self._meter
        is_taken: bool = self._ledger.once(lambda: meter.take_record(size, now), True)
        return is_taken

    def take_read(self, now: float) -> bool:
        meter = self._meter
        is_taken: bool = self._ledger.once(lambda: meter.take_read(now), True)
        return is_taken

    def is_hot(self) -> bool:
        return self._meter.is_hot()


class RequestBucket(TokenBucket):
    def __init__(self, bucket: TokenBucket, ledger: RequestLedger) -> None:
        self._bucket = bucket
        self._ledger = ledger

    def take(self, units: float) -> None:
        bucket = self._bucket
        self._ledger.once(lambda: bucket.take(units), None)
