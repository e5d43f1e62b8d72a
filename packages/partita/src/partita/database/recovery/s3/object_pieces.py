"""Reads a bucket's objects a piece at a time, uncompressed or from gzip or Zstandard.

A piece consists of complete records. Memory holds one piece of an object, or one record if that is
longer; only an object in Ion is read as a whole. Both sizes are limited, because compressed content
may expand a million times.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from partita.database.recovery.s3.object_buckets import INSTALL, BucketError, ObjectBucket

READ_BYTES: Final = 1 << 20
"""The bytes of an object that one request reads."""
PIECE_BYTES: Final = 512 << 10
RECORD_BYTES_MAX: Final = 16 << 20
"""Our own limit: many times the largest item in any format."""
WHOLE_BYTES_MAX: Final = 1 << 30
ZSTD_SLICE_BYTES: Final = 1 << 10
"""A block of four compressed bytes can stand for 128 KB, so it gets little at once."""
GZIP_WINDOW: Final = 31
"""zlib's window bits for a gzip header: 16 + 15."""


class TruncatedObject(Exception):
    """Raised when an object ends too early, or is not in the format that the request names."""


class ObjectLines:
    """Reads the lines of an object, some with each call of `next`, on the background thread."""

    def __init__(
        self, bucket: ObjectBucket, key: str, compression: str, *, has_quotes: bool
    ) -> None:
        """`has_quotes`: line breaks between double quotes do not end a record, as in CSV."""
        self._content = _decompressed(_read(bucket, key), compression)
        self._has_quotes = has_quotes
        self._rest = b""
        self._problem: TruncatedObject | None = None
        self.read_bytes = 0

    def next(self) -> bytes:
        """Returns complete lines; empty at the end. Raises NotWhole after the last complete line.

        The error is kept until the lines before it were returned: they are still imported.
        """
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
                    raise TruncatedObject(f"a record has more than {RECORD_BYTES_MAX} bytes")
        except TruncatedObject as problem:
            self._problem = problem
            head, end, _ = b"".join(pieces).rpartition(b"\n")
            if not end:
                raise
            return head + end
        return b"".join(pieces)

    def _quotes(self, content: bytes) -> int:
        return content.count(b'"') if self._has_quotes else 0


def read_object(bucket: ObjectBucket, key: str, compression: str) -> bytes:
    """Reads and decompresses a whole object; raises NotWhole if it is too large."""
    pieces: list[bytes] = []
    size = 0
    for piece in _decompressed(_read(bucket, key), compression):
        pieces.append(piece)
        size += len(piece)
        if size > WHOLE_BYTES_MAX:
            raise TruncatedObject(f"it has more than {WHOLE_BYTES_MAX} bytes: split it")
    return b"".join(pieces)


def _read(bucket: ObjectBucket, key: str) -> Iterator[bytes]:
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
    """Decompresses gzip; a file may consist of several members."""
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
        raise TruncatedObject(f"it is not in the format GZIP: {error}") from None
    if is_empty or not reader.eof:
        raise TruncatedObject("it is not in the format GZIP, or not complete")


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
        raise TruncatedObject(f"it is not in the format ZSTD: {error}") from None
    if is_empty or not reader.eof:
        raise TruncatedObject("it is not in the format ZSTD, or not complete")
