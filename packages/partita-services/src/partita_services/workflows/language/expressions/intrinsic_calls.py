"""Calls of intrinsic functions: `States.Format('{} of {}', $.part, States.ArrayLength($.all))`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from partita_services.workflows.language.expressions.evaluation_scope import EvaluationScope
from partita_services.workflows.language.expressions.intrinsics import (
    INTRINSICS,
    Intrinsic,
    QuotedText,
    unescape,
)
from partita_services.workflows.language.expressions.json_paths import PathSyntaxError, parse_path
from partita_services.workflows.language.json_values import Json, parse_json
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.language.language_limits import INTRINSIC_LEVELS_MAX

Resolve = Callable[[str], Json]

_NAME = re.compile(r"States\.\w+")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_CONSTANT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true\b|false\b|null\b")
_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


class CallSyntaxError(ValueError):
    """Raised for a text that is not a call of an intrinsic function."""


class PathArgument(NamedTuple):
    """An argument that is a path, such as `$.part`."""

    text: str


class IntrinsicCall(NamedTuple):
    """A parsed call of an intrinsic function."""

    text: str
    intrinsic: Intrinsic
    arguments: tuple[Json, ...]
    """Values, string literals as Text, paths as PathArgument, and nested calls."""


def is_call(text: str) -> bool:
    return text.startswith("States.")


@lru_cache(maxsize=4096)
def parse_call(text: str) -> IntrinsicCall:
    reader = _Reader(text)
    call = reader.call(1)
    reader.skip_space()
    if reader.position < len(text):
        raise CallSyntaxError(f"'{text[:200]}' has text after its last bracket")
    return call


def evaluate_call(text: str, resolve: Resolve, scope: EvaluationScope) -> Json:
    """The result of a call; `resolve` evaluates paths among its arguments."""
    return _evaluate(parse_call(text), resolve, scope)


def _evaluate(call: IntrinsicCall, resolve: Resolve, scope: EvaluationScope) -> Json:
    is_format = call.intrinsic is INTRINSICS["States.Format"]
    arguments: list[Json] = []
    for argument in call.arguments:
        if isinstance(argument, IntrinsicCall):
            arguments.append(_evaluate(argument, resolve, scope))
        elif isinstance(argument, PathArgument):
            arguments.append(resolve(argument.text))
        elif isinstance(argument, QuotedText) and not (is_format and not arguments):
            arguments.append(unescape(argument))
        else:
            arguments.append(argument)
    try:
        return call.intrinsic.call(scope.moment, *arguments)
    except StateError as error:
        raise StateError(
            error.error, f"The function '{call.text}' had the following error: {error.cause}"
        ) from None


class _Reader:
    """A recursive-descent parser for a call."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def skip_space(self) -> None:
        self.position = self._match(_SPACE).end()

    def call(self, level: int) -> IntrinsicCall:
        if level > INTRINSIC_LEVELS_MAX:
            raise CallSyntaxError(f"calls are nested deeper than {INTRINSIC_LEVELS_MAX} levels")
        start = self.position
        name = _NAME.match(self.text, start)
        intrinsic = INTRINSICS.get(name[0]) if name else None
        if name is None or intrinsic is None:
            raise CallSyntaxError(f"'{self.text[start : start + 80]}' is not an intrinsic function")
        self.position = name.end()
        arguments = self._arguments(level)
        count = len(arguments)
        if count < intrinsic.arguments_min or count > (intrinsic.arguments_max or count):
            raise CallSyntaxError(f"{name[0]} does not take {count} arguments")
        if intrinsic.arguments_max == 0 and count:
            raise CallSyntaxError(f"{name[0]} takes no arguments")
        return IntrinsicCall(self.text[start : self.position], intrinsic, arguments)

    def _arguments(self, level: int) -> tuple[Json, ...]:
        self._expect("(")
        arguments: list[Json] = []
        self.skip_space()
        if not self.text.startswith(")", self.position):
            arguments.append(self._argument(level))
            while self._accept(","):
                arguments.append(self._argument(level))
        self._expect(")")
        return tuple(arguments)

    def _argument(self, level: int) -> Json:
        self.skip_space()
        if self.text.startswith("$", self.position):
            return self._path()
        if self.text.startswith("States.", self.position):
            return self.call(level + 1)
        if string := _STRING.match(self.text, self.position):
            self.position = string.end()
            return QuotedText(string[1])
        if constant := _CONSTANT.match(self.text, self.position):
            self.position = constant.end()
            return parse_json(constant[0])
        raise CallSyntaxError(
            f"an argument cannot begin with '{self.text[self.position : self.position + 40]}'"
        )

    def _path(self) -> PathArgument:
        """A path argument: everything up to a comma or bracket that is not part of it."""
        start, depth = self.position, 0
        while self.position < len(self.text):
            if depth and (quoted := _QUOTED.match(self.text, self.position)):
                self.position = quoted.end()
                continue
            character = self.text[self.position]
            if character in "([":
                depth += 1
            elif depth == 0 and character in ",)":
                break
            elif character in ")]":
                depth -= 1
            self.position += 1
        text = self.text[start : self.position].rstrip()
        try:
            parse_path(text)
        except PathSyntaxError as error:
            raise CallSyntaxError(str(error)) from None
        return PathArgument(text)

    def _accept(self, character: str) -> bool:
        self.skip_space()
        if not self.text.startswith(character, self.position):
            return False
        self.position += 1
        return True

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            raise CallSyntaxError(f"'{character}' is missing in '{self.text[:200]}'")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.position)
        assert match is not None
        return match
