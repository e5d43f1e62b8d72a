"""A request of a shared database, from its arrival to its answer, however often it is run."""

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
        *("charged", "done", "foreseen", "held", "is_transaction", "lease", "now", "read"),
        *("fence", "is_old", "session", "write"),
    )

    def __init__(
        self,
        now: float,
        done: Done,
        read: Callable[[], Any] | None = None,
        write: Callable[[WriteBatch], Any] | None = None,
        lease: FencingLease | None = None,
        foreseen: Set[bytes] = frozenset(),
        *,
        is_transaction: bool = False,
        session: ClientSession | None = None,
        fence: FencingLease | None = None,
    ) -> None:
        self.now = now
        """Time stands still for a request."""
        self.done = done
        self.read = read
        self.write = write
        self.lease = lease
        """Of background work, which only counts while this server leads."""
        self.foreseen = foreseen
        """Keys that it will read, as far as they are known before it is run."""
        self.is_transaction = is_transaction
        """Of a read: whether all that it reads has to be there at one moment."""
        self.fence = fence
        """Of what a companion writes, which only counts while its server leads."""
        self.is_old = False
        """Whether a replica has answered it."""
        self.session = session
        """Of a read that a replica may answer: what the client has seen so far."""
        self.held: Set[bytes] = frozenset()
        """Items for which it has been overtaken for too long: it conflicts with who writes them."""
        self.charged = ChargedOnce()

    @property
    def is_free(self) -> bool:
        """Whether it counts whoever leads."""
        return self.lease is None and self.fence is None


class RequestLedger(Ledger):
    """Charges are paid once, in the first run that lacks nothing up to there."""

    def __init__(self, clock: Clock, mode: str) -> None:
        super().__init__(clock, mode)
        self.is_lacking: Callable[[], bool] = bool
        self._charged: ChargedOnce | None = None
        """None outside of a run, where everything is charged at once."""

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
        paid: list[ThrottlingReason | None] = self.once(
            lambda: admit_all(groups), [None] * len(groups)
        )
        return paid

    def once(self, pay: Callable[[], Any], unknown: Any) -> Any:
        """What has come of a payment, now or in an earlier run; `unknown` while something lacks."""
        if self._charged is None:
            return pay()
        return unknown if self.is_lacking() else self._charged.once(pay)


class RequestThroughput(ShardThroughput):
    """What shards take and give is paid in the same way."""

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
