"""Inventories in a few words, for tests that need no server."""

from __future__ import annotations

from typing import Any

from partita_migrate.understanding.schema.inventory import (
    Column,
    ForeignKey,
    Index,
    Inventory,
    Table,
)
from partita_migrate.understanding.schema.relationships import relate


def column(text: str) -> Column:
    """`column("name string?")`: a name and a kind, with a ? where it may be null."""
    name, _, kind = text.partition(" ")
    is_nullable = kind.endswith("?")
    plain: Any = kind.rstrip("?") or "integer"
    return Column(name=name, type=plain, kind=plain, is_nullable=is_nullable)


def table(name: str, columns: str, key: str = "", **more: Any) -> Table:
    return Table(
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


def unique(columns: str, **more: Any) -> Index:
    return Index(name=columns.replace(" ", "_"), columns=columns.split(), is_unique=True, **more)


def inventory(*tables: Table, **more: Any) -> Inventory:
    return Inventory(
        dialect=more.pop("dialect", "mysql"),
        server_version="8",
        database="shop",
        tables=list(tables),
        relationships=relate(list(tables)),
        **more,
    )
