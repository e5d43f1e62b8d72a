"""Compression and decompression of any content."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.foundation.service_limits import KB, MB
from partita.server.http.content_encodings import PACKERS, TooLarge, WrongEncoding, chosen, unpack


@given(st.sampled_from(sorted(PACKERS)), st.binary())
def test_what_is_packed_is_unpacked(coding: bytes, content: bytes) -> None:
    assert unpack(coding, PACKERS[coding](content), len(content)) == content


@given(st.lists(st.binary(), min_size=1))
def test_members_of_gzip_are_joined(parts: list[bytes]) -> None:
    assert unpack(b"gzip", b"".join(map(gzip.compress, parts)), MB) == b"".join(parts)


@given(st.sampled_from([b"gzip", b"deflate"]), st.binary())
def test_any_other_bytes_are_refused(coding: bytes, body: bytes) -> None:
    with pytest.raises(WrongEncoding, match=f"is {coding.decode()}, but the body is not in it"):
        unpack(coding, body, MB)


@pytest.mark.parametrize("size", [64 * KB - 1, 64 * KB, 64 * KB + 1, 3 * MB])
@pytest.mark.parametrize("coding", sorted(PACKERS))
def test_a_body_may_be_as_large_as_allowed_and_no_larger(coding: bytes, size: int) -> None:
    # Stored, so that the body is as large as its content.
    content = bytes(size)
    packed = {b"gzip": gzip.compress(content, 0), b"deflate": zlib.compress(content, 0)}[coding]
    assert unpack(coding, packed, size) == content
    with pytest.raises(TooLarge):
        unpack(coding, packed, size - 1)


def test_members_count_as_one_body() -> None:
    packed = gzip.compress(bytes(1000)) * 3
    assert len(unpack(b"gzip", packed, 3000)) == 3000
    with pytest.raises(TooLarge):
        unpack(b"gzip", packed, 2999)


@given(st.binary())
def test_any_accept_encoding_is_understood(accepted: bytes) -> None:
    assert chosen(accepted) in (None, b"gzip", b"deflate")
