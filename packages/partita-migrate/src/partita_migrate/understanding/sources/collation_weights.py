"""Asks MySQL and MariaDB for the weights by which they compare texts.

The server is asked for the weights of every character, and of pairs and triples that form one
letter: canonical compositions written in their parts, Thai and Lao vowels before their consonants,
the Spanish ch. If a collation compares by more than these weights (accents or case on a second
level), keys cannot express it, and `NotInKeys` says why.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import product

from partita.errors import PartitaError
from partita_migrate.understanding.sources.source_connection import SourceDatabase

PLANES = 17
PLANE = 0x10000
LAST = chr(PLANES * PLANE - 1)
UNICODE = re.compile(r"utf8mb4|utf16(le)?|utf32|(utf8|utf8mb3|ucs2)")
"""utf8, utf8mb3 and ucs2 have only Unicode's first plane."""
ASKED_CHARACTERS = 30_000
"""The number of characters in one question for the weight of a long text."""
ASKED_TEXTS = 250
"""The number of texts in one question for the weights of single texts."""
LETTERS_OF_SEVERAL_MAX = 3000
CHECKED_TEXTS = 60
CHECKED_CHARACTERS = 500
_SEPARATOR = "\u4e00"
"""This ideograph is not part of any letter that several characters form."""
_IMPLICIT = 0xFBC0
_DIGITS = "(SELECT 0 AS d " + " ".join(f"UNION ALL SELECT {digit}" for digit in range(1, 16)) + ")"
_CODES = f"""
    SELECT {{first}} + a.d * 4096 + b.d * 256 + c.d * 16 + e.d AS code
    FROM {_DIGITS} a, {_DIGITS} b, {_DIGITS} c, {_DIGITS} e
"""
_RULE = f"CONCAT(HEX({_IMPLICIT} + (code >> 15)), HEX((code & 32767) | 32768))"
"""The weight of a character that a collation does not know: after all others, by its code point."""
# A character that the charset lacks is converted to a question mark; comparing the code before and
# after the conversion leaves such characters out. Surrogates are not characters.
_WEIGHTS = f"""
    SELECT code, weights FROM (
        SELECT code, HEX(WEIGHT_STRING(text COLLATE {{collation}})) AS weights FROM (
            SELECT code, CHAR(code USING utf32) AS wide,
                   CONVERT(CHAR(code USING utf32) USING {{charset}}) AS text
            FROM ({_CODES}) AS codes WHERE code NOT BETWEEN 55296 AND 57343
        ) AS texts WHERE HEX(CONVERT(text USING utf32)) = HEX(wide)
    ) AS weighed
    WHERE weights <> '{{usual}}' AND (weights <> {_RULE} OR code >= {ord(LAST) - 1})
"""


class NotInKeys(PartitaError):
    """The reason why keys cannot express a collation."""


class CollationWeights:
    """The weights of a collation.

    `of` has them by character, and by group of characters that form one letter. A missing character
    beyond the first plane weighs `beyond`, or a weight computed from its code point.
    """

    def __init__(self, source: SourceDatabase, collation: str) -> None:
        self._source = source
        self.collation = collation
        self.charset = collation.partition("_")[0]
        self.bytes = self._weight_bytes()
        unicode = UNICODE.fullmatch(self.charset)
        self._planes = PLANES if unicode and not unicode[2] else 1
        self.beyond: bytes | None = None
        self.of: dict[str, bytes] = {}
        self._refuse_levels()
        self._ask_characters()
        self.longest = 1
        self._joined: list[str] = []
        if self.bytes == 2:
            self._ask_letters()
        self._check()

    def _weight_bytes(self) -> int:
        if UNICODE.fullmatch(self.charset):
            return 2
        widths = self._source.rows(
            "SELECT MAXLEN FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME = :name",
            name=self.charset,
        )
        if widths != [(1,)]:
            raise NotInKeys(f"keys cannot hold the characters of {self.charset}")
        return 1

    def _refuse_levels(self) -> None:
        both, first, second = self._weigh(["ab", "a", "b"])
        # A second level (accents, case) would follow after the weights of all letters.
        if both != first + second or len(both) % self.bytes:
            raise NotInKeys("it compares accents or case after all letters, which keys cannot do")

    def _ask_characters(self) -> None:
        for plane in range(self._planes):
            usual = (self.beyond or b"").hex().upper() if plane else ""
            statement = _WEIGHTS.format(
                collation=self.collation,
                charset=self.charset,
                first=plane * PLANE,
                usual=usual or "none",
            )
            self.of |= {
                chr(code): bytes.fromhex(weights) for code, weights in self._source.rows(statement)
            }
            if plane == 0 and self.bytes == 2:
                # The server leaves out characters with a computed weight; later steps need them
                # all.
                self.of |= {letter: by_code(letter) for letter in self._unknown()}
            if plane == 0 and self._planes > 1:
                (last,) = self._weigh([LAST])
                self.beyond = last if last != by_code(LAST) else None

    def _unknown(self) -> Iterator[str]:
        """Yields characters of the first plane whose weight follows from their code point."""
        for code in range(PLANE):
            if chr(code) not in self.of and not 0xD800 <= code < 0xE000:
                yield chr(code)

    def weight(self, text: str) -> bytes:
        """Returns the weight of a single character, or of a group that is listed."""
        weight = self.of.get(text)
        if weight is None:
            return self.beyond or by_code(text)
        return weight

    def weights(self, text: str) -> bytes:
        """Returns the weights of a text, which takes the longest letters first."""
        weights = bytearray()
        place = 0
        while place < len(text):
            taken = next(
                (
                    length
                    for length in range(self.longest, 1, -1)
                    if text[place : place + length] in self.of and place + length <= len(text)
                ),
                1,
            )
            weights += self.weight(text[place : place + taken])
            place += taken
        return bytes(weights)

    def _ask_letters(self) -> None:
        """Asks for letters of several characters. Pairs come first, because some triples begin with
        a pair."""
        for length, blocks in ((2, (_LATIN, *_NEIGHBOURS)), (3, (_ASCII,))):
            self._find_letters(_decomposed(length))
            for block in blocks:
                letters = [
                    letter for letter in map(chr, block) if self.weight(letter) != by_code(letter)
                ]
                heads = map("".join, product(letters, repeat=length - 1))
                self._find_joined(list(heads), letters)
            self.longest = max(map(len, self._joined), default=1)

    def _find_joined(self, heads: Sequence[str], tails: Sequence[str]) -> None:
        """Tries each head with each tail. A checksum by the server tells whether all of them are
        two letters."""
        separator = self.weight(_SEPARATOR)
        texts = [tail + _SEPARATOR for tail in tails]
        weights = [self.weight(tail) + separator for tail in tails]
        step = ASKED_CHARACTERS // (3 * len(tails) + 1) + 1
        for start in range(0, len(heads) if tails else 0, step):
            some = heads[start : start + step]
            # Millions of pairs are tried; a checksum keeps the answers short.
            sums = self._ask([head + head.join(texts) for head in some], "SHA2({}, 256)")
            for head, checksum in zip(some, sums, strict=True):
                weight = self.weights(head)
                if sha256(weight + weight.join(weights)).hexdigest() != checksum:
                    self._find_letters([head + tail for tail in tails])

    def _find_letters(self, candidates: Sequence[str]) -> None:
        """Keeps the candidates whose weights differ from the weights of their parts."""
        for start in range(0, len(candidates), ASKED_TEXTS):
            some = candidates[start : start + ASKED_TEXTS]
            for candidate, whole in zip(some, self._weigh(some), strict=True):
                if whole != self.weights(candidate):
                    self.of[candidate] = whole
                    self._joined.append(candidate)
        if len(self._joined) > LETTERS_OF_SEVERAL_MAX:
            raise NotInKeys("too many of its letters are written with several characters")

    def _check(self) -> None:
        """Checks that random texts of all kinds of characters weigh what their letters weigh."""
        chance = random.Random(self.collation)
        letters = sorted(self.of)
        joined = sorted({*"".join(self._joined)}) or letters
        texts = []
        for number in range(CHECKED_TEXTS):
            begin = chance.randrange(len(letters))
            drawn = (letters, letters[begin : begin + 200], joined)[number % 3]
            texts.append("".join(chance.choices(drawn, k=CHECKED_CHARACTERS)))
        for text, weights in zip(texts, self._weigh(texts), strict=True):
            if weights != self.weights(text):
                raise NotInKeys("the weight of a text is not the sequence of its letters' weights")

    def _weigh(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes.fromhex(weight) for weight in self._ask(texts, "HEX({})")]

    def _ask(self, texts: Sequence[str], form: str) -> list[str]:
        expressions = ", ".join(
            form.format(
                f"WEIGHT_STRING(CONVERT(_utf8mb4 X'{text.encode().hex()}' USING {self.charset})"
                f" COLLATE {self.collation})"
            )
            for text in texts
        )
        with self._source.errors():
            # Executed without SQLAlchemy's text(): so long a statement has nothing to bind.
            (answer,) = self._source.connection.exec_driver_sql(f"SELECT {expressions}")
        return list(answer)


_ASKED: dict[tuple[str | None, int | None, str, str], CollationWeights] = {}


def weights_of(source: SourceDatabase, collation: str) -> CollationWeights:
    """Returns a collation's weights. Each server is asked once per process: they do not change
    while it runs."""
    url = source.address.url
    key = (url.host, url.port, source.server_version, collation)
    if key not in _ASKED:
        _ASKED[key] = CollationWeights(source, collation)
    return _ASKED[key]


def by_code(character: str) -> bytes:
    code = ord(character)
    return (_IMPLICIT + (code >> 15)).to_bytes(2, "big") + (code & 0x7FFF | 0x8000).to_bytes(
        2, "big"
    )


_LATIN = (*range(0x20, 0x250), 0x387)
_BLOCK = 0x80
_NEIGHBOURS = [
    range(block, block + _BLOCK)
    for first, end in ((0x900, 0x1C00), (0xA800, 0xAB00))
    for block in range(first, end, _BLOCK)
]
"""Scripts of South and Southeast Asia, whose letters combine with their neighbors."""
_ASCII = [code for code in range(0x80) if chr(code).isalpha()]


def _decomposed(length: int) -> list[str]:
    """Returns parts of the characters that Unicode decomposes."""
    parts_found: dict[str, None] = {}
    for character in map(chr, range(PLANE)):
        parts = unicodedata.decomposition(character).split()
        if parts:
            texts = [unicodedata.normalize(form, character) for form in ("NFD", "NFKD")]
            if not parts[0].startswith("<"):
                texts.append("".join(chr(int(part, 16)) for part in parts))
            for text in texts:
                for place in range(len(text) - length + 1):
                    parts_found[text[place : place + length]] = None
    return list(parts_found)
