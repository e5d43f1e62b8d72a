"""The weights by which MySQL and MariaDB compare text, read from the server with WEIGHT_STRING.

Weights are read for every character, and for the pairs and triples of characters that sort as one
letter: decomposed characters, Thai and Lao vowels that precede their consonants, the Spanish ch. A
collation that compares on more than one level (accents or case only break ties) cannot be expressed
in keys; `NotInKeys` says why.
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
"""The ones in the last group can only encode the first plane."""
QUERY_CHARACTERS_MAX = 30_000
"""Length of the text that one query may ask a checksum for."""
QUERY_TEXTS_MAX = 250
"""Number of texts that one query may ask the weights of."""
LETTERS_OF_SEVERAL_MAX = 3000
CHECKED_TEXTS = 60
CHECKED_CHARACTERS = 500
_SEPARATOR = "\u4e00"
"""A character that never joins with its neighbors."""
_IMPLICIT = 0xFBC0
_DIGITS = "(SELECT 0 AS d " + " ".join(f"UNION ALL SELECT {digit}" for digit in range(1, 16)) + ")"
_CODES = f"""
    SELECT {{first}} + a.d * 4096 + b.d * 256 + c.d * 16 + e.d AS code
    FROM {_DIGITS} a, {_DIGITS} b, {_DIGITS} c, {_DIGITS} e
"""
_RULE = f"CONCAT(HEX({_IMPLICIT} + (code >> 15)), HEX((code & 32767) | 32768))"
"""SQL for the implicit weight of a character that a collation does not list: by its code point,
after all others."""
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
    """Raised with the reason when a collation cannot be expressed in the bytes of a key."""


class CollationWeights:
    """The weights of one collation.

    `of` maps a character, or several characters that sort as one letter, to its weight. Characters
    that are missing there have the weight `beyond`, or if that is None, one made from their code
    point.
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
        char_lengths = self._source.rows(
            "SELECT MAXLEN FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME = :name",
            name=self.charset,
        )
        if char_lengths != [(1,)]:
            raise NotInKeys(f"the characters of {self.charset} cannot be encoded in keys")
        return 1

    def _refuse_levels(self) -> None:
        both, first, second = self._weigh(["ab", "a", "b"])
        # A second level (accents, case) would follow after the weights of all letters.
        if both != first + second or len(both) % self.bytes:
            raise NotInKeys("it compares accents or case after all letters, which keys cannot do")

    def _ask_characters(self) -> None:
        for plane in range(self._planes):
            usual = (self.beyond or b"").hex().upper() if plane else ""
            query = _WEIGHTS.format(
                collation=self.collation,
                charset=self.charset,
                first=plane * PLANE,
                usual=usual or "none",
            )
            self.of |= {
                chr(code): bytes.fromhex(weight) for code, weight in self._source.rows(query)
            }
            if plane == 0 and self.bytes == 2:
                self.of |= {character: by_code(character) for character in self._unlisted()}
            if plane == 0 and self._planes > 1:
                (last,) = self._weigh([LAST])
                self.beyond = last if last != by_code(LAST) else None

    def _unlisted(self) -> Iterator[str]:
        """Yields the characters of the first plane whose weight the server derives from
        their code."""
        for code in range(PLANE):
            if chr(code) not in self.of and not 0xD800 <= code < 0xE000:
                yield chr(code)

    def weight(self, text: str) -> bytes:
        """Returns the weight of a single character, or of a joined letter that is listed."""
        listed = self.of.get(text)
        if listed is None:
            return self.beyond or by_code(text)
        return listed

    def weights(self, text: str) -> bytes:
        """Returns the weights of a text, taking the longest joined letter at each position."""
        weights = bytearray()
        start = 0
        while start < len(text):
            length = next(
                (
                    length
                    for length in range(self.longest, 1, -1)
                    if text[start : start + length] in self.of and start + length <= len(text)
                ),
                1,
            )
            weights += self.weight(text[start : start + length])
            start += length
        return bytes(weights)

    def _ask_letters(self) -> None:
        """Finds joined letters. Pairs come first, because some triples begin with a joined pair."""
        for length, blocks in ((2, (_LATIN, *_NEIGHBOURS)), (3, (_ASCII,))):
            self._find_letters(_decomposed(length))
            for block in blocks:
                listed = [
                    character
                    for character in map(chr, block)
                    if self.weight(character) != by_code(character)
                ]
                heads = map("".join, product(listed, repeat=length - 1))
                self._find_joined(list(heads), listed)
            self.longest = max(map(len, self._joined), default=1)

    def _find_joined(self, heads: Sequence[str], tails: Sequence[str]) -> None:
        """Tries each head with each tail. The server sends a checksum of the weights, so that one
        short answer rules out all tails of a head; only a head that differs is looked at in detail.
        """
        separator = self.weight(_SEPARATOR)
        texts = [tail + _SEPARATOR for tail in tails]
        weights = [self.weight(tail) + separator for tail in tails]
        # Each head is repeated before every tail, so a query grows with the number of tails.
        step = QUERY_CHARACTERS_MAX // (3 * len(tails) + 1) + 1
        for start in range(0, len(heads) if tails else 0, step):
            batch = heads[start : start + step]
            sums = self._ask([head + head.join(texts) for head in batch], "SHA2({}, 256)")
            for head, checksum in zip(batch, sums, strict=True):
                weight = self.weights(head)
                if sha256(weight + weight.join(weights)).hexdigest() != checksum:
                    self._find_letters([head + tail for tail in tails])

    def _find_letters(self, candidates: Sequence[str]) -> None:
        """Keeps the candidates whose weight differs from the weights of their parts."""
        for start in range(0, len(candidates), QUERY_TEXTS_MAX):
            batch = candidates[start : start + QUERY_TEXTS_MAX]
            for text, weight in zip(batch, self._weigh(batch), strict=True):
                if weight != self.weights(text):
                    self.of[text] = weight
                    self._joined.append(text)
        if len(self._joined) > LETTERS_OF_SEVERAL_MAX:
            raise NotInKeys("too many of its letters are written with several characters")

    def _check(self) -> None:
        """Compares random texts, so that a rule of the server that we do not know is noticed."""
        chance = random.Random(self.collation)
        listed = sorted(self.of)
        joined = sorted({*"".join(self._joined)}) or listed
        texts = []
        for number in range(CHECKED_TEXTS):
            begin = chance.randrange(len(listed))
            drawn = (listed, listed[begin : begin + 200], joined)[number % 3]
            texts.append("".join(chance.choices(drawn, k=CHECKED_CHARACTERS)))
        for text, weights in zip(texts, self._weigh(texts), strict=True):
            if weights != self.weights(text):
                raise NotInKeys("the weight of a text is not the weights of its letters")

    def _weigh(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes.fromhex(digits) for digits in self._ask(texts, "HEX({})")]

    def _ask(self, texts: Sequence[str], form: str) -> list[str]:
        expressions = ", ".join(
            form.format(
                f"WEIGHT_STRING(CONVERT(_utf8mb4 X'{text.encode().hex()}' USING {self.charset})"
                f" COLLATE {self.collation})"
            )
            for text in texts
        )
        with self._source.errors():
            # The text goes to the driver as it is; parsing it for parameters would take long.
            (row,) = self._source.connection.exec_driver_sql(f"SELECT {expressions}")
        return list(row)


_BY_SERVER: dict[tuple[str | None, int | None, str, str], CollationWeights] = {}


def weights_of(source: SourceDatabase, collation: str) -> CollationWeights:
    """Returns the weights, read once per process: a running server's collations do not change."""
    url = source.address.url
    key = (url.host, url.port, source.server_version, collation)
    if key not in _BY_SERVER:
        _BY_SERVER[key] = CollationWeights(source, collation)
    return _BY_SERVER[key]


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
"""Blocks of South and South East Asian scripts, whose letters join with their neighbors."""
_ASCII = [code for code in range(0x80) if chr(code).isalpha()]


def _decomposed(length: int) -> list[str]:
    """Returns all substrings of this length of Unicode's decompositions."""
    substrings: dict[str, None] = {}
    for character in map(chr, range(PLANE)):
        parts = unicodedata.decomposition(character).split()
        if parts:
            texts = [unicodedata.normalize(form, character) for form in ("NFD", "NFKD")]
            if not parts[0].startswith("<"):
                texts.append("".join(chr(int(part, 16)) for part in parts))
            for text in texts:
                for start in range(len(text) - length + 1):
                    substrings[text[start : start + length]] = None
    return list(substrings)
