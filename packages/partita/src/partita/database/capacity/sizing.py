"""How many partitions a table or an index needs: by throughput, by storage, and what each then has.

The formula of the service's early documentation, which people still plan with: a partition serves
3,000 read units or 1,000 write units a second, or a mix, and stores 10 GB. They share the hashes
evenly.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import NamedTuple

from partita.limits import (
    PARTITION_BYTES_MAX,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    PARTITIONS_MAX,
)

HASHES = 1 << 64
"""How many there are: a partition key's hash has eight bytes."""
DIGITS = 9
"""Shares are added exactly, but of units that may have been rounded before."""


class Sizing(NamedTuple):
    by_throughput: int
    by_storage: int
    read_units_each: float
    write_units_each: float

    @property
    def partitions(self) -> int:
        return max(self.by_throughput, self.by_storage)


def partitions_for(read_units: float, write_units: float, size_bytes: float) -> Sizing:
    share = Fraction(read_units) / PARTITION_READ_UNITS
    share += Fraction(write_units) / PARTITION_WRITE_UNITS
    by_throughput = max(1, ceil(round(share, DIGITS)))
    by_storage = max(1, ceil(Fraction(size_bytes) / PARTITION_BYTES_MAX))
    count = max(by_throughput, by_storage)
    return Sizing(by_throughput, by_storage, read_units / count, write_units / count)


def on_demand_partitions_for(read_units: float, write_units: float) -> int:
    """12,000 read or 4,000 write units, in any mix, are what four partitions serve."""
    by_reads = partitions_for(read_units, 0, 0).by_throughput
    return max(by_reads, partitions_for(0, write_units, 0).by_throughput)


def even_starts(count: int) -> list[int]:
    """The first hash of each of so many partitions, or of as many as there may be."""
    count = min(count, PARTITIONS_MAX)
    return [HASHES * number // count for number in range(count)]
