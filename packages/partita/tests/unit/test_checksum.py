"""The CRC-32 is the same, whichever library computes it."""

from __future__ import annotations

import runpy
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zlib_ng import zlib_ng

from partita.foundation import checksum


def test_the_fast_library_is_used_where_it_is_installed() -> None:
    assert checksum.crc32 is zlib_ng.crc32


@given(st.binary(max_size=2000), st.integers(1, 40))
def test_both_libraries_agree(content: bytes, times: int) -> None:
    assert checksum.crc32(content * times) == zlib.crc32(content * times)


def test_without_it_there_is_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zlib_ng", None)
    monkeypatch.setitem(sys.modules, "zlib_ng.zlib_ng", None)
    assert runpy.run_path(checksum.__file__)["crc32"] is zlib.crc32
