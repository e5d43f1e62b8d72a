"""The data of every test: two tables, six products and twelve orders."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

ORDERS = "orders"
PRODUCTS = "products"
BY_STATUS = "by-status"
BY_TOTAL = "by-total"
EXPIRES = "expires"

CUSTOMERS = ("ada", "bob", "eve")
STATUSES = ("open", "paid", "sent", "open")
SKUS = ("cup", "lamp", "mat", "pen", "rug", "vase")
STOCK = 10

Item = dict[str, Any]


def product(number: int, sku: str) -> Item:
    return {
        "sku": sku,
        "name": sku.title(),
        "price": Decimal(number + 1) * 10,
        "stock": STOCK,
        "version": 1,
        "tags": {"home", sku},
        "made": {"in": "Turin", "by": ["hand", "wheel"]},
    }


def order(customer: str, number: int) -> Item:
    return {
        "customer": customer,
        "id": f"order#{number:03}",
        "status": STATUSES[number],
        "placed": 1_700_000_000 + number * 86_400,
        "total": Decimal(number + 1) * 25,
        "lines": [{"sku": SKUS[number], "count": number + 1}],
    }


def prepare(dynamodb: Any) -> None:
    """Fills an empty backend."""
    _create_tables(dynamodb)
    with dynamodb.Table(PRODUCTS).batch_writer() as batch:
        for number, sku in enumerate(SKUS):
            batch.put_item(Item=product(number, sku))
    with dynamodb.Table(ORDERS).batch_writer() as batch:
        for customer in CUSTOMERS:
            for number in range(len(STATUSES)):
                batch.put_item(Item=order(customer, number))


def _create_tables(dynamodb: Any) -> None:
    dynamodb.create_table(
        TableName=PRODUCTS,
        KeySchema=_keys("sku"),
        AttributeDefinitions=_definitions(sku="S"),
        BillingMode="PAY_PER_REQUEST",
    ).wait_until_exists()
    dynamodb.create_table(
        TableName=ORDERS,
        KeySchema=_keys("customer", "id"),
        AttributeDefinitions=_definitions(customer="S", id="S", status="S", placed="N", total="N"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": BY_STATUS,
                "KeySchema": _keys("status", "placed"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": BY_TOTAL,
                "KeySchema": _keys("customer", "total"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    ).wait_until_exists()
    dynamodb.meta.client.update_time_to_live(
        TableName=ORDERS, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRES}
    )


def remove(dynamodb: Any) -> None:
    """Deletes the tables again."""
    for name in (ORDERS, PRODUCTS):
        dynamodb.Table(name).delete()


def _keys(*names: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


def _definitions(**kinds: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]
