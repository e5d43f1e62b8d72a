"""Finds keys that DynamoDB does not have: missing, wide, generated and further unique keys."""

from __future__ import annotations

from collections.abc import Iterator

from partita.foundation.service_limits import PARTITION_KEY_BYTES_MAX
from partita_migrate.understanding.planning.difficulties.column_difficulties import bytes_max
from partita_migrate.understanding.planning.difficulties.difficulty import Difficulty
from partita_migrate.understanding.schema.collations import FOLDINGS, why_not_in_keys
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.workspace.readable_lists import listed

KEY_KINDS = {"string", "integer", "decimal", "date", "datetime", "time", "binary", "uuid", "enum"}
"""Kinds that become a string, number or binary, and so can be a key."""


def primary_key(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if table.primary_key:
        return
    nullable = {column.name for column in table.columns if column.is_nullable}
    unique = next(
        (
            index.columns
            for index in table.indexes
            if index.is_unique and index.columns and not nullable & set(index.columns)
        ),
        None,
    )
    yield Difficulty(
        kind="no primary key",
        severity="care" if unique else "obstacle",
        table=table.name,
        columns=unique or [],
        what=f"{table.name} has no primary key, but every item needs one.",
        strategy=(
            f"The unique index over {listed(unique)} can serve as the key."
            if unique
            else "Find columns that identify a row, or add a surrogate key such as a UUID to the"
            " source before it is read."
        ),
    )


def key_structure(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if len(table.primary_key) > 2:
        yield Difficulty(
            kind="key structure",
            severity="care",
            table=table.name,
            columns=table.primary_key,
            what=f"The primary key of {table.name} has {len(table.primary_key)} columns; a key of"
            " DynamoDB has one or two attributes.",
            strategy="Take the column that most requests pass as the partition key, and join the"
            " others into one sort key.",
        )
    columns = [column for column in table.columns if column.name in table.primary_key]
    unfit = [column.name for column in columns if column.kind not in KEY_KINDS]
    if unfit:
        yield Difficulty(
            kind="key structure",
            severity="care",
            table=table.name,
            columns=unfit,
            what=f"{listed(unfit)} in the primary key of {table.name} cannot be a key as it is:"
            " keys are strings, numbers or binaries.",
            strategy="Write the value as a string or a number in the key.",
        )
    long = [
        column.name
        for column in columns
        if column.kind in ("string", "binary")
        and (bytes_max(column) or 0) > PARTITION_KEY_BYTES_MAX
    ]
    if long:
        yield Difficulty(
            kind="key structure",
            severity="care",
            table=table.name,
            columns=long,
            what=f"{listed(long)} in the primary key of {table.name} may be longer than the 2048"
            " bytes of a partition key or the 1024 of a sort key.",
            strategy="Keep a hash of the value as the key, and the value beside it.",
        )


def auto_increment(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    numbered = [column.name for column in table.columns if column.is_auto_increment]
    if numbered:
        yield Difficulty(
            kind="auto-increment key",
            severity="care",
            table=table.name,
            columns=numbered,
            what=f"The database generates {listed(numbered)} of {table.name}; DynamoDB does not"
            " generate numbers.",
            strategy="Keep the old numbers, and give new items a UUID or ULID, or a number from a"
            " counter item; prefer a natural key where there is one.",
        )


def unique_constraints(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    for index in table.indexes:
        if not index.is_unique or index.columns == table.primary_key:
            continue
        over = index.columns or index.expressions
        yield Difficulty(
            kind="unique constraint",
            severity="care",
            table=table.name,
            columns=index.columns,
            what=f"{index.name} keeps {listed(over)} of {table.name} unique; DynamoDB keeps only"
            " primary keys unique.",
            strategy="Write a second item whose key is the unique value, in one transaction with"
            " the first, on condition that it does not exist.",
        )


def _unsaid_collations(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if inventory.dialect not in ("mysql", "mariadb"):
        return
    for collation in sorted({column.collation for column in table.columns if column.collation}):
        if collation in FOLDINGS:
            continue
        columns = [column.name for column in table.columns if column.collation == collation]
        yield Difficulty(
            kind="collation",
            severity="care",
            table=table.name,
            columns=columns,
            what=f"{listed(columns)} of {table.name} are compared by {collation}, which keys"
            f" cannot express: {why_not_in_keys(collation)}.",
            strategy="Find rows by other columns, or give these a collation that compares letters"
            " alone (`_ai_ci`, `_bin`) before you migrate.",
        )


def collations(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    compared = set(table.primary_key)
    for index in table.indexes:
        if index.is_unique:
            compared |= set(index.columns)
    folded = [
        column.name
        for column in table.columns
        if column.is_case_insensitive and column.name in compared
    ]
    if folded:
        yield Difficulty(
            kind="collation",
            severity="care",
            table=table.name,
            columns=folded,
            what=f'In {listed(folded)} of {table.name} "a" and "A" are the same key; in DynamoDB'
            " they are different keys.",
            strategy="Write keys in the form that the collation compares, and the original beside"
            " them: `model` does.",
        )
    yield from _unsaid_collations(table, inventory)
    padded = [
        column.name
        for column in table.columns
        if column.pad == "PAD SPACE"
        and not column.is_case_insensitive
        and column.name in compared
        and column.kind == "string"
    ]
    if padded:
        yield Difficulty(
            kind="collation",
            severity="note",
            table=table.name,
            columns=padded,
            what=f"In {listed(padded)} of {table.name} trailing blanks do not count (PAD SPACE);"
            " in keys of DynamoDB they do.",
            strategy="Write keys without them, and the original beside them: `model` does.",
        )
