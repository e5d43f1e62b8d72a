"""Patterns with wildcards and policy variables, as in Action, Resource and Condition.

`*` matches any characters, `?` matches one. `${aws:username}` is replaced with a value of the
request, in which wildcards have no meaning. `${*}`, `${?}` and `${$}` are the characters
themselves. (IAM User Guide, "IAM policy elements: Variables and tags")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from partita.foundation import wildcards
from partita.foundation.wildcards import Matches, Token, WildcardSign, matcher


class ConditionContext(Protocol):
    """Returns the values of condition keys, which are in lower case. A dict is a context, too."""

    def get(self, key: str, /) -> Sequence[str] | None: ...


ANY: Final = "*"
ARN_PARTS: Final = 6
ESCAPED: Final = ("*", "?", "$")
CACHED_VALUE_CHARS_MAX: Final = 256
"""Patterns with longer values of variables are not cached, because clients choose the values."""
_WILD: Final = re.compile(r"([*?])")


class UnresolvedVariable(Exception):
    """Raised when a variable has no single value in a request. The pattern then never matches."""


class PolicyVariable(NamedTuple):
    """A variable: `${name}`, or with a default `${name, 'default'}`."""

    name: str
    default: str | None


Piece = str | PolicyVariable


def has_variables(text: str) -> bool:
    return "${" in text


def variables_of(text: str) -> list[str]:
    """Returns the condition keys that the variables of a text refer to."""
    return [
        piece.name.lower()
        for piece in _pieces(text)
        if isinstance(piece, PolicyVariable) and piece.name not in ESCAPED
    ]


def malformed_variable(text: str) -> bool:
    return any(isinstance(piece, str) and "${" in piece for piece in _pieces(text))


def wildcards_in(text: str) -> int:
    return text.count("*") + text.count("?")


def effort_of(pattern: str) -> int:
    """Returns the maximum number of steps per character of a text that is matched."""
    return wildcards.effort_of(_signs(pattern))


def literal(text: str, context: ConditionContext) -> str:
    """Replaces the variables of a text, for operators without wildcards."""
    return "".join(
        _value(piece, context) if isinstance(piece, PolicyVariable) else piece
        for piece in _pieces(text)
    )


def matches(pattern: str, text: str, context: ConditionContext | None) -> bool:
    """True if a text matches a pattern. Without a context, variables are plain text."""
    if pattern == ANY:
        return True
    if context is not None and "${" in pattern:
        values = _values(pattern, context)
        return _resolved(pattern, values)(text)
    if ANY not in pattern and "?" not in pattern:
        return pattern == text
    return _wildcard(pattern)(text)


def arn_matches(pattern: str, arn: str, context: ConditionContext | None) -> bool:
    """True if an ARN matches a pattern part by part: only in the last part can a wildcard match a
    colon."""
    if pattern in (ANY, arn):
        return True
    if context is not None and "${" in pattern:
        values = _values(pattern, context)
        return _resolved_arn(pattern, values)(arn)
    return _arn(pattern)(arn)


# From texts to pieces, and from pieces with their values to matchers


@lru_cache(maxsize=4096)
def _pieces(text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    done = start = 0
    while (start := text.find("${", start)) >= 0:
        end = text.find("}", start)
        if end < 0:
            break
        variable = _variable(text[start + 2 : end])
        if variable is None:
            start += 2
            continue
        pieces += [text[done:start], variable]
        done = start = end + 1
    return (*pieces, text[done:])


def _variable(text: str) -> PolicyVariable | None:
    """Parses the text between the braces of a variable. Returns None if it is malformed."""
    name, comma, default = text.partition(",")
    if not name:
        return None
    name = name.strip() or name
    if not comma:
        return PolicyVariable(name, None)
    default = default.strip()
    is_quoted = len(default) > 1 and default[0] == default[-1] == "'" and default.count("'") == 2
    return PolicyVariable(name, default[1:-1]) if is_quoted else None


def _value(variable: PolicyVariable, context: ConditionContext) -> str:
    if variable.name in ESCAPED:
        return variable.name
    values = context.get(variable.name.lower())
    if values is not None and len(values) == 1:
        return values[0]
    if variable.default is not None and not values:
        return variable.default
    raise UnresolvedVariable


def _values(pattern: str, context: ConditionContext) -> tuple[str, ...]:
    return tuple(
        _value(piece, context) for piece in _pieces(pattern) if isinstance(piece, PolicyVariable)
    )


def _signs(text: str) -> list[Token]:
    return [WildcardSign(part) if part in ("*", "?") else part for part in _WILD.split(text)]


@lru_cache(maxsize=4096)
def _wildcard(pattern: str) -> Matches:
    return matcher(_signs(pattern))


@lru_cache(maxsize=4096)
def _arn(pattern: str) -> Matches:
    return _arn_matcher([pattern], ())


def _kept(make: Callable[[str, tuple[str, ...]], Matches]) -> Callable[..., Matches]:
    """Caches matchers, except those with long values of variables."""
    cached = lru_cache(maxsize=4096)(make)

    def get(pattern: str, values: tuple[str, ...]) -> Matches:
        is_short = sum(map(len, values)) <= CACHED_VALUE_CHARS_MAX
        return cached(pattern, values) if is_short else make(pattern, values)

    return get


@_kept
def _resolved(pattern: str, values: tuple[str, ...]) -> Matches:
    rest = iter(values)
    tokens: list[Token] = []
    for piece in _pieces(pattern):
        tokens += [next(rest)] if isinstance(piece, PolicyVariable) else _signs(piece)
    return matcher(tokens)


@_kept
def _resolved_arn(pattern: str, values: tuple[str, ...]) -> Matches:
    return _arn_matcher(_pieces(pattern), values)


def _arn_matcher(pieces: Iterable[Piece], values: Iterable[str]) -> Matches:
    """Returns a matcher for ARNs. Colons of the pattern separate parts, those in values do not."""
    rest = iter(values)
    parts: list[list[Token]] = [[]]
    for piece in pieces:
        if isinstance(piece, PolicyVariable):
            parts[-1].append(next(rest))
            continue
        first, *more = piece.split(":", ARN_PARTS - len(parts))
        parts[-1] += _signs(first)
        parts += map(_signs, more)
    return _prefixed(parts) or _part_by_part(parts)


def _prefixed(parts: Sequence[Sequence[Token]]) -> Matches | None:
    """Returns a fast matcher for a pattern with wildcards in its last part only, as most have."""
    texts = [_plain(part) for part in parts[:-1]]
    if len(texts) != ARN_PARTS - 1 or any(text is None or ":" in text for text in texts):
        return None
    prefix = "".join(f"{text}:" for text in texts)
    size, is_last = len(prefix), matcher(parts[-1])
    return lambda arn: arn.startswith(prefix) and is_last(arn[size:])


def _plain(part: Sequence[Token]) -> str | None:
    texts = [token for token in part if isinstance(token, str)]
    return "".join(texts) if len(texts) == len(part) else None


def _part_by_part(parts: Sequence[Sequence[Token]]) -> Matches:
    matchers = [matcher(part) for part in parts]

    def matches(arn: str) -> bool:
        texts = arn.split(":", ARN_PARTS - 1)
        return len(texts) == len(matchers) and all(
            is_match(text) for is_match, text in zip(matchers, texts, strict=True)
        )

    return matches
