"""Answers are known until something in their partition changes, and never too many of them."""

from __future__ import annotations

import pytest

from partita.database import response_cache as response_caches
from partita.database.response_cache import ResponseCache
from partita.database.tables import layout

ITEM = layout.ITEMS + b"\x00\x00\x00\x01" + b"hash-abc" + b"key"
SAME_PARTITION = layout.ITEMS + b"\x00\x00\x00\x01" + b"hash-abc" + b"other"
OTHER_PARTITION = layout.ITEMS + b"\x00\x00\x00\x01" + b"hash-xyz" + b"key"
OTHER_TABLE = layout.ITEMS + b"\x00\x00\x00\x02" + b"hash-abc" + b"key"
ENTRY = layout.ENTRIES + b"\x00\x00\x00\x01\x00\x01" + b"hash-abc" + b"key"


def kept(key: bytes, question: bytes = b"?") -> ResponseCache:
    known = ResponseCache()
    partition = layout.partition_of(key)
    assert partition is not None
    keep(known, question, b"answer", partition)
    return known


def keep(known: ResponseCache, question: bytes, answer: bytes, partition: bytes) -> None:
    """Asked twice, as all that is kept."""
    known.keep(question, answer, partition)
    known.keep(question, answer, partition)


def is_known(known: ResponseCache, question: bytes = b"?") -> bool:
    return known.get(question) is not None


@pytest.mark.parametrize("changed", [ITEM, SAME_PARTITION])
def test_a_change_in_the_partition_ends_an_answer(changed: bytes) -> None:
    known = kept(ITEM)
    known.forget_changed([changed])
    assert not is_known(known)


@pytest.mark.parametrize("changed", [OTHER_PARTITION, OTHER_TABLE, ENTRY, b"\x02stat", b"\x00"])
def test_other_changes_do_not(changed: bytes) -> None:
    known = kept(ITEM)
    known.forget_changed([changed])
    assert is_known(known)


def test_an_answer_from_an_index_ends_with_a_change_of_the_index() -> None:
    known = kept(ENTRY)
    known.forget_changed([ITEM])
    assert is_known(known)
    known.forget_changed([ENTRY + b"more"])
    assert not is_known(known)


def test_what_is_kept_is_bounded_and_the_oldest_goes_first() -> None:
    known = ResponseCache()
    answer = b"x" * 1000
    size = response_caches.ENTRY_BYTES + len(answer) + 8
    count = response_caches.KEPT_BYTES_MAX // size + 10
    for number in range(count):
        partition = b"p%d" % (number % 7)
        keep(known, b"%08d" % number, answer, partition)
    assert known.get(b"%08d" % 0) is None
    assert known.get(b"%08d" % (count - 1)) is not None
    assert sum(known.get(b"%08d" % number) is not None for number in range(count)) == (
        response_caches.KEPT_BYTES_MAX // size
    )
    known.forget_all()
    assert not any(known.get(b"%08d" % number) for number in range(count))


def test_a_long_answer_is_not_kept() -> None:
    known = ResponseCache()
    keep(known, b"?", b"x" * response_caches.ANSWER_BYTES_MAX, b"p")
    assert not is_known(known)


def test_an_answer_is_kept_the_second_time() -> None:
    known = ResponseCache()
    known.keep(b"?", b"answer", b"p")
    assert not is_known(known)
    known.keep(b"?", b"answer", b"p")
    assert is_known(known)


def test_what_was_asked_long_ago_is_forgotten() -> None:
    known = ResponseCache()
    known.keep(b"?", b"answer", b"p")
    for number in range(response_caches.ASKED_MAX):
        known.keep(b"%d" % number, b"answer", b"p")
    known.keep(b"?", b"answer", b"p")
    assert not is_known(known)
