"""Content codings: what clients may pack requests in, and which of them an answer is packed in.

Of requests: gzip, of one or several members, and deflate, which is zlib's format (RFC 9110). What
is anything else, or not what it says, is refused; what unpacks to too much is given up on the way.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable
from functools import lru_cache

from partita.limits import KB

GZIP, DEFLATE, IDENTITY = b"gzip", b"deflate", b"identity"
WINDOW_BITS = {GZIP: 31, DEFLATE: 15}
LEVEL = 1
"""The fastest: an answer that is being packed keeps all others waiting."""
PACKERS: dict[bytes, Callable[[bytes], bytes]] = {
    GZIP: lambda body: gzip.compress(body, LEVEL, mtime=0),
    DEFLATE: lambda body: zlib.compress(body, LEVEL),
}
"""In the order in which they are taken where a client takes any."""
ANY = b"*"
SLICE_BYTES = 64 * KB
"""What follows a member is copied by zlib: so little of it at a time."""
MEMBERS_MAX = 1_000
CODINGS_MAX = 64
"""Of an Accept-Encoding; those behind them do not count."""
_QUALITY = re.compile(rb"q=\s*(-?\d+(?:\.\d*)?)\s*")


class WrongEncoding(ValueError):
    """A coding that is not known, or content that is not in it; the text is a sentence."""


class TooLarge(ValueError):
    """The content is larger than a body may be."""


def unpack(encoding: bytes, body: bytes, bytes_max: int) -> bytes:
    """The content of a body with that Content-Encoding."""
    coding = encoding.strip().lower()
    if coding in (IDENTITY, b""):
        return body
    if coding not in WINDOW_BITS:
        name = encoding.decode("latin-1")
        raise WrongEncoding(f"The Content-Encoding {name!r} is not known: use gzip or deflate.")
    try:
        return _unpacked(coding, body, bytes_max)
    except zlib.error as error:
        raise _false(coding) from error


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
                    raise _false(coding)
                unpacking = zlib.decompressobj(wbits=WINDOW_BITS[coding])
            part = unpacking.decompress(piece, bytes_max - size + 1)
            parts.append(part)
            size += len(part)
            if size > bytes_max:
                raise TooLarge
            piece = unpacking.unused_data
    if not unpacking.eof:
        raise _false(coding)
    return b"".join(parts)


def _false(coding: bytes) -> WrongEncoding:
    return WrongEncoding(f"The Content-Encoding is {coding.decode()}, but the body is not in it.")


@lru_cache(maxsize=64)
def chosen(accepted: bytes) -> bytes | None:
    """The coding of an answer to that Accept-Encoding; None when it is to be plain.

    The highest quality wins; among equals the first, and what is named before what `*` stands for.
    (Alternator's tests recorded all of this from DynamoDB: also that a quality beyond 1 is 1, that
    one which cannot be read is 1 too, and that only the first parameter of a coding is looked at.)
    """
    qualities: dict[bytes, float] = {}
    for entry in accepted.lower().split(b",", CODINGS_MAX)[:CODINGS_MAX]:
        name, *parameters = (part.strip() for part in entry.split(b";"))
        quality = _quality(parameters[0]) if parameters else 1.0
        qualities[name] = max(quality, qualities.get(name, 0.0))
    of_others = qualities.get(ANY, 0.0)
    for coding in PACKERS:
        qualities.setdefault(coding, of_others)
    wanted = [name for name, quality in qualities.items() if name in PACKERS and quality > 0]
    return max(wanted, key=qualities.__getitem__, default=None)


def _quality(parameter: bytes) -> float:
    if not parameter.startswith(b"q"):
        return 0.0
    found = _QUALITY.fullmatch(parameter)
    return min(float(found[1]), 1.0) if found else 1.0
