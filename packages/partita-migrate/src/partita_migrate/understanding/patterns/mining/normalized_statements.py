"""Normalizes statements: values become ?, lists of values become one, comments are removed.

Statements arrive with values (logs), with ? and ... in their place (MySQL's digests), or with $1
(pg_stat_statements). The same tokens make a text for people, without values, and a text that
sqlglot can parse whatever the server has left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

VALUE = "?"
TEXT_CHARS_MAX = 4000
"""Longer texts are cut where people read them."""

# Only MySQL has backslashes in plain strings, # comments, and "strings".
_STRING = {
    "mysql": r"""(?:[NnXxBb]|_\w+\s*)?'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""",
    "postgres": r"""[Ee]'(?:[^'\\]|\\.|'')*'|(?:[NnXxBb]|[Uu]&)?'(?:[^']|'')*'|"""
    r"""\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$""",
    "sqlite": r"""[Xx]?'(?:[^']|'')*'""",
}
_NAME = {
    "mysql": r"`(?:[^`]|``)*`",
    "postgres": r"""(?:[Uu]&)?"(?:[^"]|"")*\"""",
    "sqlite": r"""`(?:[^`]|``)*`|"(?:[^"]|"")*"|\[[^\]]*\]""",
}
_COMMENT = {
    "mysql": r"/\*.*?\*/|#[^\n]*|--(?=\s|$)[^\n]*",
    "postgres": r"/\*.*?\*/|--[^\n]*",
    "sqlite": r"/\*.*?\*/|--[^\n]*",
}


def _pattern(dialect: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<space>\s+)|(?P<comment>{_COMMENT[dialect]})|(?P<string>{_STRING[dialect]})"
        rf"|(?P<name>{_NAME[dialect]})"
        r"|(?P<dots>\.\.\.)"
        r"|(?P<value>\$\d+|\?(?![|&?])|%s|(?<![:\w]):[A-Za-z_]\w*)"
        r"|(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w$]))"
        r"|(?P<word>[^\W\d][\w$]*|@+[\w$.]*|\d[\w$]*)"
        r"|(?P<sign>::|<=>|[<>!=]=|<>|\|\||&&|->>?|#>>?|@>|<@|.)",
        re.DOTALL,
    )


_TOKENS = {dialect: _pattern(dialect) for dialect in _STRING}
_KEPT_AFTER = frozenset(("LIMIT", "FIRST", "NEXT", "BY"))
"""Numbers after these words belong to the normalized form: the number of rows, or the column of an
order."""
_BEFORE_VALUES = frozenset(
    ("AND", "BETWEEN", "BY", "ELSE", "FROM", "ILIKE", "IN", "INTERVAL", "LIKE", "LIMIT", "NOT",
     "OFFSET", "OR", "SELECT", "SET", "THEN", "TO", "VALUES", "WHEN", "WHERE")
)  # fmt: skip
_MODIFIERS = frozenset(("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK"))


class StatementToken(NamedTuple):
    kind: str
    text: str


class NormalizedStatement(NamedTuple):
    """A statement without its values."""

    text: str
    """The text for people; it also identifies the form."""
    sql: str
    """The text for the parser."""
    members: int
    """The members of the longest list: values of an IN, or rows of an INSERT; 0 if unknown."""
    is_cut: bool
    """True if the server kept only the beginning of the statement."""


@lru_cache(maxsize=10_000)
def shapes_of(statement: str, dialect: str) -> tuple[NormalizedStatement, ...]:
    """One for each statement of a text; the body of a routine is left whole."""
    tokens = list(_tokens(statement, dialect))
    # Semicolons inside a routine's body do not end the statement.
    if tokens and tokens[0].text.upper() in ("CREATE", "ALTER", "DO"):
        return (_shape(tokens),)
    groups = groupby(tokens, key=lambda token: token.text == ";")
    shapes = (_shape(list(part)) for is_end, part in groups if not is_end)
    return tuple(shape for shape in shapes if shape.text)


def _shape(tokens: list[StatementToken]) -> NormalizedStatement:
    is_cut = len(tokens) > 1 and tokens[-1].kind == "dots" and tokens[-2].text not in (",", "(")
    if is_cut:
        tokens.pop()
    plain = list(_without_dots(_with_values(tokens)))
    folded, members = _fold_lists(plain)
    hides_rows = any(token.kind in ("dots", "more") for token in tokens)
    return NormalizedStatement(
        text=_text(folded, VALUE),
        sql=_text(_for_parser(folded), f"'{VALUE}'"),
        members=0 if hides_rows else members,
        is_cut=is_cut,
    )


def _tokens(statement: str, dialect: str) -> Iterator[StatementToken]:
    before = StatementToken("", "")
    for match in _TOKENS[dialect].finditer(statement):
        kind, text = match.lastgroup or "", match.group()
        # A dollar-quoted string of PostgreSQL.
        if kind == "tag":
            kind = "string"
        # Performance schema and pg_stat_statements shorten lists of values to `/* , ... */`.
        if kind == "comment" and re.fullmatch(r"/\* ?, \.\.\. ?\*/", text):
            kind, text = "more", ""
        if kind in ("space", "comment"):
            continue
        if text == VALUE and dialect == "postgres" and _is_operand(before):
            kind = "sign"
        before = StatementToken(kind, text)
        yield before


def _is_operand(token: StatementToken) -> bool:
    """True for an operand. After an operand, PostgreSQL's ? is an operator: it tests for a member
    of a document."""
    if token.kind == "word":
        return token.text.upper() not in _BEFORE_VALUES
    return token.kind in ("name", "string", "value") or token.text == ")"


def _with_values(tokens: list[StatementToken]) -> Iterator[StatementToken]:
    """Replaces literals and parameters by values, except those that belong to the form."""
    after = ""
    for position, (kind, text) in enumerate(tokens):
        if kind == "word":
            after = text.upper()
            if after in _MODIFIERS and position < 3:
                continue
            yield StatementToken(kind, text)
        elif kind == "number" and after in _KEPT_AFTER and text.isdigit():
            yield StatementToken(kind, text)
        # Where the wildcards are decides whether a key can serve the pattern.
        elif kind == "string" and after == "LIKE":
            yield StatementToken("value", _wildcards(text))
        elif kind in ("string", "number", "value"):
            yield StatementToken("value", VALUE)
        elif kind != "more":
            yield StatementToken(kind, text)
            if kind == "name" or text == ")":
                after = ""


def _wildcards(text: str) -> str:
    """Keeps the prefix of a LIKE, which decides whether a key can serve it."""
    inner = text[text.index("'") + 1 : -1] if "'" in text else text[1:-1]
    if inner[:1] in ("%", "_", "") or not re.search(r"[%_]", inner):
        return VALUE
    return f"{VALUE}%" if re.fullmatch(r"(?:[^%_\\]|\\.)+%", inner, re.DOTALL) else VALUE


def _without_dots(tokens: Iterator[StatementToken]) -> Iterator[StatementToken]:
    for token in tokens:
        yield StatementToken("value", VALUE) if token.kind == "dots" else token


def _fold_lists(tokens: list[StatementToken]) -> tuple[list[StatementToken], int]:
    """Folds (?, ?, ?) into (?), and several of those in a row into one."""
    folded: list[StatementToken] = []
    members = 1
    for token in tokens:
        folded.append(token)
        if token.text != ")":
            continue
        start = _start_of_values(folded)
        if start is not None and _is_list(folded, start):
            if folded[start - 1].text.upper() in ("IN", "ANY"):
                members = max(members, _count_values(folded[start:]))
            folded[start:] = [folded[start], StatementToken("value", VALUE), token]
        members = max(members, _drop_repeat(folded))
    return folded, members


def _start_of_values(tokens: list[StatementToken]) -> int | None:
    """Returns the position of the parenthesis that opens a list of nothing but values."""
    position = len(tokens) - 2
    while position >= 0 and (tokens[position].kind == "value" or tokens[position].text == ","):
        position -= 1
    is_list = 0 <= position < len(tokens) - 2 and tokens[position].text == "("
    return position if is_list else None


def _is_list(tokens: list[StatementToken], start: int) -> bool:
    """True for a list of values. The arguments of a function are not folded, because their number
    matters."""
    before = tokens[start - 1] if start else StatementToken("", "")
    return before.text.upper() in ("IN", "VALUES", "VALUE", "ANY", "(", ",", ")")


def _count_values(tokens: list[StatementToken]) -> int:
    return sum(token.kind == "value" for token in tokens)


def _drop_repeat(tokens: list[StatementToken]) -> int:
    """Drops the second of "(?), (?)", and counts it in the token of the first."""
    repeat = [token.text for token in tokens[-7:]]
    if repeat == ["(", VALUE, ")", ",", "(", VALUE, ")"]:
        kept = tokens[-5]
        count = int(kept.kind.partition(" ")[2] or 1) + 1
        del tokens[-4:]
        tokens[-1] = StatementToken(f"sign {count}", ")")
        return count
    return 1


def _for_parser(tokens: list[StatementToken]) -> list[StatementToken]:
    """Replaces syntax that sqlglot does not know."""
    texts = [token.text.upper() for token in tokens]
    if texts[:1] == ["REPLACE"]:
        into = [] if texts[1:2] == ["INTO"] else [StatementToken("word", "INTO")]
        return [StatementToken("word", "INSERT"), *into, *tokens[1:]]
    if texts[:1] == ["DECLARE"] and "CURSOR" in texts and "FOR" in texts:
        return tokens[texts.index("FOR", texts.index("CURSOR")) + 1 :]
    if "OPERATOR" in texts:
        return list(_plain_operators(tokens))
    return tokens


def _plain_operators(tokens: list[StatementToken]) -> Iterator[StatementToken]:
    """Replaces OPERATOR(pg_catalog.=), which PostgreSQL writes in its checks of foreign keys."""
    position = 0
    while position < len(tokens):
        if tokens[position].text.upper() == "OPERATOR" and tokens[position + 1].text == "(":
            end = next(i for i in range(position, len(tokens)) if tokens[i].text == ")")
            yield tokens[end - 1]
            position = end + 1
        else:
            yield tokens[position]
            position += 1


def _text(tokens: list[StatementToken], value: str) -> str:
    """Joins tokens with blanks, except where nobody writes one."""
    parts: list[str] = []
    before = ""
    for kind, text in tokens:
        is_tight = text in (",", ")", ".", "::", ";") or before in ("", "(", ".", "::")
        is_tight = is_tight or (text == "(" and before.upper() in _CALLED)
        parts.append("" if is_tight else " ")
        parts.append(value.replace(VALUE, text) if kind == "value" else text)
        before = text
    return "".join(parts)


_CALLED = frozenset(("COUNT", "SUM", "MIN", "MAX", "AVG", "LOWER", "UPPER", "COALESCE", "DATE"))
