"""An inventory to understand statements against: a shop, as a person would draw it."""

from __future__ import annotations

from partita_migrate.understanding.schema.inventory import (
    ColumnKind,
    ForeignKey,
    Inventory,
    SourceColumn,
    SourceIndex,
    SourceTable,
)


def column(name: str, kind: ColumnKind = "integer", **members: object) -> SourceColumn:
    return SourceColumn(name=name, type=kind, kind=kind, **members)  # type: ignore[arg-type]


def orders(name: str = "orders", schema: str | None = None) -> SourceTable:
    return SourceTable(
        name=name,
        schema=schema,
        columns=[
            column("id", is_auto_increment=True),
            column("customer_id"),
            column("created_at", "datetime"),
            column("status", "string", length_max=10),
            column("total", "decimal", is_nullable=True),
        ],
        primary_key=["id"],
        foreign_keys=[
            ForeignKey(
                columns=["customer_id"], referenced_table="customer", referenced_columns=["id"]
            )
        ],
        indexes=[SourceIndex(name="customer_id", columns=["customer_id"])],
        row_count=50,
    )


def shop(dialect: str) -> Inventory:
    return Inventory(
        dialect=dialect,
        server_version="1",
        database="shop",
        views=["busy_customers"],
        tables=[
            orders(),
            orders("archive.orders", "archive"),
            SourceTable(
                name="customer",
                columns=[
                    column("id"),
                    column("email", "string", length_max=80),
                    column("name", "string", length_max=80),
                    column("joined", "datetime"),
                ],
                primary_key=["id"],
                indexes=[SourceIndex(name="email", columns=["email"], is_unique=True)],
            ),
            SourceTable(
                name="product",
                columns=[
                    column("id"),
                    column("sku", "string", length_max=20),
                    column("price", "decimal"),
                    column("data", "json"),
                ],
                primary_key=["id"],
            ),
            SourceTable(
                name="order_line",
                columns=[
                    column("id"),
                    column("order_id"),
                    column("product_id"),
                    column("quantity"),
                ],
                primary_key=["id"],
                indexes=[
                    SourceIndex(name="once", columns=["order_id", "product_id"], is_unique=True)
                ],
            ),
            SourceTable(
                name="tag",
                columns=[column("id"), column("label", "string", length_max=30)],
                primary_key=["id"],
                indexes=[SourceIndex(name="label", columns=["label"], is_unique=True)],
            ),
            SourceTable(
                name="product_tag",
                columns=[column("id"), column("product_id"), column("tag_id")],
                primary_key=["id"],
            ),
            SourceTable(
                name="category",
                columns=[column("id"), column("parent_id", is_nullable=True)],
                primary_key=["id"],
            ),
        ],
    )
