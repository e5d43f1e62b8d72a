"""Orders: transactions over both tables, all or nothing."""

from __future__ import annotations

from uuid import uuid4

from benchmarks.suite.refusals import INVALID, reasons, refusal
from benchmarks.suite.shop import Shop
from benchmarks.suite.tables import ORDERS, PRODUCTS, STOCK

NEW = "order#100"
NOW = 1_800_000_000


def stock(shop: Shop, sku: str) -> int:
    found = shop.product(sku)
    assert found is not None
    return int(found["stock"])


def test_an_order_takes_from_the_stock(shop: Shop) -> None:
    shop.place("ada", NEW, {"cup": 2, "lamp": 1}, NOW)
    assert (stock(shop, "cup"), stock(shop, "lamp")) == (STOCK - 2, STOCK - 1)


def test_an_order_has_the_sum_of_its_prices(shop: Shop) -> None:
    shop.place("ada", NEW, {"cup": 2, "lamp": 1}, NOW)
    found = shop.order("ada", NEW)
    assert found and found["total"] == 2 * 10 + 20


def test_an_order_beyond_the_stock_changes_nothing(shop: Shop) -> None:
    counts = {"cup": 2, "lamp": STOCK + 1}
    assert reasons(shop.place, "ada", NEW, counts, NOW) == [
        "None",
        "None",
        "ConditionalCheckFailed",
    ]
    assert shop.order("ada", NEW) is None
    assert stock(shop, "cup") == STOCK


def test_an_order_is_not_placed_twice(shop: Shop) -> None:
    shop.place("ada", NEW, {"cup": 1}, NOW)
    assert reasons(shop.place, "ada", NEW, {"cup": 1}, NOW) == ["ConditionalCheckFailed", "None"]
    assert stock(shop, "cup") == STOCK - 1


def test_an_order_that_is_sent_again_with_its_token_counts_once(shop: Shop) -> None:
    token = str(uuid4())
    shop.place("ada", NEW, {"cup": 1}, NOW, token)
    shop.place("ada", NEW, {"cup": 1}, NOW, token)
    assert stock(shop, "cup") == STOCK - 1


def test_a_token_is_for_one_order(shop: Shop) -> None:
    token = str(uuid4())
    shop.place("ada", NEW, {"cup": 1}, NOW, token)
    assert (
        refusal(shop.place, "ada", "order#101", {"cup": 1}, NOW, token)
        == "IdempotentParameterMismatchException"
    )


def test_a_cancelled_order_gives_back_what_it_took(shop: Shop) -> None:
    shop.place("ada", NEW, {"cup": 2, "mat": 3}, NOW)
    shop.cancel("ada", NEW)
    assert (stock(shop, "cup"), stock(shop, "mat")) == (STOCK, STOCK)
    found = shop.order("ada", NEW)
    assert found and found["status"] == "cancelled"


def test_only_an_open_order_is_cancelled(shop: Shop) -> None:
    assert reasons(shop.cancel, "bob", "order#001") == ["ConditionalCheckFailed", "None"]
    assert stock(shop, "lamp") == STOCK


def test_an_order_is_read_with_its_products(shop: Shop) -> None:
    order, cup, nothing = shop.order_with_products("bob", "order#000", "cup", "sofa")
    assert (order["status"], cup["name"], nothing) == ("open", "Cup", {})


def test_one_item_twice_in_a_transaction_is_refused(shop: Shop) -> None:
    twice = [{"Put": {"TableName": PRODUCTS, "Item": {"sku": "cup"}}}] * 2
    assert refusal(shop.client.transact_write_items, TransactItems=twice) == INVALID


def test_a_check_guards_a_transaction(shop: Shop) -> None:
    actions = [
        {
            "ConditionCheck": {
                "TableName": ORDERS,
                "Key": {"customer": "eve", "id": "order#009"},
                "ConditionExpression": "attribute_exists(id)",
            }
        },
        {"Delete": {"TableName": PRODUCTS, "Key": {"sku": "cup"}}},
    ]
    assert reasons(shop.client.transact_write_items, TransactItems=actions) == [
        "ConditionalCheckFailed",
        "None",
    ]
    assert stock(shop, "cup") == STOCK
