"""Patterns with wildcards, matched without backtracking.

A pattern is cut at its `*`. The first part must begin the text and the last one end it; the parts
between are looked for from left to right, each at the first place that it fits, which leaves the
most room for those behind it. So no place is tried twice for one part, and the time is at most the
product of both lengths, whatever the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple


class Sign(Enum):
    """A wildcard, as distinct from the character that stands for it."""

    MANY = "*"
    """Any characters, or none."""
    ONE = "?"
    """Any one character."""


Token = str | Sign
"""A text that stands for itself, or a wildcard."""


class Holed(NamedTuple):
    """A text with places for any character. Its regular expression has one width and no choices,
    so it does not backtrack."""

    pattern: re.Pattern[str]
    width: int


Part = str | Holed
"""What is between two `*`."""
Matches = Callable[[str], bool]


def matcher(tokens: Iterable[Token]) -> Matches:
    """Tells whether a text is what the tokens stand for."""
    return _matcher([_part(part) for part in _cut(tokens)])


def effort_of(tokens: Iterable[Token]) -> int:
    """Steps that matching takes for each character of a text, at most."""
    return 1 + sum(len(part) for part in _cut(tokens) if Sign.ONE in part)


def _cut(tokens: Iterable[Token]) -> list[list[Token]]:
    """The parts between stars, in single characters."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token is Sign.MANY:
            parts.append([])
        elif token is Sign.ONE:
            parts[-1].append(token)
        else:
            parts[-1] += token
    return parts


def _part(characters: list[Token]) -> Part:
    texts = [one for one in characters if isinstance(one, str)]
    if len(texts) == len(characters):
        return "".join(texts)
    pattern = "".join("." if one is Sign.ONE else re.escape(str(one)) for one in characters)
    return Holed(re.compile(pattern, re.DOTALL), len(characters))


def _matcher(parts: list[Part]) -> Matches:
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return _of_texts(texts)
    first, *middle = parts
    if not middle:
        assert isinstance(first, Holed)
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
    """The same, faster, for patterns without `?`, as most are."""
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
    """Where a part ends that begins the text; -1 if it does not."""
    if isinstance(part, str):
        return len(part) if text.startswith(part) else -1
    return part.width if part.pattern.match(text) else -1


def _end(part: Part, text: str) -> int:
    """Where a part begins that ends the text; -1 if it does not."""
    if isinstance(part, str):
        return len(text) - len(part) if text.endswith(part) else -1
    start = len(text) - part.width
    return start if start >= 0 and part.pattern.match(text, start) else -1


def _find(part: Part, text: str, start: int, end: int) -> int:
    """Where a part ends at the first place that it has; -1 if it has none."""
    if isinstance(part, str):
        place = text.find(part, start, end)
        return -1 if place < 0 else place + len(part)
    found = part.pattern.search(text, start, end)
    return -1 if found is None else found.end()
