"""Products: puts, conditions, updates of numbers, sets and nested attributes, deletes, batches."""

from __future__ import annotations

from decimal import Decimal

from benchmarks.suite.refusals import FAILED, INVALID, refusal
from benchmarks.suite.shop import Shop
from benchmarks.suite.tables import PRODUCTS, SKUS, STOCK, product


def test_a_product_is_found_as_it_was_put(shop: Shop) -> None:
    assert shop.product("cup") == product(0, "cup")


def test_a_product_is_added(shop: Shop) -> None:
    shop.add_product("sofa", Decimal("399.90"), 2)
    assert shop.product("sofa") == {
        "sku": "sofa",
        "price": Decimal("399.90"),
        "stock": 2,
        "version": 1,
    }


def test_a_product_is_not_added_twice(shop: Shop) -> None:
    assert refusal(shop.add_product, "cup", Decimal(1), 1) == FAILED
    assert shop.product("cup") == product(0, "cup")


def test_restocking_adds(shop: Shop) -> None:
    assert shop.restock("cup", 5) == STOCK + 5
    assert shop.restock("cup", 1) == STOCK + 6


def test_taking_lowers_the_stock(shop: Shop) -> None:
    assert shop.take("pen", STOCK) == 0


def test_more_than_there_is_cannot_be_taken(shop: Shop) -> None:
    assert refusal(shop.take, "pen", STOCK + 1) == FAILED
    found = shop.product("pen")
    assert found and found["stock"] == STOCK


def test_a_price_changes_on_top_of_the_version_that_was_read(shop: Shop) -> None:
    shop.reprice("rug", Decimal("59.5"), version=1)
    found = shop.product("rug")
    assert found and (found["price"], found["version"]) == (Decimal("59.5"), 2)


def test_a_price_does_not_change_on_top_of_an_older_version(shop: Shop) -> None:
    shop.reprice("rug", Decimal(59), version=1)
    assert refusal(shop.reprice, "rug", Decimal(58), version=1) == FAILED


def test_tags_come_and_go(shop: Shop) -> None:
    shop.tag("mat", "new", "soft")
    shop.untag("mat", "home")
    found = shop.product("mat")
    assert found and found["tags"] == {"mat", "new", "soft"}


def test_a_set_that_loses_its_last_tag_is_gone(shop: Shop) -> None:
    shop.untag("mat", "home", "mat")
    found = shop.product("mat")
    assert found and "tags" not in found


def test_products_are_found_by_tag(shop: Shop) -> None:
    shop.untag("mat", "home")
    assert shop.products_tagged("home") == [sku for sku in SKUS if sku != "mat"]


def test_only_what_is_sold_out_is_discontinued(shop: Shop) -> None:
    assert refusal(shop.discontinue, "vase") == FAILED
    shop.take("vase", STOCK)
    gone = shop.discontinue("vase")
    assert gone and gone["sku"] == "vase"
    assert shop.product("vase") is None


def test_prices_of_several_products_in_one_request(shop: Shop) -> None:
    assert shop.prices("cup", "vase", "sofa") == {"cup": 10, "vase": 60}


def test_a_nested_attribute_is_changed_alone(shop: Shop) -> None:
    shop.products.update_item(
        Key={"sku": "cup"},
        UpdateExpression="SET made.#in = :place, made.#by[1] = :how",
        ExpressionAttributeNames={"#in": "in", "#by": "by"},
        ExpressionAttributeValues={":place": "Graz", ":how": "kiln"},
    )
    found = shop.product("cup")
    assert found and found["made"] == {"in": "Graz", "by": ["hand", "kiln"]}


def test_a_list_is_appended_to(shop: Shop) -> None:
    answer = shop.products.update_item(
        Key={"sku": "cup"},
        UpdateExpression="SET made.#by = list_append(made.#by, :more)",
        ExpressionAttributeNames={"#by": "by"},
        ExpressionAttributeValues={":more": ["glaze"]},
        ReturnValues="ALL_NEW",
    )
    assert answer["Attributes"]["made"]["by"] == ["hand", "wheel", "glaze"]


def test_a_batch_puts_and_deletes(shop: Shop) -> None:
    with shop.products.batch_writer() as batch:
        for number in range(30):
            batch.put_item(Item={"sku": f"bead-{number}"})
        batch.delete_item(Key={"sku": "cup"})
    assert shop.products.scan(Select="COUNT")["Count"] == 30 + len(SKUS) - 1


def test_a_product_without_a_key_is_refused(shop: Shop) -> None:
    assert refusal(shop.products.put_item, Item={"name": "nobody"}) == INVALID


def test_a_product_that_is_too_large_is_refused(shop: Shop) -> None:
    large = {"sku": "large", "text": "x" * 400 * 1024}
    assert refusal(shop.products.put_item, Item=large) == INVALID
    assert shop.client.describe_table(TableName=PRODUCTS)["Table"]["TableStatus"] == "ACTIVE"
    assert shop.product("large") is None
