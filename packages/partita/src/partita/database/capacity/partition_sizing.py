"""The number of partitions that a table or index needs for its throughput and its data.

This is the formula of the service's early documentation, which people still plan with: a partition
serves 3,000 read units or 1,000 write units per second, or a mix of them, and stores 10 GB. The
partitions have equal ranges of hashes.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import NamedTuple

from partita.foundation.service_limits import (
    PARTITION_BYTES_MAX,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    PARTITIONS_MAX,
)

HASHES = 1 << 64
"""The number of hashes: a partition key's hash has eight bytes."""
DIGITS = 9
"""Shares are exact fractions, but the units may be rounded floats: the sum is rounded too."""


class PartitionSizing(NamedTuple):
    """The partitions needed for throughput and for storage, and the units that each then has."""

    by_throughput: int
    by_storage: int
    read_units_each: float
    write_units_each: float

    @property
    def partitions(self) -> int:
        return max(self.by_throughput, self.by_storage)


def partitions_for(read_units: float, write_units: float, size_bytes: float) -> PartitionSizing:
    """Returns the partitions of a table with provisioned units; reads and writes add up."""
    share = Fraction(read_units) / PARTITION_READ_UNITS
    share += Fraction(write_units) / PARTITION_WRITE_UNITS
    by_throughput = max(1, ceil(round(share, DIGITS)))
    by_storage = max(1, ceil(Fraction(size_bytes) / PARTITION_BYTES_MAX))
    count = max(by_throughput, by_storage)
    return PartitionSizing(by_throughput, by_storage, read_units / count, write_units / count)


def on_demand_partitions_for(read_units: float, write_units: float) -> int:
    """Returns the partitions that an on-demand table needs.

    Unlike provisioned units, reads and writes are not added up: four partitions serve 12,000 read
    and 4,000 write units at the same time.
    """
    by_reads = partitions_for(read_units, 0, 0).by_throughput
    return max(by_reads, partitions_for(0, write_units, 0).by_throughput)


def even_starts(count: int) -> list[int]:
    """Returns the first hash of each of `count` equal partitions, up to the maximum number."""
    count = min(count, PARTITIONS_MAX)
    return [HASHES * number // count for number in range(count)]
