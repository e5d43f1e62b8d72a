"""The tokens of a statement, with their positions.

Words are keywords, operators or names, in upper or lower case. Some neighboring words form one
token, such as `IS NOT`. A character that begins no token, or a comment without end, makes the
statement malformed; the service's error then has no details (recorded).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from partita.database.item.numbers import big_decimal
from partita.database.operations.partiql.language.syntax.partiql_keywords import (
    CONSTANTS,
    KEYWORDS,
    MERGED,
    TYPE_NAMES,
    WORD_OPERATORS,
)
from partita.database.operations.partiql.language.syntax.syntax_tree import TokenPlace
from partita.errors import ValidationException

MALFORMED = "Statement wasn't well formed, can't be processed: "
MERGED_WORDS_MAX = max(map(len, MERGED))
MERGED_LAST = frozenset(words[-1] for words in MERGED)
_NEWLINE = re.compile(r"\r\n|\r|\n")

_TOKEN = re.compile(
    r"""
        (?P<blank>[ \t\v\f\r\n]+ | --[^\r\n]* | /\*.*?\*/)
      | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![eE]))
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<ion>`[^`]*`)
      | (?P<parameter>\?)
      | (?P<operator>\|\||!=|<=|<>|>=|[-+%=@]|/(?!\*)|<(?!<)|>(?!>))
      | (?P<sign><<|>>|[()\[\]{}:,*;.])
    """,
    re.VERBOSE | re.DOTALL,
)

# Ion's types with their names in the service's error, and patterns that recognize them.
_ION_TYPES = (
    ("NULL", r"null"),
    ("BOOL", r"true|false"),
    ("INT", r"-?[0-9]+"),
    ("DECIMAL", r"-?[0-9]+(\.[0-9]*)?(d-?[0-9]+)?"),
    ("FLOAT", r"-?[0-9]+(\.[0-9]*)?e-?[0-9]+"),
    ("TIMESTAMP", r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?"),
    ("SYMBOL", r"[A-Za-z_$][A-Za-z0-9_$]*|'[^']*'"),
    ("STRING", r'"[^"]*"'),
    ("LIST", r"\[.*\]"),
    ("STRUCT", r"\{.*\}"),
    ("SEXP", r"\(.*\)"),
)


class StatementTokenKind(Enum):
    NAME = auto()
    STRING = auto()
    NUMBER = auto()
    ION = auto()
    PARAMETER = auto()
    KEYWORD = auto()
    OPERATOR = auto()
    SIGN = auto()
    END = auto()


class StatementToken(NamedTuple):
    """A token, with its position in the text."""

    kind: StatementTokenKind
    text: str
    """The text: keywords and operators in lower case, names and strings without quotes."""
    place: TokenPlace
    sign: str = ""
    """The text that the parser compares: a keyword, operator, sign or type, or "" otherwise."""


def malformed(message: str = "") -> ValidationException:
    return ValidationException(MALFORMED + message)


def tokenize(text: str) -> list[StatementToken]:
    tokens: list[StatementToken] = []
    for token in _tokens(text):
        _add(tokens, token)
    return tokens


def _add(tokens: list[StatementToken], token: StatementToken) -> None:
    """Add a token, or merge it with those before it; the longest possible combination wins."""
    if token.sign in MERGED_LAST:
        for count in range(min(MERGED_WORDS_MAX - 1, len(tokens)), 0, -1):
            words = tuple(part.sign for part in (*tokens[-count:], token))
            if words in MERGED:
                merged = MERGED[words]
                kind = (
                    StatementTokenKind.OPERATOR
                    if merged in WORD_OPERATORS
                    else StatementTokenKind.KEYWORD
                )
                token = StatementToken(kind, merged, tokens[-count].place, merged)
                del tokens[-count:]
    tokens.append(token)


def _tokens(text: str) -> Iterator[StatementToken]:
    position, line, line_start = 0, 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise malformed()
        written = match[0]
        if match.lastgroup != "blank":
            place = TokenPlace(line, position - line_start + 1, len(written))
            yield _token(match.lastgroup or "", written, place)
        for newline in _NEWLINE.finditer(written):
            line, line_start = line + 1, position + newline.end()
        position = match.end()
    yield StatementToken(StatementTokenKind.END, "", TokenPlace(line, position - line_start + 1, 0))


def _token(group: str, written: str, place: TokenPlace) -> StatementToken:
    if group == "word":
        return _word(written, place)
    if group == "number":
        _check_readable(written)
        return StatementToken(StatementTokenKind.NUMBER, written, place)
    if group == "string":
        return StatementToken(StatementTokenKind.STRING, written[1:-1].replace("''", "'"), place)
    if group == "quoted":
        return StatementToken(StatementTokenKind.NAME, written[1:-1].replace('""', '"'), place)
    if group == "ion":
        return StatementToken(StatementTokenKind.ION, _ion_type(written[1:-1].strip()), place)
    if group == "operator":
        operator = "<>" if written == "!=" else written
        return StatementToken(StatementTokenKind.OPERATOR, operator, place, operator)
    if group == "parameter":
        return StatementToken(StatementTokenKind.PARAMETER, written, place)
    return StatementToken(StatementTokenKind.SIGN, written, place, written)


def _word(written: str, place: TokenPlace) -> StatementToken:
    word = written.lower()
    if word in WORD_OPERATORS:
        return StatementToken(StatementTokenKind.OPERATOR, word, place, word)
    if word in KEYWORDS or word in CONSTANTS:
        return StatementToken(StatementTokenKind.KEYWORD, word, place, word)
    return StatementToken(
        StatementTokenKind.NAME, written, place, word if word in TYPE_NAMES else ""
    )


def _check_readable(number: str) -> None:
    """Refuse a number whose exponent or scale does not fit in 32 bits, as malformed (recorded)."""
    try:
        big_decimal(number)
    except ValidationException:
        raise malformed() from None


def _ion_type(literal: str) -> str:
    for kind, pattern in _ION_TYPES:
        if re.fullmatch(pattern, literal, re.DOTALL):
            return kind
    raise malformed()
