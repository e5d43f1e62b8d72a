"""Fault injection: the n-th call of an operation, or a seeded share of its calls, fails.

A fault strikes where the service would throttle or fail: after the request has been validated, and
before anything is changed. A conflict runs the real code, which finds that the items are held by
another transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from partita.assembly.service_registry import READS, WRITES
from partita.database.capacity.throttling_errors import TABLE_EXCEEDED
from partita.database.operations.operation_context import ReadContext, Request, WriteContext
from partita.errors import (
    DynamoDBError,
    InternalServerError,
    ProvisionedThroughputExceededException,
    ThrottlingException,
)

Handler = Callable[[Any, Request], bytes]

CONFLICTING = ("DeleteItem", "PutItem", "TransactGetItems", "TransactWriteItems", "UpdateItem")
ON_ITEMS = (
    "BatchGetItem",
    "BatchWriteItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "Scan",
    "TransactGetItems",
    "TransactWriteItems",
    "UpdateItem",
)


@dataclass(slots=True)
class Fault:
    """One injected fault. `hits` counts the calls that it has struck."""

    operation: str
    nth: int | None
    share: float | None
    random: Random
    inject: Callable[[Handler], Handler]
    calls: int = 0
    hits: int = 0

    def strikes(self) -> bool:
        """Counts a call; returns True if it is to fail."""
        self.calls += 1
        if self.nth is not None:
            is_hit = self.calls == self.nth
        else:
            is_hit = self.share is None or self.random.random() < self.share
        self.hits += is_hit
        return is_hit


@dataclass(slots=True)
class Faults:
    """The faults of a database. `nth` counts calls since the fault was ordered. Without `nth` and
    `share`, every call is hit until `clear`."""

    seed: int = 0
    _orders: list[Fault] = field(default_factory=list)

    def throttle(
        self, operation: str, *, nth: int | None = None, share: float | None = None
    ) -> Fault:
        """Raise ProvisionedThroughputExceededException or ThrottlingException."""
        if operation in ON_ITEMS:
            refusal = _refuse_with(ProvisionedThroughputExceededException, TABLE_EXCEEDED)
        else:
            refusal = _refuse_with(ThrottlingException, "Rate exceeded")
        return self._order("throttle", operation, nth, share, refusal)

    def fail(self, operation: str, *, nth: int | None = None, share: float | None = None) -> Fault:
        """Raise InternalServerError (status 500); nothing is changed."""
        refusal = _refuse_with(InternalServerError, "Internal server error")
        return self._order("fail", operation, nth, share, refusal)

    def conflict(
        self, operation: str, *, nth: int | None = None, share: float | None = None
    ) -> Fault:
        """Let the call find that all its items are part of another transaction.

        It raises TransactionConflictException, or for a transaction TransactionCanceledException
        with TransactionConflict as the reasons.
        """
        if operation not in CONFLICTING:
            raise ValueError(
                f"{operation} cannot conflict with transactions; only {', '.join(CONFLICTING)} can."
            )
        return self._order("conflict", operation, nth, share, _conflicting)

    def clear(self) -> None:
        self._orders.clear()

    @property
    def is_any_ordered(self) -> bool:
        return bool(self._orders)

    def _order(
        self,
        kind: str,
        operation: str,
        nth: int | None,
        share: float | None,
        inject: Callable[[Handler], Handler],
    ) -> Fault:
        if operation not in READS and operation not in WRITES:
            raise ValueError(f"There is no operation {operation!r}.")
        if nth is not None and share is not None:
            raise ValueError("A fault hits the n-th call or a share of the calls, not both.")
        if nth is not None and nth < 1:
            raise ValueError("The first call is nth=1.")
        if share is not None and not 0 <= share <= 1:
            raise ValueError("A share is between 0 and 1.")
        # Each fault has its own generator, so that it does not change which calls others hit.
        random = Random(f"{self.seed} {kind} {operation}")
        fault = Fault(operation, nth, share, random, inject)
        self._orders.append(fault)
        return fault

    def injected(self, operation: str, handler: Handler) -> Handler:
        """Returns the handler for this call, changed by the first fault that strikes, if any."""
        # All faults of the operation must count the call, so this does not stop at the first.
        of_operation = [fault for fault in self._orders if fault.operation == operation]
        striking = [fault for fault in of_operation if fault.strikes()]
        return striking[0].inject(handler) if striking else handler


def _refuse_with(kind: type[DynamoDBError], message: str) -> Callable[[Handler], Handler]:
    def refuse(context: Any, request: Request) -> bytes:
        raise kind(message)

    return lambda handler: refuse


def _conflicting(handler: Handler) -> Handler:
    def conflict(context: ReadContext | WriteContext, request: Request) -> bytes:
        if isinstance(context, ReadContext):
            all_held = ReadContext(context.service, context.snapshot, _always, context.refusals)
            return handler(all_held, request)
        batch, refusals = context.write_batch, context.refusals
        return handler(WriteContext(context.service, batch, refusals, _always), request)

    return conflict


def _always(key: bytes) -> bool:
    return True
