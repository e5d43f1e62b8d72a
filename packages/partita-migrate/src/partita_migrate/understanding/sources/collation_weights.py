"""The weights by which MySQL and MariaDB compare texts, asked of the server itself.

Of every character, and of the pairs and triples that are one letter together: a canonical
composition that is written in its parts, Thai and Lao vowels before their consonants, the Spanish
ch. A collation whose weights are more than these (accents or case count in a second place) is not
said in keys, and `NotInKeys` tells why.
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
"""The last ones have the first plane alone."""
ASKED_CHARACTERS = 30_000
"""In one question for the weights of a long text."""
ASKED_TEXTS = 250
"""Of which one question asks one by one."""
LETTERS_OF_SEVERAL_MAX = 3000
CHECKED_TEXTS = 60
CHECKED_CHARACTERS = 500
_SEPARATOR = "\u4e00"
"""Is no part of a letter that several characters make."""
_IMPLICIT = 0xFBC0
_DIGITS = "(SELECT 0 AS d " + " ".join(f"UNION ALL SELECT {digit}" for digit in range(1, 16)) + ")"
_CODES = f"""
    SELECT {{first}} + a.d * 4096 + b.d * 256 + c.d * 16 + e.d AS code
    FROM {_DIGITS} a, {_DIGITS} b, {_DIGITS} c, {_DIGITS} e
"""
_RULE = f"CONCAT(HEX({_IMPLICIT} + (code >> 15)), HEX((code & 32767) | 32768))"
"""Of a character that a collation knows nothing about: behind all others, by its code."""
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
    """Why keys cannot say how a collation compares."""


class CollationWeights:
    """`of`: by character, and by several ones that are one letter; of what is missing beyond the
    first plane `beyond`, or a weight by its code."""

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
        found = self._source.rows(
            "SELECT MAXLEN FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME = :name",
            name=self.charset,
        )
        if found != [(1,)]:
            raise NotInKeys(f"keys do not know the characters of {self.charset}")
        return 1

    def _refuse_levels(self) -> None:
        both, one, other = self._weigh(["ab", "a", "b"])
        if both != one + other or len(both) % self.bytes:
            raise NotInKeys("it compares accents or case after all letters, which no key does")

    def _ask_characters(self) -> None:
        for plane in range(self._planes):
            usual = (self.beyond or b"").hex().upper() if plane else ""
            asked = _WEIGHTS.format(
                collation=self.collation,
                charset=self.charset,
                first=plane * PLANE,
                usual=usual or "none",
            )
            self.of |= {chr(code): bytes.fromhex(held) for code, held in self._source.rows(asked)}
            if plane == 0 and self.bytes == 2:
                self.of |= {one: by_code(one) for one in self._unknown()}
            if plane == 0 and self._planes > 1:
                (last,) = self._weigh([LAST])
                self.beyond = last if last != by_code(LAST) else None

    def _unknown(self) -> Iterator[str]:
        """Of the first plane, those whose weights the rule tells."""
        for code in range(PLANE):
            if chr(code) not in self.of and not 0xD800 <= code < 0xE000:
                yield chr(code)

    def weight(self, text: str) -> bytes:
        """Of what is no letter of several."""
        known = self.of.get(text)
        if known is None:
            return self.beyond or by_code(text)
        return known

    def weights(self, text: str) -> bytes:
        """By the longest letters first."""
        found = bytearray()
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
            found += self.weight(text[place : place + taken])
            place += taken
        return bytes(found)

    def _ask_letters(self) -> None:
        """Pairs first, for some triples are longer than a pair that they begin with."""
        for length, blocks in ((2, (_LATIN, *_NEIGHBOURS)), (3, (_ASCII,))):
            self._find_letters(_decomposed(length))
            for block in blocks:
                known = [one for one in map(chr, block) if self.weight(one) != by_code(one)]
                heads = map("".join, product(known, repeat=length - 1))
                self._find_joined(list(heads), known)
            self.longest = max(map(len, self._joined), default=1)

    def _find_joined(self, heads: Sequence[str], tails: Sequence[str]) -> None:
        """Each head with each tail; the server says by a checksum whether all are two letters."""
        separator = self.weight(_SEPARATOR)
        texts = [tail + _SEPARATOR for tail in tails]
        weights = [self.weight(tail) + separator for tail in tails]
        step = ASKED_CHARACTERS // (3 * len(tails) + 1) + 1
        for start in range(0, len(heads) if tails else 0, step):
            some = heads[start : start + step]
            sums = self._ask([one + one.join(texts) for one in some], "SHA2({}, 256)")
            for one, found in zip(some, sums, strict=True):
                weight = self.weights(one)
                if sha256(weight + weight.join(weights)).hexdigest() != found:
                    self._find_letters([one + tail for tail in tails])

    def _find_letters(self, candidates: Sequence[str]) -> None:
        """Those whose weights are not the weights of their parts."""
        for start in range(0, len(candidates), ASKED_TEXTS):
            some = candidates[start : start + ASKED_TEXTS]
            for one, whole in zip(some, self._weigh(some), strict=True):
                if whole != self.weights(one):
                    self.of[one] = whole
                    self._joined.append(one)
        if len(self._joined) > LETTERS_OF_SEVERAL_MAX:
            raise NotInKeys("too many of its letters are written with several characters")

    def _check(self) -> None:
        """Texts of all kinds of characters weigh what their letters do."""
        chance = random.Random(self.collation)
        known = sorted(self.of)
        joined = sorted({*"".join(self._joined)}) or known
        texts = []
        for number in range(CHECKED_TEXTS):
            begin = chance.randrange(len(known))
            drawn = (known, known[begin : begin + 200], joined)[number % 3]
            texts.append("".join(chance.choices(drawn, k=CHECKED_CHARACTERS)))
        for text, found in zip(texts, self._weigh(texts), strict=True):
            if found != self.weights(text):
                raise NotInKeys("the weight of a text is not the weights of its letters")

    def _weigh(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes.fromhex(one) for one in self._ask(texts, "HEX({})")]

    def _ask(self, texts: Sequence[str], form: str) -> list[str]:
        asked = ", ".join(
            form.format(
                f"WEIGHT_STRING(CONVERT(_utf8mb4 X'{text.encode().hex()}' USING {self.charset})"
                f" COLLATE {self.collation})"
            )
            for text in texts
        )
        with self._source.errors():
            # As it is: there is nothing to bind in so long a text.
            (found,) = self._source.connection.exec_driver_sql(f"SELECT {asked}")
        return list(found)


_ASKED: dict[tuple[str | None, int | None, str, str], CollationWeights] = {}


def weights_of(source: SourceDatabase, collation: str) -> CollationWeights:
    """A process asks a server once: what it compares by does not change while it runs."""
    url = source.address.url
    key = (url.host, url.port, source.server_version, collation)
    if key not in _ASKED:
        _ASKED[key] = CollationWeights(source, collation)
    return _ASKED[key]


def by_code(one: str) -> bytes:
    code = ord(one)
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
"""Scripts of South and South East Asia, whose letters join with their neighbours."""
_ASCII = [code for code in range(0x80) if chr(code).isalpha()]


def _decomposed(length: int) -> list[str]:
    """Parts of what Unicode takes apart."""
    found: dict[str, None] = {}
    for one in map(chr, range(PLANE)):
        parts = unicodedata.decomposition(one).split()
        if parts:
            texts = [unicodedata.normalize(form, one) for form in ("NFD", "NFKD")]
            if not parts[0].startswith("<"):
                texts.append("".join(chr(int(part, 16)) for part in parts))
            for text in texts:
                for place in range(len(text) - length + 1):
                    found[text[place : place + length]] = None
    return list(found)
