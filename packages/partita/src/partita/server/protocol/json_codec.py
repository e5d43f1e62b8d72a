"""Decodes the JSON of requests. A body that AWS cannot read gets a SerializationException without a
message.

The last of duplicate keys counts, as in the service. Refused are invalid UTF-8, lone surrogates,
anything after the document, nesting beyond the decoder's stack, and more values than a request
needs.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from partita.errors import SerializationException
from partita.foundation.service_limits import KB, MB

INTEGER_DIGITS_MAX: Final = 400
HUGE_NUMBERS_BODY_BYTES_MAX: Final = 512 * KB
"""The decoder for huge numbers is slow, so they are refused in larger bodies."""
VALUES_MAX: Final = 250_000
"""The number of values in a request that has no items. Decoding as many empty arrays takes 30 ms.
The largest request without items is the definition of a workflow, with 1 MB."""

_decode: Final = msgspec.json.Decoder().decode


def decode(body: bytes) -> dict[str, Any]:
    """Decodes the JSON object in a request body."""
    if has_many_values(body):
        raise SerializationException
    return decode_large(body)


def has_many_values(body: bytes) -> bool:
    """True when a body may have too many values.

    It counts the characters that precede values, so it overestimates if strings contain them.
    """
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
    """Decodes the body of a request for items, which may have any number of values."""
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
    """Decodes a body with numbers that the fast decoder refuses.

    To AWS these are valid JSON. The error that the client expects is about the field they are in.
    """
    if len(body) > HUGE_NUMBERS_BODY_BYTES_MAX:
        raise SerializationException
    try:
        document = json.loads(body.decode(), parse_int=_integer, parse_constant=_refuse)
        # This decoder accepts lone surrogates, which cannot be encoded as UTF-8.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise SerializationException from None
    return document


def _integer(text: str) -> int:
    return int(text[:INTEGER_DIGITS_MAX])


def _refuse(constant: str) -> None:
    raise ValueError(constant)
