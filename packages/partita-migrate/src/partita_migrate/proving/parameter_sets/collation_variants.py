"""Texts that a collation may confuse with another, and the check that keys compare as the server
does."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from partita_migrate.proving.proof_run.proof_results import KeyProblem
from partita_migrate.understanding.schema.collations import (
    FOLDINGS,
    HIGH,
    CollationFolding,
    collation_file,
)
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.collation_weights import NotInKeys, weights_of
from partita_migrate.understanding.sources.source_collations import collations_of
from partita_migrate.understanding.sources.source_connection import SourceDatabase

JOINER = "\u200d"
"""A character that Unicode's collations ignore."""
_LETTERS = ((0xAA, 0x250), (0x370, 0x530), (0x1E00, 0x2000))
"""Ranges of Latin, Greek and Cyrillic letters with marks."""


def variants(folding: CollationFolding, text: str) -> Iterator[tuple[str, str]]:
    """Yields (case, text): texts that the collation considers equal to this one, and texts that it
    distinguishes.

    They come from the collation file and from Unicode, so that neither source is trusted alone.
    """
    for case, others in (
        ("a letter that is the same", _same(folding)),
        ("a letter that sorts beside it", _beside(folding)),
        ("a letter with a stroke", _with_strokes()),
        ("a letter with a mark", _with_marks()),
    ):
        for where, is_ascii in (("", True), (" beyond ASCII", False)):
            places = (at for at, letter in enumerate(text) if letter in others)
            place = next((at for at in places if text[at].isascii() == is_ascii), None)
            if place is not None:
                yield case + where, text[:place] + others[text[place]] + text[place + 1 :]
    doubled = _doubled(folding)
    place = next((at for at in range(len(text) - 1) if text[at : at + 2] in doubled), None)
    if place is not None:
        letter = doubled[text[place : place + 2]]
        yield "one letter for two", text[:place] + letter + text[place + 2 :]
    if folding.collation.name.startswith(("utf", "ucs")):
        yield "a zero width joiner", text[:1] + JOINER + text[1:]


@lru_cache(8)
def _same(folding: CollationFolding) -> dict[str, str]:
    """Returns by ASCII letter another character that the collation considers equal."""
    return {
        letter: character
        for character, text in folding.collation.texts.items()
        if len(character) == len(text) == 1 and text.isascii() and not character.isascii()
        for letter in (text, text.lower())
    }


@lru_cache(8)
def _beside(folding: CollationFolding) -> dict[str, str]:
    """Returns by letter a character that the collation sorts directly after it."""
    return {
        letter: character
        for character, text in folding.collation.texts.items()
        if len(character) == 1 and len(text) == 3 and text[1] == HIGH and text[0].isalnum()
        for letter in (text[0], text[0].lower())
    }


@lru_cache(8)
def _doubled(folding: CollationFolding) -> dict[str, str]:
    """Returns by pair of letters a character that the collation considers equal to them, such as ß
    for ss."""
    return {
        letters: character
        for character, text in folding.collation.texts.items()
        if len(character) == 1 and len(text) == 2 and text.isascii() and text.isalnum()
        for letters in (text, text.lower(), text.title())
    }


@lru_cache(1)
def _with_strokes() -> dict[str, str]:
    """Returns by letter one that Unicode names after it but does not decompose, such as ø for o."""
    letters: dict[str, str] = {}
    for character in _marked():
        name, _, mark = unicodedata.name(character, "").partition(" WITH ")
        if mark and not unicodedata.decomposition(character):
            try:
                letters.setdefault(unicodedata.lookup(name), character)
            except KeyError:
                continue
    return letters


@lru_cache(1)
def _with_marks() -> dict[str, str]:
    """Returns by letter the first one that Unicode composes of it and a mark, such as й for и."""
    letters: dict[str, str] = {}
    for character in _marked():
        parts = unicodedata.normalize("NFD", character)
        if len(parts) == 2:
            letters.setdefault(parts[0], character)
    return letters


def _marked() -> Iterator[str]:
    for first, end in _LETTERS:
        yield from map(chr, range(first, end))


def collation_problems(source: SourceDatabase, inventory: Inventory) -> Iterator[KeyProblem]:
    """Yields the collation files that do not compare every character as the server does."""
    for name in collations_of(inventory):
        if name in FOLDINGS:
            detail = _difference(source, FOLDINGS[name])
            if detail:
                yield KeyProblem(kind="collation", place=collation_file(name), detail=detail)


def _difference(source: SourceDatabase, folding: CollationFolding) -> str:
    again = "remove this file and run `partita migrate plan` again"
    try:
        weights = weights_of(source, folding.collation.name)
    except NotInKeys as reason:
        return f"The server's collation has changed: {reason}; {again}."
    letters = {*weights.of, *folding.collation.texts}
    ordered = sorted(
        (weights.weights(letter), folding.unpadded(letter), letter) for letter in letters
    )
    for (weight, text, letter), (next_weight, next_text, other) in pairwise(ordered):
        if (weight == next_weight) != (text == next_text) or text > next_text:
            return f"The server compares {letter!r} and {other!r} differently; {again}."
    return ""
