"""From the weights by which a server compares to texts that sort by their bytes as they do.

A text's weights are those of its letters, and a server compares two texts weight by weight. So each
weight gets a text, and none begins where a lower one may go on. The first character that has a
weight alone stands for it where characters and weights are in the same order: digits, Latin
capitals, and most of every other script. What sorts between two of these is written as the one
before it, `HIGH`, and a character that counts up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from partita_migrate.understanding.schema.collations import HIGH, CharacterRun

Weight = tuple[int, ...]
"""One weight, or the two that make an ideograph's."""

PLANE = 0x10000
_KEPT = " -./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Stand for themselves in keys, whatever else cannot then."""
_WANTED: tuple[Callable[[int], bool], ...] = (
    set(map(ord, _KEPT)).__contains__,
    range(PLANE).__contains__,
    lambda code: True,
)
_LOWEST = "\0"
"""Before the first character that stands for itself."""
_FIRST_COUNTER = ord("0")
_SURROGATES = range(0xD800, 0xE000)
_IMPLICIT = range(0xFB00, 0xFC00)
"""First halves of weights that are computed from a code point: what follows belongs to them."""
_OTHERS = 0xFBC0
"""The first of them that are no ideographs."""
_RUN_MIN = 8


def texts_of(
    weights: Mapping[str, bytes], weight_bytes: int, beyond: bytes | None = None
) -> tuple[dict[str, str], list[CharacterRun]]:
    """What stands in keys for each character, and for characters that are one letter together.

    `weights`: of every character of the first plane, of those beyond it that have one of their own,
    and of several ones where these are more than their parts. All others beyond the first plane
    weigh `beyond`, or are behind all in the order of their codes.
    """
    split = {one: _split(held, weight_bytes) for one, held in weights.items()}
    alone: dict[Weight, int] = {}
    for one in sorted(split, key=lambda one: (one not in _KEPT, one)):
        if len(one) == len(split[one]) == 1:
            alone.setdefault(split[one][0], ord(one))
    others = _split(beyond or b"", weight_bytes)
    ordered = sorted({weight for held in (*split.values(), others) for weight in held})
    codes = [_own_code(weight, split) or alone.get(weight) for weight in ordered]
    texts = dict(zip(ordered, _texts(codes), strict=True))
    written = {one: "".join(texts[weight] for weight in held) for one, held in split.items()}
    runs = []
    if beyond is not None:
        text = "".join(texts[weight] for weight in others)
        runs = [CharacterRun(first=chr(PLANE), last=HIGH, text=text)]
    return _shortened(written, runs)


def _own_code(weight: Weight, split: Mapping[str, tuple[Weight, ...]]) -> int | None:
    """The character whose code a weight is made of: an ideograph, and not the radical like it."""
    if len(weight) == 1:
        return None
    code = (weight[0] & 0x3F) << 15 | weight[1] & 0x7FFF
    if code > ord(HIGH):
        return None
    is_unlisted = weight[0] >= _OTHERS and code >= PLANE and chr(code) not in split
    return code if is_unlisted or split.get(chr(code)) == (weight,) else None


def _split(held: bytes, weight_bytes: int) -> tuple[Weight, ...]:
    units = [
        int.from_bytes(held[start : start + weight_bytes], "big")
        for start in range(0, len(held), weight_bytes)
    ]
    found: list[Weight] = []
    while units:
        taken = 2 if weight_bytes == 2 and units[0] in _IMPLICIT else 1
        found.append(tuple(units[:taken]))
        del units[:taken]
    return tuple(found)


def _texts(codes: Sequence[int | None]) -> Iterator[str]:
    """Of weights in their order; `codes`: the character that has each alone."""
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
    """Places of the characters that stand for themselves: as many as rise together, first of those
    that are wanted most."""
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
    """The longest part of some pairs whose second numbers rise."""
    lowest_ends: list[int] = []
    ends: list[int] = []
    known: list[tuple[int, int]] = []
    previous: list[int] = []
    for place, code in pairs:
        length = bisect_left(lowest_ends, code)
        previous.append(ends[length - 1] if length else -1)
        lowest_ends[length : length + 1] = [code]
        ends[length : length + 1] = [len(known)]
        known.append((place, code))
    found: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(known[at])
        at = previous[at]
    return found[::-1]


def _shortened(
    texts: Mapping[str, str], known: list[CharacterRun]
) -> tuple[dict[str, str], list[CharacterRun]]:
    """Without what stands for itself, and with runs of neighbours that are written alike."""
    beyond = [run.first for run in known]
    listed = {
        one: text
        for one, text in texts.items()
        if text != one or any(one >= first for first in beyond)
    }
    runs: list[CharacterRun] = []
    found: list[str] = []
    for one in sorted(one for one in listed if len(one) == 1):
        if found and not _continues(listed, found, one):
            runs += _run(listed, found)
            found = []
        found.append(one)
    runs += _run(listed, found)
    for run in runs:
        for code in range(ord(run.first), ord(run.last) + 1):
            del listed[chr(code)]
    return dict(sorted(listed.items())), runs + known


def _run(listed: Mapping[str, str], found: Sequence[str]) -> list[CharacterRun]:
    if len(found) < _RUN_MIN:
        return []
    text = listed[found[0]]
    if text == listed[found[-1]]:
        return [CharacterRun(first=found[0], last=found[-1], text=text)]
    return [CharacterRun(first=found[0], last=found[-1], text=text[:-1], counts_from=text[-1])]


def _continues(listed: Mapping[str, str], found: Sequence[str], one: str) -> bool:
    first, last, text = listed[found[0]], listed[found[-1]], listed[one]
    if ord(one) != ord(found[-1]) + 1:
        return False
    is_same = text == last and (len(found) == 1 or first == last)
    is_next = bool(text and last) and text[:-1] == last[:-1] and ord(text[-1]) == ord(last[-1]) + 1
    return is_same or (is_next and (len(found) == 1 or first != last))
