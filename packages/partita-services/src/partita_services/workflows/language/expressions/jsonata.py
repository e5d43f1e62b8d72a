"""JSONata: `{% ... %}` expressions, evaluated by a library with Step Functions' own functions.

Functions that read a clock, use randomness or could exhaust memory are replaced, so that an
evaluation depends on its scope only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache

import jsonata

from partita_services.workflows.language import processor_meter
from partita_services.workflows.language.expressions.evaluation_scope import EvaluationScope
from partita_services.workflows.language.expressions.intrinsics import hash_of, make_uuid
from partita_services.workflows.language.json_values import Json, parse_json
from partita_services.workflows.language.language_errors import QUERY_EVALUATION_ERROR, StateError
from partita_services.workflows.language.language_limits import (
    ARRAY_ITEMS_MAX,
    DATA_BYTES_MAX,
    QUERY_LEVELS_MAX,
)
from partita_services.workflows.language.timestamps import format_timestamp

OPEN, CLOSE = "{%", "%}"
TOO_MUCH = "It took too much time or memory."

_FROM_MILLIS = jsonata.Jsonata("$fromMillis($millis, $picture, $timezone)")


def is_expression(value: Json) -> bool:
    """True for a string that is an expression. Nothing, not even a space, may be outside the
    delimiters."""
    return isinstance(value, str) and value.startswith(OPEN) and value.endswith(CLOSE)


def source_of(value: str) -> str:
    return value[len(OPEN) : -len(CLOSE)].strip()


class JsonataExpression:
    """A compiled expression, and the functions that it may call."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._compiled = jsonata.Jsonata(source)
        self._compiled.set_output_convert_nulls(False)
        self._scope: EvaluationScope | None = None
        for name, function in _FUNCTIONS.items():
            self._compiled.register_function(name, self._bound(function))

    def evaluate(self, scope: EvaluationScope, field: str) -> Json:
        """The result. Raises StateError, which names the field."""
        metered = processor_meter.current()
        try:
            metered.start_part()
            milliseconds = metered.query_milliseconds()
        except processor_meter.ProcessorTimeExhausted:
            raise self._failure(field, f"threw an error. {TOO_MUCH}") from None
        # The library checks these bounds itself, so that the state fails with an error that it can
        # catch. The limits of the process are for what the library does not notice.
        self._compiled.set_runtime_bounds(milliseconds, QUERY_LEVELS_MAX)
        self._scope = scope
        bindings = {**scope.variables, "states": {**scope.states, "context": scope.context}}
        try:
            try:
                result = self._compiled.evaluate(None, bindings)
            except OverflowError:
                # The library has 64-bit integers, JSON has no limit.
                result = self._compiled.evaluate(None, _in_doubles(bindings))
        except jsonata.JsonataError as error:
            raise self._failure(field, f"threw an error. {error.code}: {error}") from None
        except MemoryError:
            raise self._failure(field, f"threw an error. {TOO_MUCH}") from None
        except (OverflowError, RecursionError, TypeError, ValueError) as error:
            raise self._failure(field, f"threw an error. {error}") from None
        finally:
            self._scope = None
        if result is jsonata.UNDEFINED:
            raise self._failure(field, "returned nothing (undefined).")
        return result

    def _bound(self, function: Callable[..., Json]) -> Callable[..., Json]:
        def call(*arguments: Json) -> Json:
            assert self._scope is not None
            return function(self._scope, *arguments)

        return call

    def _failure(self, field: str, what: str) -> StateError:
        return StateError(
            QUERY_EVALUATION_ERROR,
            f"The JSONata expression '{self.source}' specified for the field '{field}' {what}",
            location=field,
        )


def compile_expression(source: str) -> JsonataExpression:
    """The compiled expression. Raises ValueError with the reason."""
    try:
        processor_meter.current().start_part()
        return _compiled(source)
    except (MemoryError, processor_meter.ProcessorTimeExhausted):
        raise ValueError(TOO_MUCH) from None
    except jsonata.JsonataError as error:
        raise ValueError(f"{error.code}: {error}") from None


_compiled = lru_cache(maxsize=2048)(JsonataExpression)


def _in_doubles(value: Json) -> Json:
    """Integers beyond 64 bits as doubles, which JSONata uses for all numbers."""
    if isinstance(value, dict):
        return {key: _in_doubles(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_in_doubles(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return float(value)
    return value


def _now(scope: EvaluationScope, picture: Json = None, timezone: Json = None) -> Json:
    if picture is None:
        return format_timestamp(scope.moment.now)
    moment = {"millis": _millis(scope), "picture": picture}
    return _FROM_MILLIS.evaluate(None, {**moment, "timezone": timezone} if timezone else moment)


def _millis(scope: EvaluationScope) -> Json:
    return int(scope.moment.now * 1000)


def _random(scope: EvaluationScope, seed: Json = None) -> Json:
    return (scope.moment.random if seed is None else random.Random(seed)).random()


def _uuid(scope: EvaluationScope) -> Json:
    return make_uuid(scope.moment)


def _partition(_: EvaluationScope, items: Json, size: Json) -> Json:
    whole = items if isinstance(items, list) else [items]
    step = int(size)
    if step < 1:
        raise ValueError("the chunk size must be positive")
    return [whole[start : start + step] for start in range(0, len(whole), step)]


def _range(_: EvaluationScope, first: Json, last: Json, step: Json) -> Json:
    if not step:
        raise ValueError("the step must not be 0")
    if abs((last - first) / step) >= ARRAY_ITEMS_MAX:
        raise ValueError(f"a range has at most {ARRAY_ITEMS_MAX} items")
    return [first + place * step for place in range(int((last - first) // step) + 1)]


def _hash(scope: EvaluationScope, value: Json, algorithm: Json = "SHA-256") -> Json:
    try:
        return hash_of(scope.moment, value, algorithm)
    except StateError as error:
        raise ValueError(error.cause) from None


def _parse(_: EvaluationScope, text: Json) -> Json:
    return parse_json(text)


def _eval(_: EvaluationScope, *__: Json) -> Json:
    raise ValueError("$eval is not available; $parse reads JSON")


def _pad(_: EvaluationScope, text: Json, width: Json, character: Json = " ") -> Json:
    if abs(width) > DATA_BYTES_MAX:
        raise ValueError(f"the width is at most {DATA_BYTES_MAX}")
    missing = max(0, int(abs(width)) - len(text))
    filling = ((character or " ") * missing)[:missing]
    return text + filling if width > 0 else filling + text


_FUNCTIONS: dict[str, Callable[..., Json]] = {
    "now": _now,
    "millis": _millis,
    "random": _random,
    "uuid": _uuid,
    "partition": _partition,
    "range": _range,
    "hash": _hash,
    "parse": _parse,
    "eval": _eval,
    "pad": _pad,
}
