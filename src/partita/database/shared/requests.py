"""A request of a shared database, from its arrival to its answer, however often it is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from partita.clock import Clock
from partita.database.capacity.ledger import Charge, Ledger
from partita.database.capacity.refusals import Refusal
from partita.database.storage.postgresql.commit import Lease
from partita.database.storage.write_batch import WriteBatch

Done = Callable[[Any], None]


class SharedRequest:
    __slots__ = ("done", "held", "lease", "now", "payments", "read", "write")

    def __init__(
        self,
        now: float,
        done: Done,
        read: Callable[[], Any] | None = None,
        write: Callable[[WriteBatch], Any] | None = None,
        lease: Lease | None = None,
    ) -> None:
        self.now = now
        """Time stands still for a request."""
        self.done = done
        self.read = read
        self.write = write
        self.lease = lease
        """Of background work, which only counts while this server leads."""
        self.held: Set[bytes] = frozenset()
        """Items for which it has been overtaken for too long: it conflicts with who writes them."""
        self.payments: list[Any] = []
        """What it has paid, in the order in which it asks."""


class RequestLedger(Ledger):
    """Charges are paid once, in the first run that lacks nothing up to there."""

    def __init__(self, clock: Clock, mode: str) -> None:
        super().__init__(clock, mode)
        self.is_lacking: Callable[[], bool] = bool
        self._payments: list[Any] = []
        self._position = 0

    def begin(self, request: SharedRequest) -> None:
        self._payments = request.payments
        self._position = 0

    def admit(self, charges: Sequence[Charge]) -> Refusal | None:
        if self.is_lacking():
            return None
        if self._position == len(self._payments):
            self._payments.append(super().admit(charges))
        refusal: Refusal | None = self._next_payment()
        return refusal

    def admit_all(self, groups: Sequence[Sequence[Charge]]) -> list[Refusal | None]:
        if self.is_lacking():
            return [None] * len(groups)
        if self._position == len(self._payments):
            self._payments.append(super().admit_all(groups))
        paid: list[Refusal | None] = self._next_payment()
        return paid

    def _next_payment(self) -> Any:
        self._position += 1
        return self._payments[self._position - 1]
