"""The most frequent keys, counted in bounded memory, within the error that is stated."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from partita.database.capacity.hot_key_counter import ROOM_FACTOR, HotKeyCounter


@given(st.lists(st.integers(0, 60), max_size=600), st.integers(1, 10))
def test_every_count_is_right_within_the_error(keys: list[int], kept: int) -> None:
    contributors: HotKeyCounter[int] = HotKeyCounter(kept)
    for key in keys:
        contributors.add(key, 1)
    found = {one.key: one.value for one in contributors.top(1000)}
    for key, count in Counter(keys).items():
        assert count - contributors.error <= found.get(key, 0) <= count
    assert contributors.error <= len(keys) / (kept + 1)
    assert contributors.total == len(keys)


def test_few_keys_are_counted_exactly() -> None:
    contributors: HotKeyCounter[str] = HotKeyCounter(10)
    for key in "abacabad":
        contributors.add(key, 2.5)
    assert contributors.error == 0
    assert contributors.top(2) == [("a", 10), ("b", 5)]


def test_memory_is_bounded_whatever_comes() -> None:
    contributors: HotKeyCounter[int] = HotKeyCounter(10)
    for key in range(100_000):
        contributors.add(key, 1)
        if not key % 1000:
            assert len(contributors.top(1000)) <= 10 * ROOM_FACTOR


def test_a_frequent_key_is_found_among_many_rare_ones() -> None:
    random, contributors = Random(7), HotKeyCounter[str]()
    for number in range(50_000):
        contributors.add("hot" if random.random() < 0.05 else f"cold {number}", 1)
    assert contributors.top(1)[0].key == "hot"
    assert contributors.error <= 50_000 / 101
