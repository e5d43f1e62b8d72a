"""What is to be reached at 16 connections, and how a ratio is formed.

A target names the mode of Partita and the mode of the peers that it is held against; the peer that
counts is the faster of the rivals.
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
    """The first of these that was measured."""
    theirs: Mode
    ratio: float | None
    """None where nothing is promised and the figure is only shown."""


READS = tuple(
    Target(operation, ("disk",), "memory", ratio)
    for operation, ratio in {
        # The response cache carries no target: it is shown beside what it does without.
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
# The mode of Partita and of the bare loop for each; a read is the same work in both of its modes.
BARE_LOOP = (
    ("GetItem", "disk"),
    ("GetItemFresh", "disk"),
    ("PutItem", "disk"),
    ("PutItem", "relaxed"),
)
