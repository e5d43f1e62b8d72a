"""The intrinsic functions, such as `States.Format`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import random
import re
import uuid
from collections.abc import Callable
from typing import NamedTuple

from partita_services.workflows.language.expressions.evaluation_scope import StepMoment
from partita_services.workflows.language.json_values import (
    Json,
    is_equal,
    is_number,
    json_text,
    parse_json,
    type_name,
)
from partita_services.workflows.language.language_errors import INTRINSIC_FAILURE, StateError
from partita_services.workflows.language.language_limits import ARRAY_ITEMS_MAX, HASHED_CHARS_MAX

INTEGER_MAX = 2**31 - 1
INTEGER_MIN = -(2**31)

_PIECE = re.compile(r"\\(?P<escaped>.)|(?P<hole>\{\})|(?P<brace>[{}])", re.DOTALL)


class QuotedText(str):
    """A string literal as it is written: `\\{` is a brace, `{}` a placeholder."""


def unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def failure(reason: str) -> StateError:
    return StateError(INTRINSIC_FAILURE, reason)


def format_text(_: StepMoment, template: Json, *values: Json) -> Json:
    """The template with each `{}` replaced by the next value."""
    remaining = list(values)

    def fill(piece: re.Match[str]) -> str:
        if piece["escaped"]:
            return piece["escaped"]
        if piece["brace"]:
            raise failure(f"Invalid template for States.Format: unmatched '{piece['brace']}'.")
        if not remaining:
            raise failure("States.Format has fewer arguments than its template has places.")
        value = remaining.pop(0)
        return value if isinstance(value, str) else json_text(value)

    text = _PIECE.sub(fill, _string(template))
    if remaining:
        raise failure("States.Format has more arguments than its template has places.")
    return text


def string_to_json(_: StepMoment, text: Json) -> Json:
    try:
        return parse_json(_string(text))
    except ValueError as error:
        raise failure(f"Invalid JSON for States.StringToJson: {error}.") from None


def json_to_string(_: StepMoment, value: Json) -> Json:
    return json_text(value)


def array(_: StepMoment, *values: Json) -> Json:
    return list(values)


def array_partition(_: StepMoment, items: Json, size: Json) -> Json:
    whole, step = _array(items), _integer(size)
    if step < 1:
        raise failure("The chunk size of States.ArrayPartition must be positive.")
    return [whole[start : start + step] for start in range(0, len(whole), step)]


def array_contains(_: StepMoment, items: Json, value: Json) -> Json:
    return any(is_equal(item, value) for item in _array(items))


def array_range(_: StepMoment, first: Json, last: Json, step: Json) -> Json:
    start, end, by = _integer(first), _integer(last), _integer(step)
    if by == 0:
        raise failure("The step of States.ArrayRange must not be 0.")
    numbers = range(start, end + (1 if by > 0 else -1), by)
    if (end - start) // by >= ARRAY_ITEMS_MAX:
        raise failure(f"States.ArrayRange returns at most {ARRAY_ITEMS_MAX} items.")
    return list(numbers)


def array_get_item(_: StepMoment, items: Json, index: Json) -> Json:
    whole, place = _array(items), _integer(index)
    if not 0 <= place < len(whole):
        raise failure(f"The index {place} is outside the array of {len(whole)} items.")
    return whole[place]


def array_length(_: StepMoment, items: Json) -> Json:
    return len(_array(items))


def array_unique(_: StepMoment, items: Json) -> Json:
    # Equal JSON values have the same canonical text: names sorted, 1.0 written as 1.
    return list({_canonical(item): item for item in reversed(_array(items))}.values())[::-1]


def base64_encode(_: StepMoment, text: Json) -> Json:
    return base64.b64encode(_short(_string(text)).encode()).decode()


def base64_decode(_: StepMoment, text: Json) -> Json:
    try:
        return base64.b64decode(_short(_string(text)), validate=True).decode()
    except (binascii.Error, ValueError):
        raise failure("Invalid Base64 for States.Base64Decode.") from None


def hash_of(_: StepMoment, value: Json, algorithm: Json) -> Json:
    name = _HASHES.get(_string(algorithm))
    if name is None:
        raise failure(f"States.Hash supports {', '.join(_HASHES)}, not '{algorithm}'.")
    text = _short(value if isinstance(value, str) else json_text(value))
    return hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


def json_merge(_: StepMoment, first: Json, second: Json, is_deep: Json) -> Json:
    if is_deep is not False:
        raise failure("States.JsonMerge only merges shallowly: its third argument must be false.")
    if not isinstance(first, dict) or not isinstance(second, dict):
        raise failure("States.JsonMerge merges two objects.")
    return {**first, **second}


def math_random(moment: StepMoment, first: Json, end: Json, seed: Json = None) -> Json:
    low, high = _integer(first), _integer(end)
    if low >= high:
        raise failure("The start of States.MathRandom must be less than its end.")
    chance = moment.random if seed is None else random.Random(_integer(seed))
    return chance.randrange(low, high)


def math_add(_: StepMoment, first: Json, second: Json) -> Json:
    total = _integer(first) + _integer(second)
    if not INTEGER_MIN <= total <= INTEGER_MAX:
        raise failure(f"The sum {total} is outside the range of States.MathAdd.")
    return total


def string_split(_: StepMoment, text: Json, separators: Json) -> Json:
    # Every character is a separator, and empty parts are left out. (recorded from the service)
    whole, characters = _string(text), _string(separators)
    if not characters:
        return [whole]
    return [part for part in re.split(f"[{re.escape(characters)}]", whole) if part]


def make_uuid(moment: StepMoment) -> Json:
    return str(uuid.UUID(int=moment.random.getrandbits(128), version=4))


class Intrinsic(NamedTuple):
    call: Callable[..., Json]
    arguments_min: int
    arguments_max: int | None


INTRINSICS = {
    "States.Format": Intrinsic(format_text, 1, None),
    "States.StringToJson": Intrinsic(string_to_json, 1, 1),
    "States.JsonToString": Intrinsic(json_to_string, 1, 1),
    "States.Array": Intrinsic(array, 0, None),
    "States.ArrayPartition": Intrinsic(array_partition, 2, 2),
    "States.ArrayContains": Intrinsic(array_contains, 2, 2),
    "States.ArrayRange": Intrinsic(array_range, 3, 3),
    "States.ArrayGetItem": Intrinsic(array_get_item, 2, 2),
    "States.ArrayLength": Intrinsic(array_length, 1, 1),
    "States.ArrayUnique": Intrinsic(array_unique, 1, 1),
    "States.Base64Encode": Intrinsic(base64_encode, 1, 1),
    "States.Base64Decode": Intrinsic(base64_decode, 1, 1),
    "States.Hash": Intrinsic(hash_of, 2, 2),
    "States.JsonMerge": Intrinsic(json_merge, 3, 3),
    "States.MathRandom": Intrinsic(math_random, 2, 3),
    "States.MathAdd": Intrinsic(math_add, 2, 2),
    "States.StringSplit": Intrinsic(string_split, 2, 2),
    "States.UUID": Intrinsic(make_uuid, 0, 0),
}

_HASHES = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}


def _string(value: Json) -> str:
    if not isinstance(value, str):
        raise failure(f"A string is expected, not {type_name(value)}.")
    return value


def _array(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise failure(f"An array is expected, not {type_name(value)}.")
    return value


def _integer(value: Json) -> int:
    """A number, rounded half up. (Step Functions guide, "Intrinsic functions")"""
    if not is_number(value):
        raise failure(f"A number is expected, not {type_name(value)}.")
    if abs(value) >= 2**63:
        raise failure("A number of up to 64 bits is expected.")
    return value if isinstance(value, int) else int((value + 0.5) // 1)


def _short(text: str) -> str:
    if len(text) > HASHED_CHARS_MAX:
        raise failure(f"At most {HASHED_CHARS_MAX} characters are allowed.")
    return text


def _canonical(value: Json) -> str:
    if isinstance(value, dict):
        return json_text({key: _canonical(value[key]) for key in sorted(value)})
    if isinstance(value, list):
        return json_text([_canonical(item) for item in value])
    return json_text(int(value) if isinstance(value, float) and value == value // 1 else value)
