"""JSON in. What AWS cannot read gets a SerializationException without a text.

Decoding keeps the last of duplicate keys, as the service does, and refuses invalid UTF-8, lone
surrogates, anything after the document, and nesting beyond the decoder's stack.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from partita.errors import SerializationException
from partita.limits import KB

INTEGER_DIGITS_MAX: Final = 400
HUGE_NUMBERS_BODY_BYTES_MAX: Final = 512 * KB
"""The decoder for huge numbers is slow: in a larger body, which none needs, they are refused."""

_decode: Final = msgspec.json.Decoder().decode


def decode(body: bytes) -> dict[str, Any]:
    """The JSON object in a request body."""
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
