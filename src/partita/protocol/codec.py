"""JSON in and out. What AWS cannot read gets a SerializationException without a text.

Decoding keeps the last of duplicate keys, as the service does, and refuses invalid UTF-8, lone
surrogates, anything after the document, and nesting beyond the decoder's stack.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import orjson

from partita.errors import SerializationException

INTEGER_DIGITS_MAX = 400

_decode = msgspec.json.Decoder().decode
encode = orjson.dumps


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
    try:
        return json.loads(body, parse_int=_integer, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise SerializationException from None


def _integer(text: str) -> int:
    return int(text[:INTEGER_DIGITS_MAX])


def _refuse(constant: str) -> None:
    raise ValueError(constant)
