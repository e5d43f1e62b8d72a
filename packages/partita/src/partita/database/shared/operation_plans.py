"""A plan for each operation of a shared database: the keys to fetch first, and from where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from partita.database.operations.operation_context import Request
from partita.database.operations.operation_registry import OF_ARCHIVES, READS, WRITES
from partita.database.shared.rounds.key_prediction import TARGETS, Targets


def _no_targets(request: Request) -> Iterator[Any]:
    return iter(())


def _never(request: Request) -> bool:
    return False


def _is_eventual(request: Request) -> bool:
    return not request.get("ConsistentRead")


def _are_all_eventual(request: Request) -> bool:
    return all(map(_is_eventual, request["RequestItems"].values()))


class OperationPlan(NamedTuple):
    """Properties of an operation that decide how its requests are run."""

    targets: Targets = _no_targets
    """The items that a request names."""
    is_transaction: bool = False
    """True if a request reads several items, all of one moment."""
    may_be_old: Callable[[Request], bool] = _never
    """True for a read that a replica may answer."""
    needs_archive: bool = False
    """True if the schema must have the tables for recovery."""


OTHER: Final = OperationPlan()
"""The plan of pages and of operations on event streams."""
READ_IN_TRANSACTION: Final = ("ExecuteTransaction", "TransactGetItems")
MAY_BE_OLD: Final[Mapping[str, Callable[[Request], bool]]] = {
    "BatchGetItem": _are_all_eventual,
    "GetItem": _is_eventual,
    "Query": _is_eventual,
    "Scan": _is_eventual,
}


def _plan(name: str) -> OperationPlan:
    return OperationPlan(
        TARGETS.get(name, _no_targets),
        name in READ_IN_TRANSACTION,
        MAY_BE_OLD.get(name, _never),
        name in OF_ARCHIVES,
    )


PLANS: Final[Mapping[Callable[..., bytes], OperationPlan]] = {
    handler: _plan(name) for handlers in (READS, WRITES) for name, handler in handlers.items()
}
