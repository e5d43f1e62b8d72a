"""The tokens of an expression, with their positions in the text, which syntax errors quote."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

END_TEXT: Final = "<EOF>"
KEYWORDS: Final = frozenset(("AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"))
COMPARATORS: Final = frozenset(("=", "<>", "<", "<=", ">", ">="))

_TOKEN: Final = re.compile(
    r"""
        (?P<blank>[ \t\r\n]+)
      | (?P<word>[A-Za-z][A-Za-z0-9_]*)
      | (?P<name>\#[A-Za-z0-9_]+)
      | (?P<value>:[A-Za-z0-9_]+)
      | (?P<index>0|[1-9][0-9]*)
      | (?P<symbol><>|<=|>=|.)
    """,
    re.VERBOSE | re.DOTALL,
)


class TokenKind(Enum):
    """The kinds of tokens; NAME is `#n`, VALUE is `:v`."""

    WORD = auto()
    KEYWORD = auto()
    NAME = auto()
    VALUE = auto()
    INDEX = auto()
    SYMBOL = auto()
    END = auto()


class ExpressionToken(NamedTuple):
    """A token, with its positions in the text."""

    kind: TokenKind
    text: str
    sign: str
    """The text that the parser compares: a keyword in capitals, a symbol, or "" otherwise."""
    start: int
    end: int


_KINDS: Final = {kind.name.lower(): kind for kind in TokenKind}


def tokenize(text: str) -> list[ExpressionToken]:
    """Returns all tokens, followed by END.

    A character that begins no token becomes a token of its own, which the parser refuses.
    """
    tokens = []
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        if group is None or group == "blank":
            continue
        kind, word = _KINDS[group], match[0]
        sign = word if kind is TokenKind.SYMBOL else ""
        if kind is TokenKind.WORD and word.upper() in KEYWORDS:
            kind, sign = TokenKind.KEYWORD, word.upper()
        tokens.append(ExpressionToken(kind, word, sign, match.start(), match.end()))
    tokens.append(ExpressionToken(TokenKind.END, END_TEXT, END_TEXT, len(text), len(text)))
    return tokens


def syntax_error(text: str, tokens: list[ExpressionToken], position: int) -> str:
    """Returns the service's message for an unexpected token, which quotes its neighbors too."""
    first = tokens[position - 1].start if position else 0
    following = tokens[min(position + 1, len(tokens) - 1)]
    near = text[first : max(following.end, tokens[position].end)]
    return f'Syntax error; token: "{tokens[position].text}", near: "{near}"'
