"""Content codings: decompresses the bodies of requests, and chooses how a response is compressed.

Requests may be in gzip, with one or several members, or in deflate, which is zlib's format
(RFC 9110). Any other coding, and a body that is not in the coding that it claims, are refused.
Decompression stops when the content exceeds the limit.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable
from functools import lru_cache

from partita.foundation.service_limits import KB

GZIP, DEFLATE, IDENTITY = b"gzip", b"deflate", b"identity"
WINDOW_BITS = {GZIP: 31, DEFLATE: 15}
LEVEL = 1
"""The fastest level: while a response is compressed, all other requests wait."""
PACKERS: dict[bytes, Callable[[bytes], bytes]] = {
    GZIP: lambda body: gzip.compress(body, LEVEL, mtime=0),
    DEFLATE: lambda body: zlib.compress(body, LEVEL),
}
"""In order of preference, for clients that accept any coding."""
ANY = b"*"
SLICE_BYTES = 64 * KB
"""Input is fed in slices, because zlib copies all input that follows the end of a gzip member.
Without slices, a body of many tiny members would take quadratic time."""
MEMBERS_MAX = 1_000
CODINGS_MAX = 64
"""The number of codings in an Accept-Encoding header that are considered."""
_QUALITY = re.compile(rb"q=\s*(-?\d+(?:\.\d*)?)\s*")


class WrongEncoding(ValueError):
    """Raised for an unknown coding, or for content that is not in its coding."""


class TooLarge(ValueError):
    """Raised when the decompressed content exceeds the limit for a body."""


def unpack(encoding: bytes, body: bytes, bytes_max: int) -> bytes:
    """Returns the decompressed content of a body with this Content-Encoding."""
    coding = encoding.strip().lower()
    if coding in (IDENTITY, b""):
        return body
    if coding not in WINDOW_BITS:
        name = encoding.decode("latin-1")
        raise WrongEncoding(f"The Content-Encoding {name!r} is not supported: use gzip or deflate.")
    try:
        return _unpacked(coding, body, bytes_max)
    except zlib.error as error:
        raise _not_in(coding) from error


def _unpacked(coding: bytes, body: bytes, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    size, members = 0, 1
    unpacking = zlib.decompressobj(wbits=WINDOW_BITS[coding])
    for start in range(0, len(body), SLICE_BYTES):
        piece = body[start : start + SLICE_BYTES]
        while piece:
            if unpacking.eof:
                members += 1
                if coding != GZIP or members > MEMBERS_MAX:
                    raise _not_in(coding)
                unpacking = zlib.decompressobj(wbits=WINDOW_BITS[coding])
            part = unpacking.decompress(piece, bytes_max - size + 1)
            parts.append(part)
            size += len(part)
            if size > bytes_max:
                raise TooLarge
            piece = unpacking.unused_data
    if not unpacking.eof:
        raise _not_in(coding)
    return b"".join(parts)


def _not_in(coding: bytes) -> WrongEncoding:
    return WrongEncoding(f"The Content-Encoding is {coding.decode()}, but the body is not in it.")


@lru_cache(maxsize=64)
def chosen(accepted: bytes) -> bytes | None:
    """Returns the coding for a response to this Accept-Encoding, or None for no compression.

    The highest quality wins; among equals the first, and a coding that is named wins over one that
    only `*` allows. A quality above 1 counts as 1, and so does one that is not a number. Only the
    first parameter of a coding counts. (Alternator's tests recorded all of this from DynamoDB.)
    """
    qualities: dict[bytes, float] = {}
    for entry in accepted.lower().split(b",", CODINGS_MAX)[:CODINGS_MAX]:
        name, *parameters = (part.strip() for part in entry.split(b";"))
        quality = _quality(parameters[0]) if parameters else 1.0
        qualities[name] = max(quality, qualities.get(name, 0.0))
    other_quality = qualities.get(ANY, 0.0)
    for coding in PACKERS:
        qualities.setdefault(coding, other_quality)
    acceptable = [name for name, quality in qualities.items() if name in PACKERS and quality > 0]
    return max(acceptable, key=qualities.__getitem__, default=None)


def _quality(parameter: bytes) -> float:
    if not parameter.startswith(b"q"):
        return 0.0
    match = _QUALITY.fullmatch(parameter)
    return min(float(match[1]), 1.0) if match else 1.0
