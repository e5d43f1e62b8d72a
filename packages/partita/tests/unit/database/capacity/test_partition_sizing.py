"""The partition arithmetic, with the two examples that everybody learns it from."""

from __future__ import annotations

import pytest

from partita.database.capacity.partition_sizing import partitions_for
from partita.foundation.service_limits import GB


@pytest.mark.parametrize(
    ("rcu", "wcu", "gigabytes", "partitions", "rcu_each", "wcu_each"),
    [
        (1000, 500, 50, 5, 200, 100),
        (1000, 500, 500, 50, 20, 10),
        (3000, 0, 0, 1, 3000, 0),
        (3000, 1000, 10, 2, 1500, 500),
        (3001, 0, 0, 2, 1500.5, 0),
        (0, 0, 0, 1, 0, 0),
        (7500, 0, 0, 3, 2500, 0),
        (0, 10_000, 10.1, 10, 0, 1000),
        (0, 0, 10.5, 2, 0, 0),
    ],
)
def test_partitions(
    rcu: float, wcu: float, gigabytes: float, partitions: int, rcu_each: float, wcu_each: float
) -> None:
    sizing = partitions_for(rcu, wcu, gigabytes * GB)
    assert sizing.partitions == partitions
    assert (sizing.read_units_each, sizing.write_units_each) == (rcu_each, wcu_each)


def test_shares_are_added_exactly() -> None:
    # As floats, 1000/3000 + 2000/3000 + 700/1000 + 300/1000 is not 2.
    assert partitions_for(3000, 1000, 0).by_throughput == 2
    assert partitions_for(1000, 2000 / 3, 0).by_throughput == 1
