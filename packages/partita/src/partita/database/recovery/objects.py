"""Objects of a bucket, read a piece at a time: as they are, or out of gzip or Zstandard.

A piece has whole records. One that is longer than a piece is read to its end; nothing else of an
object is ever in memory as a whole, whatever its size, except in Ion. Both are bounded: what is
compressed may become a million times as large.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from partita.database.recovery.buckets import INSTALL, Bucket, BucketError

READ_BYTES: Final = 1 << 20
"""Of a bucket, in one request."""
PIECE_BYTES: Final = 512 << 10
RECORD_BYTES_MAX: Final = 16 << 20
"""Ours: many times an item in any of the formats."""
WHOLE_BYTES_MAX: Final = 1 << 30
ZSTD_SLICE_BYTES: Final = 1 << 10
"""A block of four bytes stands for up to 128 KB: so little of them at a time."""
GZIP_WINDOW: Final = 31
"""For the library: with the header of gzip."""


class NotWhole(Exception):
    """An object ends too early, or is not in the format that was said."""


class Lines:
    """The lines of an object, some of them with each call of `next`, on a thread that may wait."""

    def __init__(self, bucket: Bucket, key: str, compression: str, *, has_quotes: bool) -> None:
        """With quotes, a record ends with a line outside of them, as in CSV."""
        self._content = _decompressed(_read(bucket, key), compression)
        self._has_quotes = has_quotes
        self._rest = b""
        self._problem: NotWhole | None = None
        self.read_bytes = 0

    def next(self) -> bytes:
        """Whole lines; nothing at the end. Raises NotWhole behind the last whole line."""
        if self._problem is not None:
            raise self._problem
        pieces = [self._rest]
        size, quotes = len(self._rest), self._quotes(self._rest)
        self._rest = b""
        try:
            for content in self._content:
                pieces.append(content)
                size += len(content)
                self.read_bytes += len(content)
                quotes += self._quotes(content)
                if size < PIECE_BYTES:
                    continue
                head, end, rest = content.rpartition(b"\n")
                if end and (quotes - self._quotes(rest)) % 2 == 0:
                    pieces[-1], self._rest = head + end, rest
                    break
                if size > RECORD_BYTES_MAX:
                    raise NotWhole(f"a record has more than {RECORD_BYTES_MAX} bytes")
        except NotWhole as problem:
            self._problem = problem
            head, end, _ = b"".join(pieces).rpartition(b"\n")
            if not end:
                raise
            return head + end
        return b"".join(pieces)

    def _quotes(self, content: bytes) -> int:
        return content.count(b'"') if self._has_quotes else 0


def whole(bucket: Bucket, key: str, compression: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    for piece in _decompressed(_read(bucket, key), compression):
        pieces.append(piece)
        size += len(piece)
        if size > WHOLE_BYTES_MAX:
            raise NotWhole(f"it has more than {WHOLE_BYTES_MAX} bytes: split it")
    return b"".join(pieces)


def _read(bucket: Bucket, key: str) -> Iterator[bytes]:
    start = 0
    while content := bucket.read(key, start, READ_BYTES):
        yield content
        start += len(content)
        if len(content) < READ_BYTES:
            return


def _decompressed(content: Iterator[bytes], compression: str) -> Iterator[bytes]:
    if compression == "GZIP":
        return _gunzipped(content)
    return _unzstd(content) if compression == "ZSTD" else content


def _gunzipped(content: Iterator[bytes]) -> Iterator[bytes]:
    """All members of a file, one behind the other."""
    reader = zlib.decompressobj(GZIP_WINDOW)
    is_empty = True
    try:
        for piece in content:
            while piece:
                is_empty = False
                if reader.eof:
                    reader = zlib.decompressobj(GZIP_WINDOW)
                yield reader.decompress(piece, PIECE_BYTES)
                piece = reader.unconsumed_tail or reader.unused_data
        while not reader.eof and (rest := reader.decompress(b"", PIECE_BYTES)):
            yield rest
    except zlib.error as error:
        raise NotWhole(f"it is not in the format GZIP: {error}") from None
    if is_empty or not reader.eof:
        raise NotWhole("it is not in the format GZIP, or not whole")


def _unzstd(content: Iterator[bytes]) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError:
        raise BucketError("MissingPackage", f"ZSTD cannot be read here: {INSTALL}.") from None

    new: Callable[[], Any] = zstandard.ZstdDecompressor().decompressobj
    reader = new()
    is_empty = True
    try:
        for piece in content:
            for start in range(0, len(piece), ZSTD_SLICE_BYTES):
                rest = piece[start : start + ZSTD_SLICE_BYTES]
                while rest:
                    is_empty = False
                    if reader.eof:
                        reader = new()
                    large = reader.decompress(rest)
                    for at in range(0, len(large), PIECE_BYTES):
                        yield large[at : at + PIECE_BYTES]
                    rest = reader.unused_data if reader.eof else b""
    except zstandard.ZstdError as error:
        raise NotWhole(f"it is not in the format ZSTD: {error}") from None
    if is_empty or not reader.eof:
        raise NotWhole("it is not in the format ZSTD, or not whole")
