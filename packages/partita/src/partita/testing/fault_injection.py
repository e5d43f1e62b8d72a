"""Fault injection: the n-th call of an operation, or a seeded share of its calls, is refused.

A fault strikes after the request was found valid, where the service would throttle or fail, and
before anything is changed. A conflict is the real one: the operation finds its items held by
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
    """One injected fault. `hits` says how often it has struck."""

    operation: str
    nth: int | None
    share: float | None
    random: Random
    inject: Callable[[Handler], Handler]
    calls: int = 0
    hits: int = 0

    def strikes(self) -> bool:
        """Count a call, and whether it is hit."""
        self.calls += 1
        if self.nth is not None:
            is_hit = self.calls == self.nth
        else:
            is_hit = self.share is None or self.random.random() < self.share
        self.hits += is_hit
        return is_hit


@dataclass(slots=True)
class Faults:
    """What is injected. Of each fault, `nth` is counted from when it was ordered; without `nth` and
    `share`, every call is hit until `clear`."""

    seed: int = 0
    _orders: list[Fault] = field(default_factory=list)

    def throttle(
        self, operation: str, *, nth: int | None = None, share: float | None = None
    ) -> Fault:
        """ProvisionedThroughputExceededException; of operations on tables, ThrottlingException."""
        if operation in ON_ITEMS:
            refusal = _refuse_with(ProvisionedThroughputExceededException, TABLE_EXCEEDED)
        else:
            refusal = _refuse_with(ThrottlingException, "Rate exceeded")
        return self._order("throttle", operation, nth, share, refusal)

    def fail(self, operation: str, *, nth: int | None = None, share: float | None = None) -> Fault:
        """InternalServerError, status 500, and nothing was done."""
        refusal = _refuse_with(InternalServerError, "Internal server error")
        return self._order("fail", operation, nth, share, refusal)

    def conflict(
        self, operation: str, *, nth: int | None = None, share: float | None = None
    ) -> Fault:
        """Every item of the call is part of another transaction: a TransactionConflictException,
        or a TransactionCanceledException whose reasons are TransactionConflict."""
        if operation not in CONFLICTING:
            raise ValueError(
                f"{operation} does not conflict with transactions; {', '.join(CONFLICTING)} do."
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
        # One of its own, so that one fault does not change which calls another hits.
        random = Random(f"{self.seed} {kind} {operation}")
        fault = Fault(operation, nth, share, random, inject)
        self._orders.append(fault)
        return fault

    def injected(self, operation: str, handler: Handler) -> Handler:
        """The handler for this call: its own, or what the first fault that strikes makes of it."""
        concerned = [fault for fault in self._orders if fault.operation == operation]
        struck = [fault for fault in concerned if fault.strikes()]
        return struck[0].inject(handler) if struck else handler


def _refuse_with(kind: type[DynamoDBError], message: str) -> Callable[[Handler], Handler]:
    def refuse(context: Any, request: Request) -> bytes:
        raise kind(message)

    return lambda handler: refuse


def _conflicting(handler: Handler) -> Handler:
    def conflict(context: ReadContext | WriteContext, request: Request) -> bytes:
        if isinstance(context, ReadContext):
            held = ReadContext(context.service, context.snapshot, _always, context.refusals)
            return handler(held, request)
        batch, refusals = context.write_batch, context.refusals
        return handler(WriteContext(context.service, batch, refusals, _always), request)

    return conflict


def _always(key: bytes) -> bool:
    return True
