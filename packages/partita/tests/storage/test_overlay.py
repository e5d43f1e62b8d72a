"""Overlays: sorted like a dict of sorted keys, and reads do not get slower with other writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.database.storage.data_folder.overlay import OrderedKeys, Overlay

SMALL_BLOCK = 4
NEW_KEYS = 20_000
COMPARISONS_MAX = 100

short_keys = st.binary(min_size=1, max_size=2)
overlays = st.dictionaries(short_keys, st.none() | st.binary(max_size=2), max_size=40)


class CountedKey(bytes):
    """A key that counts comparisons."""

    comparisons = 0

    def __lt__(self, other: bytes) -> bool:
        CountedKey.comparisons += 1
        return bytes.__lt__(self, other)

    def __gt__(self, other: bytes) -> bool:
        CountedKey.comparisons += 1
        return bytes.__gt__(self, other)


@contextmanager
def few_comparisons() -> Iterator[None]:
    CountedKey.comparisons = 0
    yield
    assert 0 < CountedKey.comparisons < COMPARISONS_MAX


@pytest.fixture
def busy() -> Overlay:
    """An overlay with 20,000 keys of table 5, and one of table 7."""
    random = Random(1)
    overlay = Overlay({})
    overlay.update({CountedKey(b"5" + random.randbytes(12)): b"" for _ in range(NEW_KEYS)})
    overlay.update({CountedKey(b"7 one"): b"1"})
    return overlay


@settings(max_examples=200, deadline=None)
@given(
    at_first=st.sets(short_keys, max_size=20),
    steps=st.lists(st.tuples(st.booleans(), short_keys), max_size=60),
    bounds=st.tuples(short_keys, short_keys),
)
def test_keys_are_in_order_whatever_is_added_and_removed(
    at_first: set[bytes], steps: list[tuple[bool, bytes]], bounds: tuple[bytes, bytes]
) -> None:
    expected = set(at_first)
    keys = OrderedKeys(at_first, SMALL_BLOCK)
    for is_added, key in steps:
        if is_added and key not in expected:
            keys.add(key)
            expected.add(key)
        elif not is_added and key in expected:
            keys.remove(key)
            expected.remove(key)
        assert keys.flat() == sorted(expected)
    start, stop = bounds
    between = sorted(key for key in expected if start <= key < stop)
    assert keys.has_any(start, stop) == bool(between)
    if between:
        forward = [key for run in keys.runs(start, stop, reverse=False) for key in run]
        backward = [key for run in keys.runs(start, stop, reverse=True) for key in run]
        assert forward == between
        assert backward == between[::-1]


@settings(max_examples=100, deadline=None)
@given(lower=overlays, upper=overlays)
def test_two_overlays_joined_are_the_upper_one_over_the_lower(
    lower: dict[bytes, bytes | None], upper: dict[bytes, bytes | None]
) -> None:
    joined = Overlay(dict(lower)).joined(Overlay(dict(upper)))
    assert joined.values == {**lower, **upper}
    assert joined.ordered_keys() == sorted({**lower, **upper})


def test_many_keys_are_read_in_order_over_what_lies_below(busy: Overlay) -> None:
    below = [(bytes([number]), b"below") for number in range(256)]
    expected = dict(below) | {bytes(key): value for key, value in busy.values.items()}
    for reverse in (False, True):
        pairs = iter(below[::-1] if reverse else below)
        read = list(busy.range_over(pairs, b"\x00", b"\xff\xff", reverse=reverse))
        assert read == sorted(expected.items(), reverse=reverse)


def test_a_range_to_which_nobody_wrote_is_the_one_below(busy: Overlay) -> None:
    below = iter([(b"6", b"below")])
    with few_comparisons():
        assert busy.range_over(below, b"6", b"7", reverse=False) is below


@pytest.mark.parametrize("reverse", [False, True])
def test_a_range_does_not_sort_what_was_written_elsewhere(busy: Overlay, reverse: bool) -> None:
    below = iter([(b"7 two", b"2")])
    with few_comparisons():
        pairs = list(busy.range_over(below, b"7", b"8", reverse=reverse))
    assert sorted(pairs) == [(b"7 one", b"1"), (b"7 two", b"2")]


def test_the_first_pairs_of_a_long_range_do_not_wait_for_the_rest(busy: Overlay) -> None:
    with few_comparisons():
        pairs = busy.range_over(iter(()), b"5", b"6", reverse=False)
        first = [next(pairs)[0] for _ in range(3)]
    assert first == sorted(busy.values)[:3]


def test_a_new_key_finds_its_place_without_a_sort(busy: Overlay) -> None:
    with few_comparisons():
        busy.put(CountedKey(b"5 new"), b"")
        busy.drop(CountedKey(b"5 new"))
