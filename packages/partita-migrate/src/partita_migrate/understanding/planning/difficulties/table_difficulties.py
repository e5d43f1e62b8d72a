"""Finds what a relational database does around a table and DynamoDB leaves to the application."""

from __future__ import annotations

from collections.abc import Iterator

from partita.database.expressions.syntax.reserved_words import RESERVED_WORDS
from partita.foundation.service_limits import (
    GLOBAL_INDEXES_PER_TABLE_MAX,
)
from partita_migrate.understanding.planning.difficulties.difficulty import Difficulty, Severity
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.understanding.schema.name_words import is_dynamodb_name, singular
from partita_migrate.workspace.readable_lists import listed, number_of

LONG_NAME_CHARS = 24
INDEXES_OF_AD_HOC_QUERIES = 6
SEARCHES = {
    "fulltext": "words in texts",
    "spatial": "places",
    "gin": "parts of values",
    "gist": "ranges, places or texts",
    "spgist": "ranges, places or texts",
}
DJANGO_REFERENCES = {"contenttypeid": "objectid"}
"""Django's pairs of columns: the model, and the key of the row."""


def polymorphic_references(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    """Finds pairs such as `commentable_type` and `commentable_id`: each row names the table that it
    refers to."""
    declared = {name for key in table.foreign_keys for name in key.columns}
    tables = {_plain(singular(other.name.rpartition(".")[2])) for other in inventory.tables}
    plain = {_plain(column.name): column.name for column in table.columns}
    for name, kind in plain.items():
        stem = name.removesuffix("type")
        number = plain.get(DJANGO_REFERENCES.get(name, f"{stem}id" if stem != name else ""))
        # If GameId is the primary key, then GameType is a plain value: the kind of the game.
        is_own = number is not None and table.primary_key == [number]
        if stem and number and number not in declared and not is_own and stem not in tables:
            yield Difficulty(
                kind="polymorphic reference",
                severity="care",
                table=table.name,
                columns=[kind, number],
                what=f"{number} of {table.name} refers to rows of the table that {kind} names, so"
                " no foreign key can declare it.",
                strategy=f"Join both into one key, {{{kind}}}#{{{number}}}: the rows are then"
                " stored with the others of the same owner, whatever its table.",
            )


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def foreign_keys(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    tables = {other.name for other in inventory.tables}
    for key in table.foreign_keys:
        if key.referenced_table not in tables:
            yield Difficulty(
                kind="foreign key",
                severity="care",
                table=table.name,
                columns=key.columns,
                what=f"{listed(key.columns)} of {table.name} refers to {key.referenced_table},"
                " which is not in the inventory.",
                strategy="Add that table to [source], or treat the column as a plain value.",
            )
        elif key.on_delete and key.on_delete.upper() not in ("NO ACTION", "RESTRICT"):
            yield Difficulty(
                kind="foreign key",
                severity="care",
                table=table.name,
                columns=key.columns,
                what=f"Deleting from {key.referenced_table} changes {table.name}"
                f" (ON DELETE {key.on_delete.upper()}).",
                strategy="Delete an item collection in the application, or let a stream do it.",
            )


def triggers(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if table.triggers:
        yield Difficulty(
            kind="trigger",
            severity="care",
            table=table.name,
            what=f"Writes to {table.name} run {number_of(len(table.triggers), 'trigger')}:"
            f" {listed(table.triggers)}.",
            strategy="Move what they do into the application, or into a function that reads the"
            " table's stream.",
        )


def rules(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if table.rules:
        yield Difficulty(
            kind="trigger",
            severity="care",
            table=table.name,
            what=f"Statements on {table.name} are rewritten by"
            f" {number_of(len(table.rules), 'rule')}: {listed(table.rules)}.",
            strategy="Find out which statements result, and write those.",
        )


def indexes(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    for index in table.indexes:
        if index.kind in SEARCHES:
            yield Difficulty(
                kind="ad-hoc queries",
                severity="care",
                table=table.name,
                columns=index.columns,
                what=f"{index.name} of {table.name} is a {index.kind} index, which finds"
                f" {SEARCHES[index.kind]}; DynamoDB finds items by their keys.",
                strategy="Feed a search service from the table's stream.",
            )
    secondary = [index for index in table.indexes if not index.is_unique]
    if len(secondary) > GLOBAL_INDEXES_PER_TABLE_MAX:
        severity: Severity = "care"
        what = f"{table.name} has {len(secondary)} indexes; a DynamoDB table has at most 20."
    elif len(secondary) >= INDEXES_OF_AD_HOC_QUERIES:
        severity = "note"
        what = f"{table.name} is searched in many ways: it has {len(secondary)} indexes."
    else:
        return
    yield Difficulty(
        kind="indexes",
        severity=severity,
        table=table.name,
        what=what,
        strategy="Keep those that an access pattern needs; overload one index with several types"
        " of items.",
    )


def partitions(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if table.partitions:
        yield Difficulty(
            kind="partitions",
            severity="note",
            table=table.name,
            what=f"{table.name} is divided into {number_of(len(table.partitions), 'partition')}.",
            strategy="Partitions by time become a table for each period, or one table whose old"
            " items expire (TTL).",
        )
    if table.inherits:
        yield Difficulty(
            kind="inheritance",
            severity="care",
            table=table.name,
            what=f"{table.name} inherits from {listed(table.inherits)}: reading those also reads"
            " its rows.",
            strategy="Items of one table may have different attributes: keep both kinds together,"
            " with an attribute that says which.",
        )


def access(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if not table.is_readable:
        yield Difficulty(
            kind="access",
            severity="obstacle",
            table=table.name,
            what=f"The user of the connection may not read {table.name}.",
            strategy="Grant SELECT on it, or exclude it in [source].",
        )


def names(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if not is_dynamodb_name(table.name):
        yield Difficulty(
            kind="name",
            severity="note",
            table=table.name,
            what=f"{table.name!r} cannot be the name of a DynamoDB table: 3 to 255 letters,"
            " digits, _, - and . are allowed.",
            strategy="Choose another name in the model.",
        )
    reserved = [column.name for column in table.columns if column.name.upper() in RESERVED_WORDS]
    if reserved:
        yield Difficulty(
            kind="name",
            severity="note",
            table=table.name,
            columns=reserved,
            what=f"{listed(reserved)} of {table.name} {'is a' if len(reserved) == 1 else 'are'}"
            f" reserved {'word' if len(reserved) == 1 else 'words'} in expressions.",
            strategy="Use a placeholder such as #n in expressions, or another attribute name.",
        )
    long = [column.name for column in table.columns if len(column.name) > LONG_NAME_CHARS]
    if long:
        yield Difficulty(
            kind="name",
            severity="note",
            table=table.name,
            columns=long,
            what=f"The names of {listed(long)} of {table.name} count towards the size of every"
            " item.",
            strategy="Choose shorter attribute names in the model.",
        )
