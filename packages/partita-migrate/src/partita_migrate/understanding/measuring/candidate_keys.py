"""Finds the columns of a table that could become a key: those that identify rows or find them."""

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
    """Returns a counter for each set of columns, in the order in which the sets were found."""
    columns = {column.name: column for column in table.columns}
    keys: dict[frozenset[str], KeyCounts] = {}
    for names in _column_sets(table, patterns):
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


def _column_sets(table: SourceTable, patterns: Iterable[AccessPattern]) -> Iterator[list[str]]:
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
        tested_refs = map(ColumnRef.parse, pattern.filters)
        yield from (
            [ref.column] for ref in tested_refs if ref.table == table.name and _is_short(table, ref)
        )


def _is_short(table: SourceTable, ref: ColumnRef) -> bool:
    """True unless the column is a long text, whose values would take too much to read."""
    column = next((candidate for candidate in table.columns if candidate.name == ref.column), None)
    if column is None or column.kind != "string":
        return column is not None and column.kind in KEY_KINDS
    return column.length_max is not None and column.length_max <= SHORT_LENGTH_MAX
