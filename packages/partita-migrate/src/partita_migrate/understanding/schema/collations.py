"""How a server's collations compare texts, as keys say it: `collations/NAME.json` in a folder.

Each character has a text that stands for it in keys. Keys are equal exactly when the server takes
values for equal, and sort by their bytes as it sorts. A program in any language can do the same:

1. Characters that are one letter together (more than one in `texts`) are taken together, the
   longest first.
2. A letter becomes what `texts` has for it, else what its run in `runs` says, else itself. What the
   collation ignores becomes nothing.
3. With PAD SPACE, blanks at the end are cut off, and an empty text is one blank. A letter before a
   control character (a tab, a line feed), also with blanks between them, comes before the same
   letter at the end: the last character of its text counts down by one, and U+10FFFF stands behind
   it, twice where the text is one character.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal

from msgspec import Struct, field

from partita_migrate.workspace.migration_folder import Folder

COLLATIONS = "collations"
HIGH = "\U0010ffff"
"""Sorts behind every text that a character becomes."""

Pad = Literal["", "PAD SPACE", "NO PAD"]
"""As MySQL calls it; CHAR of PostgreSQL and RTRIM of SQLite are PAD SPACE."""


class CharacterRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Neighbours that become `text`, each with a character behind it that counts up."""

    first: str
    last: str
    text: str = ""
    counts_from: str = ""
    """The character of the first; empty when all become the same."""


class Collation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The file."""

    name: str
    server: str
    """Which version was asked."""
    not_in_keys: str = ""
    """Why keys cannot say how it compares."""
    pad: Pad = ""
    texts: dict[str, str] = field(default_factory=dict)
    runs: list[CharacterRun] = field(default_factory=list)


class _Texts(dict[int, str]):
    """By code point, as `str.translate` asks for them."""

    def __init__(self, collation: Collation) -> None:
        super().__init__({ord(one): text for one, text in collation.texts.items() if len(one) == 1})
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
        self[code] = text
        return text


_LETTER = re.compile(f"[^{HIGH}](?:{HIGH}.)?", re.DOTALL)
_BEFORE_BLANK = re.compile("[\0-\x1f]")


class CollationFolding:
    """What the texts of a collation become in keys."""

    def __init__(self, collation: Collation) -> None:
        self.collation = collation
        self._texts = _Texts(collation)
        self._joined = {one: text for one, text in collation.texts.items() if len(one) > 1}
        longest_first = sorted(self._joined, key=len, reverse=True)
        self._joins = re.compile("|".join(map(re.escape, longest_first))) if self._joined else None
        self._is_padded = collation.pad == "PAD SPACE"
        self._odd = self._odd_ascii()

    def _odd_ascii(self) -> re.Pattern[str] | None:
        """What of ASCII is more than capitals in keys: most texts have none of it. None where case
        counts, or two characters are one letter."""
        known = list(map(chr, range(0x80)))
        if any(one.isascii() for one in self._joined):
            return None
        if any(self._texts[ord(one)] != one.upper() for one in known if one.isalnum()):
            return None
        odd = [one for one in known if one < " " or self._texts[ord(one)] != one.upper()]
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
        """With NO PAD."""
        if self._joins is not None and self._joins.search(text):
            return self._with_joined(self._joins, text)
        return text.translate(self._texts)

    def _lowered(self, written: str) -> str:
        """Letters before what sorts before a blank, which PAD SPACE has behind the last one."""
        if not self._is_padded or not _BEFORE_BLANK.search(written):
            return written
        found: list[str] = []
        is_lower = False
        for letter in reversed(_LETTER.findall(written.rstrip(" "))):
            found.append(_below(letter) if is_lower else letter)
            if letter != " ":
                is_lower = letter < " "
        return "".join(reversed(found))

    def _mark(self, match: re.Match[str]) -> str:
        return self._texts[ord(match[0])]

    def _with_joined(self, joins: re.Pattern[str], text: str) -> str:
        found, place = "", 0
        for match in joins.finditer(text):
            found += text[place : match.start()].translate(self._texts) + self._joined[match[0]]
            place = match.end()
        return found + text[place:].translate(self._texts)

    def is_beginning(self, start: str, text: str) -> bool:
        """As LIKE compares: character by character, and no two of them as one letter."""
        return len(start) <= len(text) and all(
            self._texts[ord(one)] == self._texts[ord(other)]
            for one, other in zip(start, text, strict=False)
        )

    def ends_of_beginning(self, start: str) -> tuple[str, str] | None:
        """Between which keys lie the texts that LIKE finds by their beginning, among others.

        None where a text of them may be elsewhere, because its characters join with the next.
        """
        joined = {self._texts[ord(one)] for one in "".join(self._joined)}
        texts = [self._texts[ord(one)] for one in start]
        if not all(texts) or joined & {*texts} or any(ord(one) > 0xFFFF for one in start):
            return None
        written = "".join(texts)
        if _BEFORE_BLANK.search(written) or not written.strip(" "):
            return None
        *before, last = _LETTER.findall(written)
        first = "".join(before) + _below(last) if self._is_padded else written
        return first, written + HIGH


def _below(letter: str) -> str:
    code = ord(letter[-1]) - 1
    below = letter[:-1] + chr(0xD7FF if code == 0xDFFF else code) + HIGH
    return below if len(letter) > 1 else below + HIGH


FOLDINGS: dict[str, CollationFolding] = {}
"""By collation: those of the folder that this process works in."""
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
        f"{collation_file(collation)} is not there: run `partita migrate plan` again"
    )


def collation_file(collation: str) -> str:
    return f"{COLLATIONS}/{collation}.json"


def read_collations(folder: Folder) -> None:
    for path in sorted((folder.path / COLLATIONS).glob("*.json")):
        register_collation(folder.read_json(collation_file(path.stem), Collation))
