"""Collations as keys express them, from the files `collations/NAME.json` of a folder.

Each character has a text that stands for it in keys. Two keys are equal exactly when the server
treats the values as equal, and keys sort by their bytes as the server sorts the values. A program
in any language can make such keys:

1. Characters that form one letter together (entries of `texts` with several characters) are taken
together, the longest group first.

2. A letter becomes its text in `texts`, else the text of its run in `runs`, else it stays. A
character that the collation ignores becomes nothing.

3. With PAD SPACE, trailing blanks are cut off, and an empty text becomes one blank. A letter that
is followed by a control character (a tab, a line feed), even with blanks in between, sorts before
the same letter at the end of a text. So the last character of its text is replaced by the one
before it in Unicode, followed by U+10FFFF (by two of them if the text is a single character).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal

from msgspec import Struct, field

from partita_migrate.workspace.migration_folder import Folder

COLLATIONS = "collations"
HIGH = "\U0010ffff"
"""Sorts after every text."""

Pad = Literal["", "PAD SPACE", "NO PAD"]
"""The padding in MySQL's words. CHAR of PostgreSQL and RTRIM of SQLite also pad with blanks."""


class CharacterRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Neighboring characters that become `text`, each followed by a character that counts up."""

    first: str
    last: str
    text: str = ""
    counts_from: str = ""
    """The counting character of the first one; empty if all become the same text."""


class Collation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a collation's file."""

    name: str
    server: str
    """The version of the server that was asked."""
    not_in_keys: str = ""
    """The reason why keys cannot express this collation, or an empty text."""
    pad: Pad = ""
    texts: dict[str, str] = field(default_factory=dict)
    runs: list[CharacterRun] = field(default_factory=list)


class _Texts(dict[int, str]):
    """The texts by code point, in the form that `str.translate` needs."""

    def __init__(self, collation: Collation) -> None:
        super().__init__(
            {ord(letter): text for letter, text in collation.texts.items() if len(letter) == 1}
        )
        self._runs = sorted(collation.runs, key=lambda run: run.first)
        self._firsts = [ord(run.first) for run in self._runs]

    def __missing__(self, code: int) -> str:
        place = bisect_right(self._firsts, code) - 1
        text = chr(code)
        if place >= 0 and code <= ord(self._runs[place].last):
            run = self._runs[place]
            text = run.text
            if run.counts_from:
                text += chr(ord(run.counts_from) + code - ord(run.first))
        # Kept for the next time: a text has few different characters.
        self[code] = text
        return text


_LETTER = re.compile(f"[^{HIGH}](?:{HIGH}.)?", re.DOTALL)
_BEFORE_BLANK = re.compile("[\0-\x1f]")


class CollationFolding:
    """Turns texts into keys of one collation."""

    def __init__(self, collation: Collation) -> None:
        self.collation = collation
        self._texts = _Texts(collation)
        self._joined = {
            letters: text for letters, text in collation.texts.items() if len(letters) > 1
        }
        longest_first = sorted(self._joined, key=len, reverse=True)
        self._joins = re.compile("|".join(map(re.escape, longest_first))) if self._joined else None
        self._is_padded = collation.pad == "PAD SPACE"
        self._odd = self._odd_ascii()

    def _odd_ascii(self) -> re.Pattern[str] | None:
        """Returns a pattern of ASCII characters that do not simply become capitals; most texts have
        none.

        Returns None where case counts, or where two ASCII characters form one letter: there is no
        fast way then.
        """
        ascii_letters = list(map(chr, range(0x80)))
        if any(letters.isascii() for letters in self._joined):
            return None
        if any(
            self._texts[ord(letter)] != letter.upper()
            for letter in ascii_letters
            if letter.isalnum()
        ):
            return None
        odd = [
            letter
            for letter in ascii_letters
            if letter < " " or self._texts[ord(letter)] != letter.upper()
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
        """Returns the key as NO PAD has it."""
        if self._joins is not None and self._joins.search(text):
            return self._with_joined(self._joins, text)
        return text.translate(self._texts)

    def _lowered(self, written: str) -> str:
        """Lowers letters before a control character, as rule 3 says."""
        if not self._is_padded or not _BEFORE_BLANK.search(written):
            return written
        letters: list[str] = []
        is_lower = False
        for letter in reversed(_LETTER.findall(written.rstrip(" "))):
            letters.append(_below(letter) if is_lower else letter)
            if letter != " ":
                is_lower = letter < " "
        return "".join(reversed(letters))

    def _mark(self, match: re.Match[str]) -> str:
        return self._texts[ord(match[0])]

    def _with_joined(self, joins: re.Pattern[str], text: str) -> str:
        key, place = "", 0
        for match in joins.finditer(text):
            key += text[place : match.start()].translate(self._texts) + self._joined[match[0]]
            place = match.end()
        return key + text[place:].translate(self._texts)

    def is_beginning(self, start: str, text: str) -> bool:
        """True when LIKE finds `text` by its beginning. LIKE compares character by character,
        without joining two into one letter."""
        return len(start) <= len(text) and all(
            self._texts[ord(left)] == self._texts[ord(right)]
            for left, right in zip(start, text, strict=False)
        )

    def ends_of_beginning(self, start: str) -> tuple[str, str] | None:
        """Returns the range of keys that contains every text which LIKE finds by its beginning, and
        a few others.

        Returns None if such a text can be elsewhere, because its characters join with the next
        ones.
        """
        joined = {self._texts[ord(letter)] for letter in "".join(self._joined)}
        texts = [self._texts[ord(letter)] for letter in start]
        if not all(texts) or joined & {*texts} or any(ord(letter) > 0xFFFF for letter in start):
            return None
        written = "".join(texts)
        if _BEFORE_BLANK.search(written) or not written.strip(" "):
            return None
        *before, last = _LETTER.findall(written)
        # With PAD SPACE, trailing blanks are cut from keys, so a found text can sort a little
        # lower.
        first = "".join(before) + _below(last) if self._is_padded else written
        return first, written + HIGH


def _below(letter: str) -> str:
    code = ord(letter[-1]) - 1
    below = letter[:-1] + chr(0xD7FF if code == 0xDFFF else code) + HIGH
    return below if len(letter) > 1 else below + HIGH


FOLDINGS: dict[str, CollationFolding] = {}
"""The collations of the folder that this process works in, by name."""
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
        f"{collation_file(collation)} does not exist: run `partita migrate plan` again"
    )


def collation_file(collation: str) -> str:
    return f"{COLLATIONS}/{collation}.json"


def read_collations(folder: Folder) -> None:
    for path in sorted((folder.path / COLLATIONS).glob("*.json")):
        register_collation(folder.read_json(collation_file(path.stem), Collation))
