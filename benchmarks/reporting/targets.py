"""The targets at 16 connections, and how their ratios are computed.

A target names the mode of Partita and the mode of the peers. It is compared with the faster of the
rivals.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.servers.measured_servers import Mode

RIVALS = ("dynamodb-local", "dynoxide")
TARGET_CONNECTIONS = 16
BARE_LOOP_SHARE = 0.35
READY_SECONDS_MAX = 0.5
IDLE_MB_MAX = 80


@dataclass(frozen=True)
class Target:
    operation: str
    ours: tuple[Mode, ...]
    """Modes of Partita; the first one that was measured counts."""
    theirs: Mode
    ratio: float | None
    """None if there is no target and the figure is only shown."""


READS = tuple(
    Target(operation, ("disk",), "memory", ratio)
    for operation, ratio in {
        # There is no target for the response cache; it is shown next to the figures without it.
        "GetItemFresh": 4,
        "GetItem": None,
        "QueryFresh": 4,
        "Query": None,
        "QueryFilteredFresh": 3,
        "QueryFiltered": None,
        "QueryIndex": None,
        "Scan": 3,
        "BatchGetItem": 3,
    }.items()
)
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
DURABLE_WRITES = tuple(Target(operation, ("disk",), "disk", 5) for operation in WRITES)
RELAXED_WRITES = tuple(
    Target(operation, ("relaxed", "memory"), "memory", 4) for operation in WRITES
)
# The modes of Partita and of the bare loop; a read is the same work in both modes of the loop.
BARE_LOOP = (
    ("GetItem", "disk"),
    ("GetItemFresh", "disk"),
    ("PutItem", "disk"),
    ("PutItem", "relaxed"),
)
