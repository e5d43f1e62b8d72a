"""Ranges of hashes that split by size and by load, and keep a hot key apart."""

from __future__ import annotations

from itertools import pairwise

from partita.database.capacity.partition_sizing import HASHES
from partita.database.capacity.partition_splits import TablePartitions
from partita.foundation.service_limits import GB, PARTITIONS_MAX

WHOLE = (0, HASHES)


def ranges(partitions: TablePartitions) -> list[tuple[int, int]]:
    return [(partition.start, partition.stop) for partition in partitions]


def check_cover(partitions: TablePartitions) -> None:
    edges = ranges(partitions)
    assert edges[0][0] == 0
    assert edges[-1][1] == HASHES
    assert all(left[1] == right[0] for left, right in pairwise(edges))


def ask(partitions: TablePartitions, loads: dict[int, float], minute: int) -> None:
    """A minute of writes: units a second, by hash."""
    for place, units in loads.items():
        partitions.demand(place, str(place), units * 60, True, minute * 60)


def test_a_table_begins_with_equal_ranges() -> None:
    partitions = TablePartitions(3, 0)
    check_cover(partitions)
    assert len(partitions) == 3
    assert partitions.at(0).start == 0
    assert partitions.at(HASHES - 1).stop == HASHES


def test_more_units_make_more_partitions_and_fewer_units_do_not_join_them() -> None:
    partitions = TablePartitions(1, 0)
    partitions.grow(4, 0)
    check_cover(partitions)
    assert len(partitions) == 4
    partitions.grow(2, 0)
    assert len(partitions) == 4


def test_a_partition_splits_when_it_has_more_than_10_gb() -> None:
    partitions = TablePartitions(1, 0)
    partitions.fit(10 * GB, 0)
    assert len(partitions) == 1
    partitions.fit(10 * GB + 1, 0)
    assert len(partitions) == 2
    partitions.fit(45 * GB, 0)
    check_cover(partitions)
    assert len(partitions) >= 5
    assert max(stop - start for start, stop in ranges(partitions)) * 45 <= HASHES * 10


def test_a_busy_partition_splits_between_its_keys_after_a_minute() -> None:
    partitions = TablePartitions(1, 0)
    loads = {100: 225.0, 200: 225.0, HASHES - 200: 225.0, HASHES - 100: 225.0}
    ask(partitions, loads, 0)
    assert ranges(partitions) == [WHOLE]
    ask(partitions, loads, 1)
    assert ranges(partitions) == [(0, 201), (201, HASHES)]


def test_a_partition_below_80_percent_does_not_split() -> None:
    partitions = TablePartitions(1, 0)
    for minute in range(5):
        ask(partitions, {1: 390.0, 2: 390.0}, minute)
    assert ranges(partitions) == [WHOLE]


def test_a_hot_key_gets_a_partition_to_itself_and_stays_in_it() -> None:
    partitions = TablePartitions(1, 0)
    for minute in range(4):
        ask(partitions, {5: 700.0, 9: 150.0}, minute)
    assert ranges(partitions) == [(0, 5), (5, 6), (6, HASHES)]


def test_two_hot_keys_end_up_apart() -> None:
    partitions = TablePartitions(1, 0)
    for minute in range(6):
        ask(partitions, {5: 900.0, 9: 900.0}, minute)
    check_cover(partitions)
    assert partitions.at(5) is not partitions.at(9)


def test_reads_and_writes_make_the_load_together() -> None:
    partitions = TablePartitions(1, 0)
    partitions.demand(1, "a", 1500 * 60, False, 0)
    partitions.demand(2, "b", 400 * 60, True, 0)
    assert partitions.at(1).load(0) == 0.9
    partitions.demand(1, "a", 1, False, 60)
    assert len(partitions) > 1


def test_a_partition_serves_1000_write_and_3000_read_units_a_second() -> None:
    partition = TablePartitions(1, 0).at(0)
    assert partition.allows(1000, True, 0)
    partition.bucket(True).take(1000)
    assert not partition.allows(1, True, 0)
    assert partition.allows(1, True, 1)
    assert partition.allows(1, False, 1)
    partition.bucket(False).take(3000)
    assert not partition.allows(1, False, 1.9)


def test_load_fades_when_nobody_asks() -> None:
    partitions = TablePartitions(1, 0)
    ask(partitions, {1: 500.0}, 0)
    partition = partitions.at(1)
    assert (partition.load(59), partition.load(61), partition.load(121)) == (0.5, 0.5, 0.0)


def test_no_figure_makes_more_partitions_than_memory_is_meant_for() -> None:
    partitions = TablePartitions(10**9, 0)
    assert len(partitions) == PARTITIONS_MAX
    check_cover(partitions)
    small = TablePartitions(3, 0)
    small.grow(10**9, 0)
    small.fit(10**18, 0)
    check_cover(small)
    assert len(small) == PARTITIONS_MAX
