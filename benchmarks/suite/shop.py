"""The service under test: products in stock, carts that expire, and orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from boto3.dynamodb.conditions import Attr, Key

from benchmarks.suite.tables import BY_STATUS, BY_TOTAL, EXPIRES, ORDERS, PRODUCTS, Item

CART_SECONDS = 3_600
CART = "cart"
ORDER = "order#"


class Shop:
    def __init__(self, dynamodb: Any) -> None:
        self.dynamodb = dynamodb
        self.client = dynamodb.meta.client
        self.products = dynamodb.Table(PRODUCTS)
        self.orders = dynamodb.Table(ORDERS)

    # Products

    def add_product(self, sku: str, price: Decimal, stock: int) -> None:
        self.products.put_item(
            Item={"sku": sku, "price": price, "stock": stock, "version": 1},
            ConditionExpression=Attr("sku").not_exists(),
        )

    def product(self, sku: str) -> Item | None:
        found: Item | None = self.products.get_item(Key={"sku": sku}, ConsistentRead=True).get(
            "Item"
        )
        return found

    def prices(self, *skus: str) -> dict[str, Decimal]:
        answer = self.dynamodb.batch_get_item(
            RequestItems={
                PRODUCTS: {
                    "Keys": [{"sku": sku} for sku in skus],
                    "ProjectionExpression": "sku, price",
                }
            }
        )
        return {item["sku"]: item["price"] for item in answer["Responses"][PRODUCTS]}

    def restock(self, sku: str, count: int) -> int:
        answer = self.products.update_item(
            Key={"sku": sku},
            UpdateExpression="ADD stock :count",
            ExpressionAttributeValues={":count": count},
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["stock"])

    def take(self, sku: str, count: int) -> int:
        """Takes items from the stock, if there are enough, and returns how many are left."""
        answer = self.products.update_item(
            Key={"sku": sku},
            UpdateExpression="SET stock = stock - :count",
            ConditionExpression=Attr("stock").gte(count),
            ExpressionAttributeValues={":count": count},
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["stock"])

    def reprice(self, sku: str, price: Decimal, version: int) -> None:
        """Changes the price, if the product still has the version that was read."""
        self.products.update_item(
            Key={"sku": sku},
            UpdateExpression="SET price = :price, version = version + :one",
            ConditionExpression=Attr("version").eq(version),
            ExpressionAttributeValues={":price": price, ":one": 1},
        )

    def tag(self, sku: str, *tags: str) -> None:
        self._change_tags("ADD", sku, tags)

    def untag(self, sku: str, *tags: str) -> None:
        self._change_tags("DELETE", sku, tags)

    def _change_tags(self, how: str, sku: str, tags: tuple[str, ...]) -> None:
        self.products.update_item(
            Key={"sku": sku},
            UpdateExpression=f"{how} tags :tags",
            ExpressionAttributeValues={":tags": set(tags)},
        )

    def discontinue(self, sku: str) -> Item | None:
        """Deletes a product, if it is sold out, and returns it."""
        gone: Item | None = self.products.delete_item(
            Key={"sku": sku},
            ConditionExpression=Attr("stock").eq(0),
            ReturnValues="ALL_OLD",
        ).get("Attributes")
        return gone

    def products_tagged(self, tag: str) -> list[str]:
        found = self.products.scan(FilterExpression=Attr("tags").contains(tag))["Items"]
        return sorted(item["sku"] for item in found)

    # Orders

    def order(self, customer: str, order: str) -> Item | None:
        key = {"customer": customer, "id": order}
        found: Item | None = self.orders.get_item(Key=key).get("Item")
        return found

    def place(
        self, customer: str, order: str, counts: Mapping[str, int], placed: int, token: str = ""
    ) -> None:
        """Writes the order and lowers all stocks, in one transaction."""
        prices = self.prices(*counts)
        item = {
            "customer": customer,
            "id": order,
            "status": "open",
            "placed": placed,
            "total": sum((prices[sku] * count for sku, count in counts.items()), Decimal(0)),
            "lines": [{"sku": sku, "count": count} for sku, count in counts.items()],
        }
        put = {
            "Put": {
                "TableName": ORDERS,
                "Item": item,
                "ConditionExpression": "attribute_not_exists(id)",
            }
        }
        actions = [put, *(self._stock_change(sku, -count) for sku, count in counts.items())]
        self.client.transact_write_items(
            TransactItems=actions, **({"ClientRequestToken": token} if token else {})
        )

    def cancel(self, customer: str, order: str) -> None:
        """Cancels an open order and returns its products to the stock."""
        found = self.order(customer, order) or {"lines": []}
        close = {
            "Update": {
                "TableName": ORDERS,
                "Key": {"customer": customer, "id": order},
                "UpdateExpression": "SET #status = :cancelled",
                "ConditionExpression": "#status = :open",
                "ExpressionAttributeNames": {"#status": "status"},
                "ExpressionAttributeValues": {":cancelled": "cancelled", ":open": "open"},
            }
        }
        back = [self._stock_change(line["sku"], line["count"]) for line in found["lines"]]
        self.client.transact_write_items(TransactItems=[close, *back])

    def _stock_change(self, sku: str, count: int) -> Item:
        return {
            "Update": {
                "TableName": PRODUCTS,
                "Key": {"sku": sku},
                "UpdateExpression": "ADD stock :count",
                "ConditionExpression": "stock >= :least",
                "ExpressionAttributeValues": {":count": count, ":least": max(0, -count)},
            }
        }

    def order_with_products(self, customer: str, order: str, *skus: str) -> list[Item]:
        """Reads an order and its products as of one moment."""
        keys = [(ORDERS, {"customer": customer, "id": order})]
        keys += [(PRODUCTS, {"sku": sku}) for sku in skus]
        answer = self.client.transact_get_items(
            TransactItems=[{"Get": {"TableName": table, "Key": key}} for table, key in keys]
        )
        return [response.get("Item", {}) for response in answer["Responses"]]

    # Lists

    def orders_of(self, customer: str, **more: Any) -> list[Item]:
        condition = Key("customer").eq(customer) & Key("id").begins_with(ORDER)
        found: list[Item] = self.orders.query(KeyConditionExpression=condition, **more)["Items"]
        return found

    def pages_of(self, customer: str, size: int) -> Iterator[list[str]]:
        start: dict[str, Any] = {}
        while True:
            condition = Key("customer").eq(customer)
            page = self.orders.query(KeyConditionExpression=condition, Limit=size, **start)
            yield [item["id"] for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def with_status(self, status: str, since: int = 0) -> list[Item]:
        condition = Key("status").eq(status) & Key("placed").gte(since)
        answer = self.orders.query(IndexName=BY_STATUS, KeyConditionExpression=condition)
        found: list[Item] = answer["Items"]
        return found

    def dearest(self, customer: str, count: int) -> list[str]:
        answer = self.orders.query(
            IndexName=BY_TOTAL,
            KeyConditionExpression=Key("customer").eq(customer),
            ScanIndexForward=False,
            Limit=count,
        )
        return [item["id"] for item in answer["Items"]]

    # Carts

    def save_cart(self, customer: str, counts: Mapping[str, int], now: int) -> None:
        lines = [{"sku": sku, "count": count} for sku, count in counts.items()]
        self.orders.put_item(
            Item={"customer": customer, "id": CART, "lines": lines, EXPIRES: now + CART_SECONDS}
        )

    def cart(self, customer: str, now: int) -> Item | None:
        """Returns the cart; an expired one counts as missing, even if it is not deleted yet."""
        answer = self.orders.query(
            KeyConditionExpression=Key("customer").eq(customer) & Key("id").eq(CART),
            FilterExpression=Attr(EXPIRES).gt(now),
        )
        found: list[Item] = answer["Items"]
        return found[0] if found else None

    def keep_cart(self, customer: str, now: int) -> None:
        """Restarts the time until the cart expires."""
        self.orders.update_item(
            Key={"customer": customer, "id": CART},
            UpdateExpression="SET #expires = :then",
            ConditionExpression=Attr("id").exists(),
            ExpressionAttributeNames={"#expires": EXPIRES},
            ExpressionAttributeValues={":then": now + CART_SECONDS},
        )
