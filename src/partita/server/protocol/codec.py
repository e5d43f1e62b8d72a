"""JSON in. What AWS cannot read gets a SerializationException without a text.

Decoding keeps the last of duplicate keys, as the service does, and refuses invalid UTF-8, lone
surrogates, anything after the document, nesting beyond the decoder's stack, and more values than
a request needs.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from partita.errors import SerializationException
from partita.limits import KB, MB

INTEGER_DIGITS_MAX: Final = 400
HUGE_NUMBERS_BODY_BYTES_MAX: Final = 512 * KB
"""The decoder for huge numbers is slow: in a larger body, which none needs, they are refused."""
VALUES_MAX: Final = 250_000
"""Of a request that has no items: as many, all of them empty arrays, take 30 ms to decode. The
largest such request, a definition of a workflow, has 1 MB."""

_decode: Final = msgspec.json.Decoder().decode


def decode(body: bytes) -> dict[str, Any]:
    """The JSON object in a request body."""
    if has_many_values(body):
        raise SerializationException
    return decode_large(body)


def has_many_values(body: bytes) -> bool:
    """Whether a body may have too many values, by the signs before them: those in strings count."""
    if len(body) <= VALUES_MAX:
        return False
    signs = 0
    for start in range(0, len(body), MB):
        end = start + MB
        for sign in (b",", b"[", b"{"):
            signs += body.count(sign, start, end)
        if signs > VALUES_MAX:
            return True
    return False


def decode_large(body: bytes) -> dict[str, Any]:
    """The same of a request for items, which may have any number of values."""
    try:
        document = _decode(body)
    except msgspec.ValidationError:
        document = _decode_huge_numbers(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SerializationException from None
    if type(document) is not dict:
        raise SerializationException
    return document


def _decode_huge_numbers(body: bytes) -> Any:
    """Numbers beyond the fast decoder are numbers all the same: their field is what is wrong."""
    if len(body) > HUGE_NUMBERS_BODY_BYTES_MAX:
        raise SerializationException
    try:
        document = json.loads(body.decode(), parse_int=_integer, parse_constant=_refuse)
        # This decoder takes lone surrogates, which cannot be written as UTF-8.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise SerializationException from None
    return document


def _integer(text: str) -> int:
    return int(text[:INTEGER_DIGITS_MAX])


def _refuse(constant: str) -> None:
    raise ValueError(constant)
