"""Patterns with the wildcards `*` and `?`, matched without backtracking.

A pattern is split at each `*`. The text must begin with the first part and end with the last. The
parts between are searched from left to right, each at the first position where it matches, which
leaves the most room for the parts after it. No position is tried twice for the same part, so the
time is at most the product of both lengths, whatever the pattern. Users write these patterns in
policies, so a slow one would be an attack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple


class WildcardSign(Enum):
    """A wildcard, as opposed to a literal `*` or `?`."""

    MANY = "*"
    """Any number of characters, including none."""
    ONE = "?"
    """Exactly one character."""


Token = str | WildcardSign
"""Literal text, or a wildcard."""


class FixedWidthPattern(NamedTuple):
    """A part with `?` in it.

    Its regular expression has a fixed width and no alternatives, so it does not backtrack.
    """

    pattern: re.Pattern[str]
    width: int


Part = str | FixedWidthPattern
"""The pattern between two `*`."""
Matches = Callable[[str], bool]


def matcher(tokens: Iterable[Token]) -> Matches:
    """Returns a function that is True for texts that match the pattern."""
    return _matcher([_part(part) for part in _cut(tokens)])


def effort_of(tokens: Iterable[Token]) -> int:
    """Returns the most steps that matching takes for each character of a text."""
    return 1 + sum(len(part) for part in _cut(tokens) if WildcardSign.ONE in part)


def _cut(tokens: Iterable[Token]) -> list[list[Token]]:
    """Returns the parts between the stars, as lists of single characters and `?` signs."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token is WildcardSign.MANY:
            parts.append([])
        elif token is WildcardSign.ONE:
            parts[-1].append(token)
        else:
            parts[-1] += token
    return parts


def _part(characters: list[Token]) -> Part:
    texts = [token for token in characters if isinstance(token, str)]
    if len(texts) == len(characters):
        return "".join(texts)
    pattern = "".join(
        "." if token is WildcardSign.ONE else re.escape(str(token)) for token in characters
    )
    return FixedWidthPattern(re.compile(pattern, re.DOTALL), len(characters))


def _matcher(parts: list[Part]) -> Matches:
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return _of_texts(texts)
    first, *middle = parts
    if not middle:
        assert isinstance(first, FixedWidthPattern)
        whole = first.pattern.fullmatch
        return lambda text: whole(text) is not None
    last = middle.pop()

    def matches(text: str) -> bool:
        start, end = _begin(first, text), _end(last, text)
        if start < 0 or end < start:
            return False
        for part in middle:
            start = _find(part, text, start, end)
            if start < 0:
                return False
        return True

    return matches


def _of_texts(parts: list[str]) -> Matches:
    """Returns a faster matcher for patterns without `?`, which most are."""
    first, *others = parts
    if not others:
        return first.__eq__
    last = others.pop()
    middle = [(part, len(part)) for part in others if part]
    if not middle and not last:
        return lambda text: text.startswith(first)
    first_size, last_size = len(first), len(last)

    def matches(text: str) -> bool:
        if not (text.startswith(first) and text.endswith(last)):
            return False
        start, end = first_size, len(text) - last_size
        for part, size in middle:
            start = text.find(part, start, end)
            if start < 0:
                return False
            start += size
        return start <= end

    return matches


def _begin(part: Part, text: str) -> int:
    """Returns where the first part ends, or -1 if the text does not begin with it."""
    if isinstance(part, str):
        return len(part) if text.startswith(part) else -1
    return part.width if part.pattern.match(text) else -1


def _end(part: Part, text: str) -> int:
    """Returns where the last part begins, or -1 if the text does not end with it."""
    if isinstance(part, str):
        return len(text) - len(part) if text.endswith(part) else -1
    start = len(text) - part.width
    return start if start >= 0 and part.pattern.match(text, start) else -1


def _find(part: Part, text: str, start: int, end: int) -> int:
    """Returns where the first match of a part ends, or -1 without a match."""
    if isinstance(part, str):
        position = text.find(part, start, end)
        return -1 if position < 0 else position + len(part)
    match = part.pattern.search(text, start, end)
    return -1 if match is None else match.end()
