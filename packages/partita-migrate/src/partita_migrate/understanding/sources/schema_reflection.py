"""Describes a source's schema as an inventory: SQLAlchemy's reflection, with what each catalog
adds."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace
from sqlalchemy import inspect
from sqlalchemy.engine.reflection import ObjectKind, ObjectScope
from sqlalchemy.exc import SAWarning

from partita_migrate.understanding.schema.inventory import (
    ForeignKey,
    Inventory,
    SkippedObject,
    SourceColumn,
    SourceIndex,
    SourceTable,
)
from partita_migrate.understanding.sources.dialects.catalog_facts import (
    CatalogFacts,
    ColumnFacts,
    Place,
    TableFacts,
)
from partita_migrate.understanding.sources.row_counts import count_rows
from partita_migrate.understanding.sources.source_connection import SourceDatabase
from partita_migrate.understanding.sources.undeclared_references import with_references
from partita_migrate.workspace.stage_progress import Progress, silent

# Batches need few queries, and still show progress on databases with thousands of tables.
TABLES_AT_A_TIME = 50


def reflect(source: SourceDatabase, progress: Progress = silent) -> Inventory:
    """Returns the inventory without relationships, sorted by name."""
    with source.errors():
        catalog = source.server.read_catalog(source.connection, source.settings)
        _leave_out(catalog, source)
        tables = _tables(source, catalog, progress)
    tables = with_references(tables, source.settings.references)
    done = itertools.count(1)
    counted = count_rows(source, tables, lambda: progress("Counting rows", next(done), len(tables)))
    return Inventory(
        dialect=source.dialect,
        server_version=source.server_version,
        database=source.database,
        tables=counted,
        views=sorted(catalog.views),
        analytical_views=sorted(catalog.analytical_views),
        view_queries=dict(sorted(catalog.view_queries.items())),
        routines=catalog.routines,
        skipped=sorted(catalog.skipped, key=lambda skipped: skipped.name),
        keeps_references=source.dialect != "sqlite" or source.settings.foreign_keys,
    )


def _leave_out(catalog: CatalogFacts, source: SourceDatabase) -> None:
    """Moves the tables that [source] does not select to the skipped ones, with the reason."""
    included, excluded = source.settings.tables, source.settings.exclude
    for schema, table in list(catalog.tables):
        name = catalog.name(schema, table)
        if included and not any(fnmatchcase(name, pattern) for pattern in included):
            reason = "not among the tables of [source]"
        elif any(fnmatchcase(name, pattern) for pattern in excluded):
            reason = "excluded by [source]"
        else:
            continue
        del catalog.tables[(schema, table)]
        catalog.skipped.append(SkippedObject(name=name, reason=reason))


@dataclass(frozen=True)
class _Reflected:
    """SQLAlchemy's answers for several tables of one schema."""

    columns: dict[Place, Any]
    keys: dict[Place, Any]
    foreign_keys: dict[Place, Any]
    indexes: dict[Place, Any]
    unique: dict[Place, Any]


def _tables(source: SourceDatabase, catalog: CatalogFacts, progress: Progress) -> list[SourceTable]:
    places = sorted(catalog.tables, key=lambda place: (place[0] or "", place[1]))
    tables = []
    for schema in sorted({schema for schema, _ in places}, key=lambda name: name or ""):
        names = [name for place_schema, name in places if place_schema == schema]
        for start in range(0, len(names), TABLES_AT_A_TIME):
            part = names[start : start + TABLES_AT_A_TIME]
            reflected = _reflect(source, schema, part)
            for name in part:
                if (schema, name) in reflected.columns:
                    tables.append(_table(catalog, (schema, name), reflected))
                else:
                    catalog.skipped.append(
                        SkippedObject(
                            name=catalog.name(schema, name),
                            reason="the server does not describe it",
                        )
                    )
            progress("Reading the schema", len(tables), len(places))
    return _resolve_references(tables)


def _reflect(source: SourceDatabase, schema: str | None, names: list[str]) -> _Reflected:
    inspector = inspect(source.connection)
    chosen: dict[str, Any] = {
        "schema": schema,
        "filter_names": names,
        # Finds tables by name, whatever kind the server gives them.
        "kind": ObjectKind.ANY,
        "scope": ObjectScope.ANY,
    }
    with warnings.catch_warnings():
        # SQLAlchemy warns of types and index options that it does not know; the catalog describes
        # them.
        warnings.simplefilter("ignore", SAWarning)
        answers = (
            dict(ask(**chosen))
            for ask in (
                inspector.get_multi_columns,
                inspector.get_multi_pk_constraint,
                inspector.get_multi_foreign_keys,
                inspector.get_multi_indexes,
                inspector.get_multi_unique_constraints,
            )
        )
        is_mysql = source.dialect in ("mysql", "mariadb")
        return _Reflected(*(_unescaped(answer) if is_mysql else answer for answer in answers))


def _unescaped(answer: Any) -> Any:
    """Restores backquotes. SQLAlchemy parses MySQL's CREATE TABLE and leaves a ` in a name
    doubled."""
    if isinstance(answer, str):
        return answer.replace("``", "`")
    if isinstance(answer, dict):
        return {name: _unescaped(part) for name, part in answer.items()}
    if isinstance(answer, list):
        return [_unescaped(part) for part in answer]
    return answer


def _table(catalog: CatalogFacts, place: Place, reflected: _Reflected) -> SourceTable:
    facts = catalog.tables[place]
    schema, name = place
    return SourceTable(
        name=catalog.name(schema, name),
        schema=schema,
        columns=[_column(column, facts) for column in reflected.columns[place]],
        primary_key=list((reflected.keys.get(place) or {}).get("constrained_columns") or []),
        foreign_keys=_foreign_keys(catalog, facts, reflected.foreign_keys.get(place) or []),
        indexes=_indexes(
            facts, reflected.indexes.get(place) or [], reflected.unique.get(place) or []
        ),
        triggers=facts.triggers,
        rules=facts.rules,
        partitions=facts.partitions,
        inherits=facts.inherits,
        is_inherited=facts.is_inherited,
        is_readable=facts.is_readable,
        row_count=-1 if facts.row_estimate is None else facts.row_estimate,
        data_bytes=facts.data_bytes,
    )


def _column(column: dict[str, Any], facts: TableFacts) -> SourceColumn:
    name = column["name"]
    column_facts = facts.columns.get(name) or ColumnFacts(type=str(column["type"]), kind="other")
    default = column.get("default")
    return SourceColumn(
        name=name,
        type=column_facts.type,
        kind=column_facts.kind,
        # SQLite reports INTEGER PRIMARY KEY as nullable, but it never holds NULL.
        is_nullable=bool(column.get("nullable", True)) and not column_facts.is_auto_increment,
        is_auto_increment=column_facts.is_auto_increment,
        is_generated=column_facts.is_generated,
        is_case_insensitive=column_facts.is_case_insensitive,
        is_letter_by_letter=column_facts.is_letter_by_letter,
        pad=column_facts.pad,
        collation=column_facts.collation,
        length_max=column_facts.length_max,
        default=None if default is None or column_facts.is_generated else str(default),
    )


def _foreign_keys(
    catalog: CatalogFacts, facts: TableFacts, reflected: Sequence[Any]
) -> list[ForeignKey]:
    keys = facts.foreign_keys
    if keys is None:
        keys = [
            ForeignKey(
                columns=list(key["constrained_columns"]),
                referenced_table=catalog.name(key.get("referred_schema"), key["referred_table"]),
                referenced_columns=list(key["referred_columns"]),
                on_delete=(key.get("options") or {}).get("ondelete"),
                on_update=(key.get("options") or {}).get("onupdate"),
            )
            for key in reflected
        ]
    # Partitions repeat the foreign keys of their table.
    distinct = {(tuple(key.columns), key.referenced_table): key for key in keys}
    return [distinct[columns] for columns in sorted(distinct)]


def _indexes(
    facts: TableFacts, reflected: Sequence[Any], unique: Sequence[Any]
) -> list[SourceIndex]:
    if facts.indexes is not None:
        return facts.indexes
    indexes = {index["name"]: _index(index, facts) for index in reflected}
    for constraint in unique:
        name = constraint["name"]
        if name not in indexes:
            columns = list(constraint["column_names"])
            indexes[name] = SourceIndex(name=name, columns=columns, is_unique=True)
    return [indexes[name] for name in sorted(indexes)]


def _index(index: dict[str, Any], facts: TableFacts) -> SourceIndex:
    columns = index["column_names"]
    expressions = index.get("expressions") or []
    computed = [
        expression for name, expression in zip(columns, expressions, strict=False) if name is None
    ]
    where = (index.get("dialect_options") or {}).get("postgresql_where")
    return SourceIndex(
        name=index["name"],
        columns=[name for name in columns if name is not None],
        is_unique=bool(index.get("unique")),
        expressions=computed,
        where=where,
        kind=facts.index_kinds.get(index["name"]),
    )


def _resolve_references(tables: list[SourceTable]) -> list[SourceTable]:
    """Completes foreign keys. Without columns they refer to the primary key, and SQLite ignores
    case in names."""
    exactly = {table.name: table for table in tables}
    roughly = {table.name.casefold(): table for table in tables}

    def resolve(key: ForeignKey) -> ForeignKey:
        name = key.referenced_table
        target = exactly.get(name) or roughly.get(name.casefold())
        if target is None:
            return key
        columns = {column.name.casefold(): column.name for column in target.columns}
        named = [columns.get(column.casefold(), column) for column in key.referenced_columns]
        return replace(
            key,
            referenced_table=target.name,
            referenced_columns=named or target.primary_key,
        )

    return [
        replace(table, foreign_keys=[resolve(key) for key in table.foreign_keys])
        for table in sorted(tables, key=lambda table: table.name)
    ]
