"""Decoding JSON: what the service cannot read gets a SerializationException without a message."""

from __future__ import annotations

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import SerializationException
from partita.server.protocol.json_codec import (
    HUGE_NUMBERS_BODY_BYTES_MAX,
    VALUES_MAX,
    decode,
    decode_large,
)

UNREADABLE = {
    "nothing": b"",
    "half a document": b'{"TableName":',
    "something after it": b"{} x",
    "a list": b"[]",
    "a string": b'"a"',
    "a null": b"null",
    "single quotes": b"{'a':1}",
    "a surplus comma": b'{"a":1,}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "invalid UTF-8": b'{"a":"\xff"}',
    "an encoded surrogate": b'{"a":"\xed\xa0\x80"}',
    "a lone surrogate": rb'{"a":"\ud800 and more"}',
    "a lone surrogate after a huge number": rb'{"a":1e400,"b":"\ud800 and more"}',
    "a name with a lone surrogate after a huge number": rb'{"a":1e400,"\udfff":1}',
    "an encoded surrogate after a huge number": b'{"a":1e400,"b":"\xed\xa0\x80"}',
    "a huge number in UTF-16": '{"a":1e400}'.encode("utf-16"),
    "a huge number in a huge body": b'{"a":1e400,"b":"'
    + b"x" * HUGE_NUMBERS_BODY_BYTES_MAX
    + b'"}',
    "not a number": b'{"a":NaN}',
    "a huge number next to infinity": b'{"a":1e400,"b":Infinity}',
    "ten thousand lists": b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "ten thousand maps": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "ten thousand levels and a huge number": b'{"b":1e400,"a":' + b"[" * 10_000 + b"]" * 10_000,
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_refused_without_a_text(body: bytes) -> None:
    with pytest.raises(SerializationException) as refused:
        decode(body)
    assert refused.value.message is None


def test_of_duplicate_keys_the_last_counts() -> None:
    assert decode(b'{"a":1,"a":2}') == {"a": 2}


@pytest.mark.parametrize("number", [b"1" * 500_000, b"1e400", b"-1e999999"])
def test_a_huge_number_is_a_number(number: bytes) -> None:
    assert isinstance(decode(b'{"a":' + number + b"}")["a"], int | float)


def test_surrogate_pairs_are_one_character() -> None:
    assert decode(rb'{"a":"\ud83d\ude00"}') == {"a": "\N{GRINNING FACE}"}


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with suppress(SerializationException):
        assert isinstance(decode(body), dict)


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), DOCUMENTS, max_size=5))
def test_what_is_encoded_decodes_to_itself(document: dict[str, object]) -> None:
    assert decode(orjson.dumps(document)) == document


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0", b'""', b"[[[[]]]]", b'{"a":0}'])
def test_only_requests_for_items_have_more_values_than_the_limit(value: bytes) -> None:
    def body(count: int) -> bytes:
        return b'{"a":[%b]}' % b",".join([value] * count)

    signs = 1 + value.count(b"[") + value.count(b"{")
    fits = VALUES_MAX // signs - 2
    assert len(decode(body(fits))["a"]) == fits
    with pytest.raises(SerializationException):
        decode(body(fits + 4))
    assert len(decode_large(body(fits + 4))["a"]) == fits + 4


def test_a_large_document_of_few_values_is_decoded() -> None:
    assert decode(b'{"a":"%b"}' % (b"x" * 15_000_000))
