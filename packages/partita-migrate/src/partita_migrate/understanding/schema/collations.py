"""How keys express a server's collation: `collations/NAME.json` in a migration folder.

Each character has a text that replaces it in keys. Two keys are equal exactly when the server
treats the two values as equal, and their bytes sort as the server sorts the values. A program in
any language can write the same keys:

1. Several characters that sort as one letter (entries of `texts` with more than one character)
   are replaced together, the longest first.
2. A letter becomes its text in `texts`, otherwise what its run in `runs` says, otherwise itself.
   What the collation ignores becomes nothing.
3. With PAD SPACE, trailing blanks are cut off, and an empty text becomes one blank. A letter in
   front of a control character (a tab, a line feed), or in front of blanks and then a control
   character, sorts before the same letter at the end of a text. It is written one lower: the last
   character of its text is replaced by its predecessor, and U+10FFFF is appended, twice if the
   text is one character.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal

from msgspec import Struct, field

from partita_migrate.workspace.migration_folder import Folder

COLLATIONS = "collations"
HIGH = "\U0010ffff"
"""Sorts after every text that a character becomes."""

Pad = Literal["", "PAD SPACE", "NO PAD"]
"""MySQL's terms. PostgreSQL's CHAR and SQLite's RTRIM are PAD SPACE as well."""


class CharacterRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Consecutive characters that become `text`, each followed by a character that counts up."""

    first: str
    last: str
    text: str = ""
    counts_from: str = ""
    """What follows `text` for the first character; empty when all become the same text."""


class Collation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of `collations/NAME.json`."""

    name: str
    server: str
    """Version of the server that the weights were read from."""
    not_in_keys: str = ""
    """The reason why keys cannot express this collation; empty when they can."""
    pad: Pad = ""
    texts: dict[str, str] = field(default_factory=dict)
    runs: list[CharacterRun] = field(default_factory=list)


class _Texts(dict[int, str]):
    """The text of every code point, computed when `str.translate` first asks for it."""

    def __init__(self, collation: Collation) -> None:
        super().__init__(
            {ord(letter): text for letter, text in collation.texts.items() if len(letter) == 1}
        )
        self._runs = sorted(collation.runs, key=lambda run: run.first)
        self._firsts = [ord(run.first) for run in self._runs]

    def __missing__(self, code: int) -> str:
        index = bisect_right(self._firsts, code) - 1
        text = chr(code)
        if index >= 0 and code <= ord(self._runs[index].last):
            run = self._runs[index]
            text = run.text
            if run.counts_from:
                text += chr(ord(run.counts_from) + code - ord(run.first))
        # Kept for the next time: a text has few different characters.
        self[code] = text
        return text


_LETTER = re.compile(f"[^{HIGH}](?:{HIGH}.)?", re.DOTALL)
_BEFORE_BLANK = re.compile("[\0-\x1f]")


class CollationFolding:
    """Turns a text into the form that it has in keys."""

    def __init__(self, collation: Collation) -> None:
        self.collation = collation
        self._texts = _Texts(collation)
        self._joined = {letter: text for letter, text in collation.texts.items() if len(letter) > 1}
        longest_first = sorted(self._joined, key=len, reverse=True)
        self._joins = re.compile("|".join(map(re.escape, longest_first))) if self._joined else None
        self._is_padded = collation.pad == "PAD SPACE"
        self._odd = self._odd_ascii()

    def _odd_ascii(self) -> re.Pattern[str] | None:
        """Finds the ASCII characters whose form is not simply the capital letter.

        Most texts contain none of them and take a short cut. Returns None where the short cut does
        not hold: case counts, or two ASCII characters sort as one letter.
        """
        ascii_characters = list(map(chr, range(0x80)))
        if any(letter.isascii() for letter in self._joined):
            return None
        if any(
            self._texts[ord(character)] != character.upper()
            for character in ascii_characters
            if character.isalnum()
        ):
            return None
        odd = [
            character
            for character in ascii_characters
            if character < " " or self._texts[ord(character)] != character.upper()
        ]
        return re.compile(f"[{re.escape(''.join(odd))}]")

    def __call__(self, text: str) -> str:
        odd = self._odd
        if odd is not None and text.isascii():
            written = text.upper()
            if odd.search(written):
                written = self._lowered(odd.sub(self._mark, written))
        else:
            written = self._lowered(self.unpadded(text))
        return (written.rstrip(" ") or " ") if self._is_padded else written

    def unpadded(self, text: str) -> str:
        """Returns the form that the text would have with NO PAD."""
        if self._joins is not None and self._joins.search(text):
            return self._with_joined(self._joins, text)
        return text.translate(self._texts)

    def _lowered(self, written: str) -> str:
        """Lowers letters in front of what sorts before a blank. PAD SPACE compares as if blanks
        followed the end of a text, so a letter at the end is followed by a blank and sorts later.
        """
        if not self._is_padded or not _BEFORE_BLANK.search(written):
            return written
        lowered: list[str] = []
        is_lower = False
        for letter in reversed(_LETTER.findall(written.rstrip(" "))):
            lowered.append(_below(letter) if is_lower else letter)
            if letter != " ":
                is_lower = letter < " "
        return "".join(reversed(lowered))

    def _mark(self, match: re.Match[str]) -> str:
        return self._texts[ord(match[0])]

    def _with_joined(self, joins: re.Pattern[str], text: str) -> str:
        folded, start = "", 0
        for match in joins.finditer(text):
            folded += text[start : match.start()].translate(self._texts) + self._joined[match[0]]
            start = match.end()
        return folded + text[start:].translate(self._texts)

    def is_beginning(self, start: str, text: str) -> bool:
        """True when LIKE finds `text` by its beginning: it compares character by character and
        never joins two of them into one letter."""
        return len(start) <= len(text) and all(
            self._texts[ord(character)] == self._texts[ord(other)]
            for character, other in zip(start, text, strict=False)
        )

    def ends_of_beginning(self, start: str) -> tuple[str, str] | None:
        """Returns two keys between which all texts lie that LIKE finds by their beginning, among
        others.

        Returns None where such a text may lie elsewhere, because its characters may join with the
        next.
        """
        joined = {self._texts[ord(character)] for character in "".join(self._joined)}
        texts = [self._texts[ord(character)] for character in start]
        if (
            not all(texts)
            or joined & {*texts}
            or any(ord(character) > 0xFFFF for character in start)
        ):
            return None
        written = "".join(texts)
        if _BEFORE_BLANK.search(written) or not written.strip(" "):
            return None
        *before, last = _LETTER.findall(written)
        first = "".join(before) + _below(last) if self._is_padded else written
        return first, written + HIGH


def _below(letter: str) -> str:
    """Returns a text that sorts directly before this letter and after everything lower."""
    code = ord(letter[-1]) - 1
    below = letter[:-1] + chr(0xD7FF if code == 0xDFFF else code) + HIGH
    return below if len(letter) > 1 else below + HIGH


FOLDINGS: dict[str, CollationFolding] = {}
"""The collations of the folder that this process works in."""
_NOT_IN_KEYS: dict[str, str] = {}


def register_collation(collation: Collation) -> None:
    _NOT_IN_KEYS.pop(collation.name, None)
    if collation.not_in_keys:
        _NOT_IN_KEYS[collation.name] = collation.not_in_keys
        FOLDINGS.pop(collation.name, None)
    elif collation.name not in FOLDINGS or FOLDINGS[collation.name].collation != collation:
        FOLDINGS[collation.name] = CollationFolding(collation)


def why_not_in_keys(collation: str) -> str:
    return _NOT_IN_KEYS.get(collation) or (
        f"{collation_file(collation)} is missing: run `partita migrate plan` again"
    )


def collation_file(collation: str) -> str:
    return f"{COLLATIONS}/{collation}.json"


def read_collations(folder: Folder) -> None:
    for path in sorted((folder.path / COLLATIONS).glob("*.json")):
        register_collation(folder.read_json(collation_file(path.stem), Collation))
