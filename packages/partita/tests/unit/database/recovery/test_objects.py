"""Objects of a bucket are read in bounded memory, even if they decompress to much more."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
import zstandard

from partita.database.recovery.s3 import object_pieces
from partita.database.recovery.s3.object_pieces import (
    RECORD_BYTES_MAX,
    ObjectLines,
    TruncatedObject,
    read_object,
)

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "GZIP": gzip.compress,
    "ZSTD": zstandard.compress,
}


class OneObject:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def put(self, key: str, content: bytes) -> None:
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        return self._content

    def read(self, key: str, start: int, length: int) -> bytes:
        return self._content[start : start + length]

    def keys(self, prefix: str) -> list[str]:
        return ["key"]

    def sizes(self, prefix: str) -> dict[str, int]:
        return {"key": len(self._content)}


@pytest.mark.parametrize("compression", PACKED)
def test_a_record_that_does_not_end_is_given_up(compression: str) -> None:
    bomb = PACKED[compression](b"a" * (4 * RECORD_BYTES_MAX))
    lines = ObjectLines(OneObject(bomb), "key", compression, has_quotes=False)
    with pytest.raises(TruncatedObject, match="a record has more than"):
        lines.next()
    assert lines.read_bytes <= RECORD_BYTES_MAX + object_pieces.PIECE_BYTES


@pytest.mark.parametrize("compression", PACKED)
def test_many_records_in_few_bytes_are_all_read(compression: str) -> None:
    count = 3 * RECORD_BYTES_MAX // 12
    packed = PACKED[compression](b'{"Item":{}}\n' * count)
    lines = ObjectLines(OneObject(packed), "key", compression, has_quotes=True)
    found = 0
    while some := lines.next():
        found += some.count(b"\n")
    assert found == count


def test_an_object_that_is_read_as_a_whole_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_pieces, "WHOLE_BYTES_MAX", 1 << 20)
    with pytest.raises(TruncatedObject, match="split it"):
        read_object(OneObject(zstandard.compress(b"a" * (4 << 20))), "key", "ZSTD")
