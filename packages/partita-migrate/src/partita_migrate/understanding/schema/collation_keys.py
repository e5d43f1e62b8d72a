"""Turns a collation's weights into texts for keys whose bytes sort as the server sorts.

A server compares two texts weight by weight, so each weight gets a text, and no text is a prefix
that a lower weight could continue. A weight is written as the first character that has it alone, as
long as characters and weights are in the same order: that covers digits, Latin capitals and most of
every other script. A weight between two of these is written as the character before it, `HIGH`, and
a counter: the third weight after `A` that has no character of its own is `A`, U+10FFFF, `2`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from partita_migrate.understanding.schema.collations import HIGH, CharacterRun

Weight = tuple[int, ...]
"""One weight, or the pair of weights that an ideograph has."""

PLANE = 0x10000
_KEPT = " -./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""These characters are written as themselves before all others."""
_PREFERENCES: tuple[Callable[[int], bool], ...] = (
    set(map(ord, _KEPT)).__contains__,
    range(PLANE).__contains__,
    lambda code: True,
)
_LOWEST = "\0"
"""Stands before the first character that is written as itself."""
_FIRST_COUNTER = ord("0")
_SURROGATES = range(0xD800, 0xE000)
_IMPLICIT = range(0xFB00, 0xFC00)
"""First halves of weights that are computed from a code point; the second half follows."""
_UNLISTED = 0xFBC0
"""The first of them that are not ideographs."""
_RUN_MIN = 8


def texts_of(
    weights: Mapping[str, bytes], weight_bytes: int, beyond: bytes | None = None
) -> tuple[dict[str, str], list[CharacterRun]]:
    """Returns what each character, and each joined letter of several characters, becomes in keys.

    `weights` has every character of the first plane, the characters beyond it that have a weight of
    their own, and the joined letters. All other characters beyond the first plane weigh `beyond`,
    or if that is None, sort after everything else by their code.
    """
    split = {letter: _split(weighed, weight_bytes) for letter, weighed in weights.items()}
    # Of several characters with one weight, a kept one (a digit, a capital) represents it.
    alone: dict[Weight, int] = {}
    for letter in sorted(split, key=lambda letter: (letter not in _KEPT, letter)):
        if len(letter) == len(split[letter]) == 1:
            alone.setdefault(split[letter][0], ord(letter))
    beyond_weights = _split(beyond or b"", weight_bytes)
    ordered = sorted(
        {weight for weighed in (*split.values(), beyond_weights) for weight in weighed}
    )
    codes = [_own_code(weight, split) or alone.get(weight) for weight in ordered]
    texts = dict(zip(ordered, _texts(codes), strict=True))
    written = {
        letter: "".join(texts[weight] for weight in weighed) for letter, weighed in split.items()
    }
    runs = []
    if beyond is not None:
        text = "".join(texts[weight] for weight in beyond_weights)
        runs = [CharacterRun(first=chr(PLANE), last=HIGH, text=text)]
    return _shortened(written, runs)


def _own_code(weight: Weight, split: Mapping[str, tuple[Weight, ...]]) -> int | None:
    """Returns the character whose code the weight is computed from. Radicals that look like an
    ideograph have its weight but not its code, and are not returned."""
    if len(weight) == 1:
        return None
    code = (weight[0] & 0x3F) << 15 | weight[1] & 0x7FFF
    if code > ord(HIGH):
        return None
    is_unlisted = weight[0] >= _UNLISTED and code >= PLANE and chr(code) not in split
    return code if is_unlisted or split.get(chr(code)) == (weight,) else None


def _split(weighed: bytes, weight_bytes: int) -> tuple[Weight, ...]:
    units = [
        int.from_bytes(weighed[start : start + weight_bytes], "big")
        for start in range(0, len(weighed), weight_bytes)
    ]
    weights: list[Weight] = []
    while units:
        length = 2 if weight_bytes == 2 and units[0] in _IMPLICIT else 1
        weights.append(tuple(units[:length]))
        del units[:length]
    return tuple(weights)


def _texts(codes: Sequence[int | None]) -> Iterator[str]:
    """Yields the text of each weight in order. `codes` has the character with that weight alone."""
    members = set(_members(codes))
    before, counter = _LOWEST, _FIRST_COUNTER
    for position, code in enumerate(codes):
        if code is not None and position in members:
            before, counter = chr(code), _FIRST_COUNTER
            yield before
            continue
        yield before + HIGH + chr(counter)
        counter += 1 if counter + 1 not in _SURROGATES else len(_SURROGATES) + 1


def _members(codes: Sequence[int | None]) -> Iterator[int]:
    """Yields the positions of the characters that are written as themselves: as many as possible
    whose codes rise together, the preferred ones first."""
    fixed = [(-1, ord(_LOWEST)), (len(codes), ord(HIGH))]
    for is_preferred in _PREFERENCES:
        more = list(fixed)
        for (start, low), (end, high) in pairwise(fixed):
            more += _rising(
                (position, code)
                for position, code in enumerate(codes[start + 1 : end], start + 1)
                if code is not None and low < code < high and is_preferred(code)
            )
        fixed = sorted(more)
    return (position for position, _ in fixed)


def _rising(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the longest subsequence whose second numbers rise (patience sorting)."""
    lowest_ends: list[int] = []
    ends: list[int] = []
    candidates: list[tuple[int, int]] = []
    previous: list[int] = []
    for position, code in pairs:
        length = bisect_left(lowest_ends, code)
        previous.append(ends[length - 1] if length else -1)
        lowest_ends[length : length + 1] = [code]
        ends[length : length + 1] = [len(candidates)]
        candidates.append((position, code))
    longest: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        longest.append(candidates[at])
        at = previous[at]
    return longest[::-1]


def _shortened(
    texts: Mapping[str, str], beyond_runs: list[CharacterRun]
) -> tuple[dict[str, str], list[CharacterRun]]:
    """Drops what is written as itself, and joins neighbors with regular texts into runs."""
    beyond = [run.first for run in beyond_runs]
    listed = {
        character: text
        for character, text in texts.items()
        if text != character or any(character >= first for first in beyond)
    }
    runs: list[CharacterRun] = []
    run: list[str] = []
    for character in sorted(character for character in listed if len(character) == 1):
        if run and not _continues(listed, run, character):
            runs += _run(listed, run)
            run = []
        run.append(character)
    runs += _run(listed, run)
    for character_run in runs:
        for code in range(ord(character_run.first), ord(character_run.last) + 1):
            del listed[chr(code)]
    return dict(sorted(listed.items())), runs + beyond_runs


def _run(listed: Mapping[str, str], characters: Sequence[str]) -> list[CharacterRun]:
    if len(characters) < _RUN_MIN:
        return []
    text = listed[characters[0]]
    if text == listed[characters[-1]]:
        return [CharacterRun(first=characters[0], last=characters[-1], text=text)]
    return [
        CharacterRun(first=characters[0], last=characters[-1], text=text[:-1], counts_from=text[-1])
    ]


def _continues(listed: Mapping[str, str], run: Sequence[str], character: str) -> bool:
    first, last, text = listed[run[0]], listed[run[-1]], listed[character]
    if ord(character) != ord(run[-1]) + 1:
        return False
    is_same = text == last and (len(run) == 1 or first == last)
    is_next = bool(text and last) and text[:-1] == last[:-1] and ord(text[-1]) == ord(last[-1]) + 1
    return is_same or (is_next and (len(run) == 1 or first != last))
