"""Finds the columns of a table that could become a key: those that identify its rows, and those by
which patterns find them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from partita_migrate.understanding.measuring.key_skew import KeyCounts
from partita_migrate.understanding.measuring.table_figures import SHOWN_KINDS
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.schema.relationships import is_unique

SHORT_LENGTH_MAX = 255
KEY_KINDS = ("integer", "decimal", "date", "datetime", "enum", "uuid")


def candidate_keys(table: SourceTable, patterns: Iterable[AccessPattern]) -> list[KeyCounts]:
    """Returns the candidate keys, each set of columns once, in the order in which they were
    found."""
    columns = {column.name: column for column in table.columns}
    keys: dict[frozenset[str], KeyCounts] = {}
    for names in _named(table, patterns):
        if not names or not columns.keys() >= set(names):
            continue
        keys.setdefault(
            frozenset(names),
            KeyCounts(
                names,
                is_unique=is_unique(table, set(names)),
                is_shown=all(columns[name].kind in SHOWN_KINDS for name in names),
            ),
        )
    return list(keys.values())


def _named(table: SourceTable, patterns: Iterable[AccessPattern]) -> Iterator[list[str]]:
    yield table.primary_key
    for name in table.primary_key:
        yield [name]
    for foreign_key in table.foreign_keys:
        yield foreign_key.columns
    for index in table.indexes:
        yield index.columns
        yield index.columns[:1]
    for pattern in patterns:
        own = [
            ref.column for ref in map(ColumnRef.parse, pattern.equality) if ref.table == table.name
        ]
        yield own
        for name in own:
            yield [name]
        # Each side of an OR finds rows by a key of its own.
        tested = map(ColumnRef.parse, pattern.filters)
        yield from (
            [ref.column] for ref in tested if ref.table == table.name and _is_short(table, ref)
        )


def _is_short(table: SourceTable, ref: ColumnRef) -> bool:
    """True for columns with short values: long texts are not read to measure their distribution."""
    column = next((column for column in table.columns if column.name == ref.column), None)
    if column is None or column.kind != "string":
        return column is not None and column.kind in KEY_KINDS
    return column.length_max is not None and column.length_max <= SHORT_LENGTH_MAX
