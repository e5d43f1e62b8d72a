"""Texts that are easily mistaken for another in a collation, and what tells that keys know it."""

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
"""Which Unicode's collations ignore."""
_LETTERS = ((0xAA, 0x250), (0x370, 0x530), (0x1E00, 0x2000))
"""Latin, Greek and Cyrillic ones with marks."""


def variants(folding: CollationFolding, text: str) -> Iterator[tuple[str, str]]:
    """What it is, and a text: some that the collation takes for the same, some that it tells apart.

    By the file and by Unicode, so that neither is trusted alone.
    """
    for case, others in (
        ("a letter that is the same", _same(folding)),
        ("a letter that sorts beside it", _beside(folding)),
        ("a letter with a stroke", _with_strokes()),
        ("a letter with a mark", _with_marks()),
    ):
        for where, is_ascii in (("", True), (" beyond ASCII", False)):
            places = (at for at, one in enumerate(text) if one in others)
            place = next((at for at in places if text[at].isascii() == is_ascii), None)
            if place is not None:
                yield case + where, text[:place] + others[text[place]] + text[place + 1 :]
    doubled = _doubled(folding)
    place = next((at for at in range(len(text) - 1) if text[at : at + 2] in doubled), None)
    if place is not None:
        one = doubled[text[place : place + 2]]
        yield "one letter for two", text[:place] + one + text[place + 2 :]
    if folding.collation.name.startswith(("utf", "ucs")):
        yield "a zero width joiner", text[:1] + JOINER + text[1:]


@lru_cache(8)
def _same(folding: CollationFolding) -> dict[str, str]:
    """By ASCII letter, the last other character that becomes the same."""
    return {
        letter: one
        for one, text in folding.collation.texts.items()
        if len(one) == len(text) == 1 and text.isascii() and not one.isascii()
        for letter in (text, text.lower())
    }


@lru_cache(8)
def _beside(folding: CollationFolding) -> dict[str, str]:
    return {
        letter: one
        for one, text in folding.collation.texts.items()
        if len(one) == 1 and len(text) == 3 and text[1] == HIGH and text[0].isalnum()
        for letter in (text[0], text[0].lower())
    }


@lru_cache(8)
def _doubled(folding: CollationFolding) -> dict[str, str]:
    return {
        letters: one
        for one, text in folding.collation.texts.items()
        if len(one) == 1 and len(text) == 2 and text.isascii() and text.isalnum()
        for letters in (text, text.lower(), text.title())
    }


@lru_cache(1)
def _with_strokes() -> dict[str, str]:
    """By letter, one that Unicode calls by its name and does not take apart: ø for o."""
    found: dict[str, str] = {}
    for one in _marked():
        name, _, mark = unicodedata.name(one, "").partition(" WITH ")
        if mark and not unicodedata.decomposition(one):
            try:
                found.setdefault(unicodedata.lookup(name), one)
            except KeyError:
                continue
    return found


@lru_cache(1)
def _with_marks() -> dict[str, str]:
    """By letter, the first that Unicode makes of it and a mark: й of и."""
    found: dict[str, str] = {}
    for one in _marked():
        parts = unicodedata.normalize("NFD", one)
        if len(parts) == 2:
            found.setdefault(parts[0], one)
    return found


def _marked() -> Iterator[str]:
    for first, end in _LETTERS:
        yield from map(chr, range(first, end))


def collation_problems(source: SourceDatabase, inventory: Inventory) -> Iterator[KeyProblem]:
    """Whether the files say how the server compares: every character, and those that join."""
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
        return f"The server says otherwise: {reason}; {again}."
    letters = {*weights.of, *folding.collation.texts}
    known = sorted((weights.weights(one), folding.unpadded(one), one) for one in letters)
    for (weight, text, one), (next_weight, next_text, other) in pairwise(known):
        if (weight == next_weight) != (text == next_text) or text > next_text:
            return f"The server compares {one!r} and {other!r} in another way; {again}."
    return ""
