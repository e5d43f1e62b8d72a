"""Collation keys: turns the weights by which a server compares into texts that sort by their bytes.

The weights of a text are those of its letters, and a server compares two texts weight by weight. So
each weight gets a text, and no text is the beginning of another one that could continue
differently. Where characters and weights are in the same order (digits, Latin capitals, most of
every other script), the first character with a weight of its own stands for that weight. A weight
in between is written as the character before it, `HIGH`, and a character that counts up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from partita_migrate.understanding.schema.collations import HIGH, CharacterRun

Weight = tuple[int, ...]
"""One weight; an ideograph has two."""

PLANE = 0x10000
_KEPT = " -./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""These characters stand for themselves in keys, even if others then cannot."""
_WANTED: tuple[Callable[[int], bool], ...] = (
    set(map(ord, _KEPT)).__contains__,
    range(PLANE).__contains__,
    lambda code: True,
)
_LOWEST = "\0"
"""Sorts before the first character that stands for itself."""
_FIRST_COUNTER = ord("0")
_SURROGATES = range(0xD800, 0xE000)
_IMPLICIT = range(0xFB00, 0xFC00)
"""First halves of weights that are computed from a code point; the second half belongs to them."""
_OTHERS = 0xFBC0
"""The first of them that is not for an ideograph."""
_RUN_MIN = 8


def texts_of(
    weights: Mapping[str, bytes], weight_bytes: int, beyond: bytes | None = None
) -> tuple[dict[str, str], list[CharacterRun]]:
    """Returns the text in keys for each character, and for characters that form one letter
    together.

    `weights` has every character of Unicode's first plane, characters beyond it with weights of
    their own, and groups of characters whose weights differ from their parts. All other characters
    beyond the first plane weigh `beyond`, or sort last by their code points.
    """
    split = {letter: _split(content, weight_bytes) for letter, content in weights.items()}
    # Each weight is written as a character of that weight. Characters in _KEPT come first, so that
    # keys stay readable.
    alone: dict[Weight, int] = {}
    for letter in sorted(split, key=lambda letter: (letter not in _KEPT, letter)):
        if len(letter) == len(split[letter]) == 1:
            alone.setdefault(split[letter][0], ord(letter))
    others = _split(beyond or b"", weight_bytes)
    ordered = sorted(
        {weight for letter_weights in (*split.values(), others) for weight in letter_weights}
    )
    codes = [_own_code(weight, split) or alone.get(weight) for weight in ordered]
    texts = dict(zip(ordered, _texts(codes), strict=True))
    written = {
        letter: "".join(texts[weight] for weight in letter_weights)
        for letter, letter_weights in split.items()
    }
    runs = []
    if beyond is not None:
        text = "".join(texts[weight] for weight in others)
        runs = [CharacterRun(first=chr(PLANE), last=HIGH, text=text)]
    return _shortened(written, runs)


def _own_code(weight: Weight, split: Mapping[str, tuple[Weight, ...]]) -> int | None:
    """Returns the character from whose code point a weight is computed: an ideograph, not the
    radical with the same weight."""
    if len(weight) == 1:
        return None
    code = (weight[0] & 0x3F) << 15 | weight[1] & 0x7FFF
    if code > ord(HIGH):
        return None
    is_unlisted = weight[0] >= _OTHERS and code >= PLANE and chr(code) not in split
    return code if is_unlisted or split.get(chr(code)) == (weight,) else None


def _split(content: bytes, weight_bytes: int) -> tuple[Weight, ...]:
    units = [
        int.from_bytes(content[start : start + weight_bytes], "big")
        for start in range(0, len(content), weight_bytes)
    ]
    split: list[Weight] = []
    while units:
        taken = 2 if weight_bytes == 2 and units[0] in _IMPLICIT else 1
        split.append(tuple(units[:taken]))
        del units[:taken]
    return tuple(split)


def _texts(codes: Sequence[int | None]) -> Iterator[str]:
    """Yields the text of each weight, in order. `codes` has the character with that weight alone,
    if any."""
    members = set(_members(codes))
    before, counter = _LOWEST, _FIRST_COUNTER
    for place, code in enumerate(codes):
        if code is not None and place in members:
            before, counter = chr(code), _FIRST_COUNTER
            yield before
            continue
        yield before + HIGH + chr(counter)
        counter += 1 if counter + 1 not in _SURROGATES else len(_SURROGATES) + 1


def _members(codes: Sequence[int | None]) -> Iterator[int]:
    """Returns the places of characters that stand for themselves: as many as are in ascending
    order, the most important ones first."""
    fixed = [(-1, ord(_LOWEST)), (len(codes), ord(HIGH))]
    for is_wanted in _WANTED:
        more = list(fixed)
        for (start, low), (end, high) in pairwise(fixed):
            more += _rising(
                (place, code)
                for place, code in enumerate(codes[start + 1 : end], start + 1)
                if code is not None and low < code < high and is_wanted(code)
            )
        fixed = sorted(more)
    return (place for place, _ in fixed)


def _rising(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the longest subsequence of pairs whose second numbers rise."""
    lowest_ends: list[int] = []
    ends: list[int] = []
    candidates: list[tuple[int, int]] = []
    previous: list[int] = []
    for place, code in pairs:
        length = bisect_left(lowest_ends, code)
        previous.append(ends[length - 1] if length else -1)
        lowest_ends[length : length + 1] = [code]
        ends[length : length + 1] = [len(candidates)]
        candidates.append((place, code))
    subsequence: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        subsequence.append(candidates[at])
        at = previous[at]
    return subsequence[::-1]


def _shortened(
    texts: Mapping[str, str], fixed_runs: list[CharacterRun]
) -> tuple[dict[str, str], list[CharacterRun]]:
    """Leaves out characters that stand for themselves, and joins neighbors that are written alike
    into runs."""
    beyond = [run.first for run in fixed_runs]
    listed = {
        letter: text
        for letter, text in texts.items()
        if text != letter or any(letter >= first for first in beyond)
    }
    runs: list[CharacterRun] = []
    neighbors: list[str] = []
    for letter in sorted(letter for letter in listed if len(letter) == 1):
        if neighbors and not _continues(listed, neighbors, letter):
            runs += _run(listed, neighbors)
            neighbors = []
        neighbors.append(letter)
    runs += _run(listed, neighbors)
    for run in runs:
        for code in range(ord(run.first), ord(run.last) + 1):
            del listed[chr(code)]
    return dict(sorted(listed.items())), runs + fixed_runs


def _run(listed: Mapping[str, str], neighbors: Sequence[str]) -> list[CharacterRun]:
    if len(neighbors) < _RUN_MIN:
        return []
    text = listed[neighbors[0]]
    if text == listed[neighbors[-1]]:
        return [CharacterRun(first=neighbors[0], last=neighbors[-1], text=text)]
    return [
        CharacterRun(first=neighbors[0], last=neighbors[-1], text=text[:-1], counts_from=text[-1])
    ]


def _continues(listed: Mapping[str, str], neighbors: Sequence[str], letter: str) -> bool:
    first, last, text = listed[neighbors[0]], listed[neighbors[-1]], listed[letter]
    if ord(letter) != ord(neighbors[-1]) + 1:
        return False
    is_same = text == last and (len(neighbors) == 1 or first == last)
    is_next = bool(text and last) and text[:-1] == last[:-1] and ord(text[-1]) == ord(last[-1]) + 1
    return is_same or (is_next and (len(neighbors) == 1 or first != last))
