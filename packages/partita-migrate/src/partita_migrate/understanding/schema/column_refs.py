"""Parses and prints columns of the source, and joins between tables, as people write them.

`table.column` is a column. `a.x = b.y` is a join from rows of one table to rows of another.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

PARSED_MAX = 10_000
"""Size of the parser's cache: items are made row by row from the same few texts."""
QUOTED = r'"(?:[^"]|"")*"'
_REF = re.compile(rf'(?:({QUOTED})|(.*))\.(?:({QUOTED})|([^".]*))', re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[",={}:]|^\s|\s$|^$')


class ColumnRef(NamedTuple):
    """A column of the source. Names that contain a dot or other syntax are quoted:
    `table."a.b"`."""

    table: str
    column: str

    @classmethod
    def parse(cls, text: str) -> ColumnRef:
        return _parsed(text)

    def __str__(self) -> str:
        column = _quoted(self.column, is_column=True)
        return f"{_quoted(self.table)}.{column}" if self.table else column


@lru_cache(PARSED_MAX)
def _parsed(text: str) -> ColumnRef:
    # A PostgreSQL table outside `public` has a dot in its name, so the column is what follows the
    # last dot.
    match = _REF.fullmatch(text)
    if match is None:
        return ColumnRef("", _unquoted(text))
    return ColumnRef(_unquoted(match[1] or match[2]), _unquoted(match[3] or match[4]))


def _quoted(name: str, *, is_column: bool = False) -> str:
    if _NEEDS_QUOTES.search(name) or (is_column and "." in name):
        return '"' + name.replace('"', '""') + '"'
    return name


def _unquoted(text: str) -> str:
    if re.fullmatch(QUOTED, text, re.DOTALL):
        return text[1:-1].replace('""', '"')
    return text


def qualified(table: str, name: str) -> ColumnRef:
    ref = ColumnRef.parse(name)
    return ref if ref.table else ColumnRef(table, ref.column)


class ForeignKeyJoin(NamedTuple):
    """A foreign key followed in either direction: each row of `before` leads to rows of `after`."""

    before: list[ColumnRef]
    after: list[ColumnRef]


@lru_cache(PARSED_MAX)
def parse_join(text: str) -> ForeignKeyJoin | None:
    """Parses "a.x = b.y"; the columns of a composite key are separated by commas. Returns None for
    a text that is not a join."""
    sides = _outside_quotes(" = ", text)
    if len(sides) != 2:
        return None
    before, after = (
        [ColumnRef.parse(column) for column in _outside_quotes(", *", side)] for side in sides
    )
    return ForeignKeyJoin(before, after) if len(before) == len(after) else None


def _outside_quotes(separator: str, text: str) -> list[str]:
    return re.split(rf'{separator}(?=(?:[^"]*"[^"]*")*[^"]*$)', text)


def format_join(before: list[ColumnRef], after: list[ColumnRef]) -> str:
    return f"{', '.join(map(str, before))} = {', '.join(map(str, after))}"
