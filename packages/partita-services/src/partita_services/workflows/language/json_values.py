"""JSON values: text, size and type."""

from __future__ import annotations

from typing import Any

import msgspec

from partita_services.workflows.language.language_errors import DATA_LIMIT_EXCEEDED, StateError
from partita_services.workflows.language.language_limits import DATA_BYTES_MAX, DATA_LEVELS_MAX

Json = Any

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def json_text(value: Json) -> str:
    """Compact JSON, as the history and States.JsonToString show it."""
    return _encoder.encode(value).decode()


def parse_json(text: str | bytes) -> Json:
    """The value of a JSON text. Raises ValueError, for NaN and for too deep nesting as well."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def is_nested_deeper(value: Json, levels: int) -> bool:
    """True when a value has more levels than that. Works without recursion, which a hostile value
    would exhaust."""
    depth, level = 0, [value]
    while level and depth <= levels:
        depth += 1
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return depth > levels


def parse_data(text: str) -> Json:
    """The value of a JSON text from a client. Raises ValueError when it is invalid, too long or too
    deeply nested."""
    if len(text.encode()) > DATA_BYTES_MAX:
        raise ValueError(f"It is longer than {DATA_BYTES_MAX} bytes")
    value = parse_json(text)
    if text.count("[") + text.count("{") > DATA_LEVELS_MAX and is_nested_deeper(
        value, DATA_LEVELS_MAX
    ):
        raise ValueError(f"It is nested deeper than {DATA_LEVELS_MAX} levels")
    return value


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: Json) -> bool:
    """True for a whole number, which JSON may also write as 3.0."""
    return is_number(value) and value == value // 1


def type_name(value: Json) -> str:
    if value is None:
        return "null"
    return _TYPE_NAMES[type(value)]


_TYPE_NAMES = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def is_equal(left: Json, right: Json) -> bool:
    """Equality of JSON values: unlike in Python, `true` does not equal 1."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_equal(left[key], right[key]) for key in left)
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def check_size(value: Json, what: str) -> None:
    """Raises StateError when a value is larger than the output of a state may be."""
    if len(_encoder.encode(value)) > DATA_BYTES_MAX:
        raise StateError(
            DATA_LIMIT_EXCEEDED,
            f"The state/task '{what}' returned a result with a size exceeding the maximum number "
            "of bytes service limit.",
        )
