"""Key bytes: comparing them is comparing keys as DynamoDB does."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partita.database.item.key_encoding import key_bytes, partition_hash, terminated
from partita.database.item.numbers import normalize

texts = st.text(min_size=1)
binaries = st.binary(min_size=1)


def binary(content: bytes) -> dict[str, str]:
    return {"B": b64encode(content).decode()}


@given(texts, texts)
@example("\U0001f600", "\uffff")  # UTF-16 would order these two the other way round
@example("a", "a\x00")
def test_strings_sort_by_their_utf_8_bytes(one: str, other: str) -> None:
    low, high = key_bytes({"S": one}), key_bytes({"S": other})
    assert (low < high) == (one.encode() < other.encode())
    # The code points of two strings have the order of their UTF-8 bytes.
    assert (low < high) == (one < other)


@given(binaries, binaries)
@example(b"\x01", b"\x01\x00")
@example(b"\x7f", b"\x80")
def test_binaries_sort_by_their_unsigned_bytes(one: bytes, other: bytes) -> None:
    assert (key_bytes(binary(one)) < key_bytes(binary(other))) == (one < other)


@given(st.lists(st.decimals(-(10**20), 10**20, places=4), min_size=2))
@example([Decimal(text) for text in ("100", "10", "5", "1", "0", "-1", "-5", "-100")])
def test_numbers_sort_by_their_value(given_numbers: list[Decimal]) -> None:
    by_bytes = sorted(given_numbers, key=lambda each: key_bytes({"N": normalize(str(each))}))
    assert by_bytes == sorted(given_numbers)


parts = st.lists(st.binary(max_size=6), min_size=1, max_size=4)


@given(parts, parts)
@example([b"a"], [b"a", b""])
@example([b"a", b"b"], [b"ab"])
@example([b"\x00"], [b""])
@example([b"\x00", b"\x01"], [b"\x00\x01"])
@example([b"a\x00"], [b"a", b"\xff"])
def test_terminated_parts_sort_part_by_part(one: list[bytes], other: list[bytes]) -> None:
    low, high = (b"".join(map(terminated, each)) for each in (one, other))
    assert (low < high) == (one < other)
    assert (low == high) == (one == other)


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_no_terminated_part_is_the_beginning_of_another(one: bytes, other: bytes) -> None:
    assert one == other or not terminated(one).startswith(terminated(other))


def test_partitions_lie_in_the_order_of_the_service() -> None:
    # dynalite: the order in which the service's Scan returned these keys.
    strings = [*"28916", "hello", *"054", "äáöü", "aardman", *"73", "zapf"]
    numbers = ["7", "999.9", *"832", "-999.9", *"94", "-0.09", *"610", "0.012345", "5"]
    for kind, keys in (("S", strings), ("N", numbers)):
        assert sorted(keys, key=lambda key: partition_hash(key_bytes({kind: key}))) == keys


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        ({"S": "3635"}, 0),
        ({"S": "228"}, 0),
        ({"S": "1668"}, 1),
        ({"S": "3435"}, 4),
        ({"N": "251"}, 1),
        ({"N": "2388"}, 4095),
    ],
)
def test_a_partition_lies_in_the_slot_of_the_service(key: dict[str, str], slot: int) -> None:
    # dynalite: the segment of 4096 in which the service's Scan returned this key.
    assert int.from_bytes(partition_hash(key_bytes(key))[:2], "big") >> 4 == slot
