"""Texts with wildcards and policy variables, as Action, Resource and Condition have them.

`*` stands for any characters, `?` for one. `${aws:username}` stands for a value of the request, as
it is: wildcards in it mean nothing. `${*}`, `${?}` and `${$}` are the characters themselves.
(IAM User Guide, "IAM policy elements: Variables and tags")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol


class Context(Protocol):
    """Condition keys in lower case, each with its values: a dict of them is one."""

    def get(self, key: str, /) -> Sequence[str] | None: ...


ANY: Final = "*"
ARN_PARTS: Final = 6
_VARIABLE: Final = re.compile(r"\$\{\s*([*?$]|[^},]+?)\s*(?:,\s*'([^'}]*)'\s*)?\}")
_PLACEHOLDER: Final = "\0"


class Unresolved(Exception):
    """A variable has no single value in this request: what it stands in matches nothing."""


def has_variables(text: str) -> bool:
    return "${" in text


def variables_of(text: str) -> list[str]:
    """The keys that a text takes from the request."""
    return [found[1].lower() for found in _VARIABLE.finditer(text) if found[1] not in "*?$"]


def malformed_variable(text: str) -> bool:
    return "${" in _VARIABLE.sub("", text)


def literal(text: str, context: Context) -> str:
    """With variables replaced, for operators that know no wildcards."""
    return _VARIABLE.sub(lambda found: _value(found, context), text)


def matches(
    pattern: str, text: str, context: Context | None, *, ignores_case: bool = False
) -> bool:
    """Whether a text is what a pattern stands for; without a context, variables are plain text."""
    if pattern == ANY:
        return True
    values: list[str] = []
    if context is not None and "${" in pattern:
        pattern = _VARIABLE.sub(lambda found: _noted(found, context, values), pattern)
    elif ANY not in pattern and "?" not in pattern:
        return pattern.lower() == text.lower() if ignores_case else pattern == text
    return _compiled(pattern, tuple(values), ignores_case).fullmatch(text) is not None


def arn_matches(pattern: str, arn: str, context: Context | None) -> bool:
    """Part by part: a wildcard does not reach beyond the next colon, but for the last part."""
    if pattern == ANY:
        return True
    if context is not None and "${" in pattern:
        values: list[str] = []
        pattern = _VARIABLE.sub(lambda found: _noted(found, context, values), pattern)
    else:
        values = []
        if pattern == arn:
            return True
    wanted, given = pattern.split(":", ARN_PARTS - 1), arn.split(":", ARN_PARTS - 1)
    if len(wanted) != len(given):
        return False
    rest = values
    for part, found in zip(wanted, given, strict=True):
        count = part.count(_PLACEHOLDER)
        if not _compiled(part, tuple(rest[:count]), False).fullmatch(found):
            return False
        rest = rest[count:]
    return True


def _value(found: re.Match[str], context: Context) -> str:
    name, default = found[1], found[2]
    if name in "*?$":
        return name
    values = context.get(name.lower())
    if values is not None and len(values) == 1:
        return values[0]
    if default is not None and not values:
        return default
    raise Unresolved


def _noted(found: re.Match[str], context: Context, values: list[str]) -> str:
    values.append(_value(found, context))
    return _PLACEHOLDER


@lru_cache(maxsize=4096)
def _compiled(pattern: str, values: tuple[str, ...], ignores_case: bool) -> re.Pattern[str]:
    rest = iter(values)
    parts = []
    for char in pattern:
        if char == ANY:
            parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif char == _PLACEHOLDER and values:
            parts.append(re.escape(next(rest)))
        else:
            parts.append(re.escape(char))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignores_case else 0))
