"""Carts: items that expire, and the PartiQL statements of the support team."""

from __future__ import annotations

import time

from benchmarks.suite.refusals import FAILED, refusal
from benchmarks.suite.shop import CART, CART_SECONDS, Shop
from benchmarks.suite.tables import EXPIRES, ORDERS

NOW = int(time.time())


def test_the_table_knows_what_expires(shop: Shop) -> None:
    described = shop.client.describe_time_to_live(TableName=ORDERS)["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": EXPIRES}


def test_a_cart_is_kept(shop: Shop) -> None:
    shop.save_cart("ada", {"cup": 1}, NOW)
    cart = shop.cart("ada", NOW)
    assert cart and cart["lines"] == [{"sku": "cup", "count": 1}]


def test_a_cart_that_has_expired_does_not_count(shop: Shop) -> None:
    shop.save_cart("ada", {"cup": 1}, NOW)
    assert shop.cart("ada", NOW + CART_SECONDS) is None


def test_a_cart_that_is_used_lives_longer(shop: Shop) -> None:
    shop.save_cart("ada", {"cup": 1}, NOW)
    shop.keep_cart("ada", NOW + 60)
    assert shop.cart("ada", NOW + CART_SECONDS) is not None


def test_there_is_no_cart_to_keep(shop: Shop) -> None:
    assert refusal(shop.keep_cart, "ada", NOW) == FAILED


def test_a_statement_selects_a_cart(shop: Shop) -> None:
    shop.save_cart("ada", {"cup": 1}, NOW)
    answer = shop.client.execute_statement(
        Statement=f'SELECT id FROM "{ORDERS}" WHERE customer = ? AND id = ?',
        Parameters=["ada", CART],
    )
    assert answer["Items"] == [{"id": CART}]


def test_a_statement_changes_a_cart(shop: Shop) -> None:
    shop.save_cart("ada", {"cup": 1}, NOW)
    shop.client.execute_statement(
        Statement=f'UPDATE "{ORDERS}" SET note = ? WHERE customer = ? AND id = ?',
        Parameters=["call back", "ada", CART],
    )
    cart = shop.cart("ada", NOW)
    assert cart and cart["note"] == "call back"


def test_a_statement_inserts_only_what_is_new(shop: Shop) -> None:
    statement = {
        "Statement": f"INSERT INTO \"{ORDERS}\" VALUE {{'customer': ?, 'id': ?}}",
        "Parameters": ["ada", CART],
    }
    shop.client.execute_statement(**statement)
    assert "DuplicateItem" in refusal(shop.client.execute_statement, **statement)
