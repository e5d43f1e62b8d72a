"""Inventories in a few words, for tests that need no server."""

from __future__ import annotations

from typing import Any

from partita_migrate.understanding.schema.inventory import (
    ForeignKey,
    Inventory,
    SourceColumn,
    SourceIndex,
    SourceTable,
)
from partita_migrate.understanding.schema.relationships import relate


def column(text: str) -> SourceColumn:
    """`column("name string?")`: a name and a kind, with a ? where it may be null."""
    name, _, kind = text.partition(" ")
    is_nullable = kind.endswith("?")
    plain: Any = kind.rstrip("?") or "integer"
    return SourceColumn(name=name, type=plain, kind=plain, is_nullable=is_nullable)


def table(name: str, columns: str, key: str = "", **more: Any) -> SourceTable:
    return SourceTable(
        name=name,
        columns=[column(part.strip()) for part in columns.split(",")],
        primary_key=key.split(),
        **more,
    )


def foreign_key(columns: str, referenced: str, on_delete: str | None = None) -> ForeignKey:
    """`foreign_key("a b", "other.c d")`"""
    target, _, names = referenced.partition(".")
    return ForeignKey(
        columns=columns.split(),
        referenced_table=target,
        referenced_columns=names.split(),
        on_delete=on_delete,
    )


def unique(columns: str, **more: Any) -> SourceIndex:
    return SourceIndex(
        name=columns.replace(" ", "_"), columns=columns.split(), is_unique=True, **more
    )


def inventory(*tables: SourceTable, **more: Any) -> Inventory:
    return Inventory(
        dialect=more.pop("dialect", "mysql"),
        server_version="8",
        database="shop",
        tables=list(tables),
        relationships=relate(list(tables)),
        **more,
    )
