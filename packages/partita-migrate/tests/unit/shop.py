"""An inventory to understand statements against: a shop, as a person would draw it."""

from __future__ import annotations

from partita_migrate.understanding.schema.inventory import (
    Column,
    ColumnKind,
    ForeignKey,
    Index,
    Inventory,
    Table,
)


def column(name: str, kind: ColumnKind = "integer", **members: object) -> Column:
    return Column(name=name, type=kind, kind=kind, **members)  # type: ignore[arg-type]


def orders(name: str = "orders", schema: str | None = None) -> Table:
    return Table(
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
        indexes=[Index(name="customer_id", columns=["customer_id"])],
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
            Table(
                name="customer",
                columns=[
                    column("id"),
                    column("email", "string", length_max=80),
                    column("name", "string", length_max=80),
                    column("joined", "datetime"),
                ],
                primary_key=["id"],
                indexes=[Index(name="email", columns=["email"], is_unique=True)],
            ),
            Table(
                name="product",
                columns=[
                    column("id"),
                    column("sku", "string", length_max=20),
                    column("price", "decimal"),
                    column("data", "json"),
                ],
                primary_key=["id"],
            ),
            Table(
                name="order_line",
                columns=[
                    column("id"),
                    column("order_id"),
                    column("product_id"),
                    column("quantity"),
                ],
                primary_key=["id"],
                indexes=[Index(name="once", columns=["order_id", "product_id"], is_unique=True)],
            ),
            Table(
                name="tag",
                columns=[column("id"), column("label", "string", length_max=30)],
                primary_key=["id"],
                indexes=[Index(name="label", columns=["label"], is_unique=True)],
            ),
            Table(
                name="product_tag",
                columns=[column("id"), column("product_id"), column("tag_id")],
                primary_key=["id"],
            ),
            Table(
                name="category",
                columns=[column("id"), column("parent_id", is_nullable=True)],
                primary_key=["id"],
            ),
        ],
    )
