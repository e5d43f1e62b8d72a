"""Checks a history of appends and reads for strict serializability, as Elle does.

Every append adds a value that no other adds, so a list shows the order of the appends to its key.
From that follow the dependencies between operations: who wrote what another read (wr), what another
wrote next (ww), what another overwrote after it was read (rw), and who had ended before another
began. A cycle of them cannot be put in any order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

NEVER = float("inf")


@dataclass(eq=False)
class Operation:
    """Appends to some keys or reads of some, which happened at one moment between `began` and
    `ended`."""

    began: float
    ended: float = NEVER
    """NEVER if the outcome is unknown."""
    appends: dict[str, int] = field(default_factory=dict)
    reads: dict[str, list[int]] = field(default_factory=dict)
    is_refused: bool = False
    """True if it is certain that nothing was changed."""


class Anomaly(Exception):
    pass


def check(history: Iterable[Operation]) -> None:
    """Raises Anomaly if no order of the operations explains the history."""
    operations = list(history)
    writers = {
        (key, value): operation
        for operation in operations
        for key, value in operation.appends.items()
    }
    orders = _orders(operations)
    for key, order in orders.items():
        for value in order:
            if writers[key, value].is_refused:
                raise Anomaly(f"{value} was refused, and is in {key}")
    seen = {(key, value) for key, order in orders.items() for value in order}
    effective = [
        operation
        for operation in operations
        if not operation.is_refused and _took_effect(operation, seen)
    ]
    after: dict[object, set[object]] = defaultdict(set)
    for key, order in orders.items():
        for value, following in pairwise(order):
            _add(after, writers[key, value], writers[key, following])
    for operation in effective:
        for key, values in operation.reads.items():
            order = orders.get(key, [])
            if values:
                _add(after, writers[key, values[-1]], operation)
            if len(values) < len(order):
                _add(after, operation, writers[key, order[len(values)]])
            else:
                for other in effective:
                    # An append that was acknowledged but never read comes after all reads.
                    if key in other.appends and (key, other.appends[key]) not in seen:
                        _add(after, operation, other)
    _add_time(after, effective)
    cycle = _cycle(after)
    if cycle:
        raise Anomaly(f"{len(cycle)} operations that no order explains: {cycle}")


def _orders(operations: list[Operation]) -> dict[str, list[int]]:
    """The longest list that was read of each key; all other lists must be its beginnings."""
    orders: dict[str, list[int]] = {}
    for operation in operations:
        for key, values in operation.reads.items():
            longest = orders.setdefault(key, [])
            shorter, longer = sorted((values, longest), key=len)
            if longer[: len(shorter)] != shorter:
                raise Anomaly(f"two orders of {key}: {shorter} and {longer}")
            if len(set(longer)) < len(longer):
                raise Anomaly(f"a value twice in {key}: {longer}")
            orders[key] = longer
    return orders


def _took_effect(operation: Operation, seen: set[tuple[str, int]]) -> bool:
    """True if an operation took effect. Without a known outcome, it did if an append was read."""
    return operation.ended < NEVER or any(pair in seen for pair in operation.appends.items())


def _add(after: dict[object, set[object]], first: object, second: object) -> None:
    if first is not second:
        after[first].add(second)


def _add_time(after: dict[object, set[object]], operations: list[Operation]) -> None:
    """Orders operations by time: one that ended before another began comes first.

    Each end is a node of its own, so that the number of edges stays linear.
    """
    ended = [operation for operation in operations if operation.ended < NEVER]
    ends = sorted(ended, key=lambda operation: operation.ended)
    begins = sorted(operations, key=lambda operation: operation.began)
    place, moment = 0, None
    for operation in begins:
        while place < len(ends) and ends[place].ended < operation.began:
            following = ("moment", place)
            if moment is not None:
                after[moment].add(following)
            after[ends[place]].add(following)
            moment = following
            place += 1
        if moment is not None:
            after[moment].add(operation)


def _cycle(after: dict[object, set[object]]) -> list[object]:
    """The nodes on cycles, or nothing: nodes without successors are removed until none is left."""
    before: dict[object, set[object]] = defaultdict(set)
    for first, seconds in after.items():
        for second in seconds:
            before[second].add(first)
    left = {node: len(after.get(node, ())) for node in {*after, *before}}
    free = [node for node, count in left.items() if not count]
    while free:
        node = free.pop()
        del left[node]
        for first in before.get(node, ()):
            left[first] -= 1
            if not left[first]:
                free.append(first)
    return list(left)
