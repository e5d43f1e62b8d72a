"""Tests relationships that are derived from keys and the shape of tables."""

from __future__ import annotations

import pytest

from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.schema.name_words import words
from partita_migrate.understanding.schema.relationships import eav_attribute, relate

from ...schemas import foreign_key, table, unique

Found = list[tuple[str, str, str, str | None]]


def found(*tables: SourceTable) -> Found:
    return [(one.kind, one.parent, one.child, one.through) for one in relate(list(tables))]


USERS = table("users", "id, name string, email string, born date, town string", "id", row_count=9)


def test_one_to_many() -> None:
    posts = table("posts", "id, user_id", "id", foreign_keys=[foreign_key("user_id", "users.id")])
    assert found(USERS, posts) == [("one-to-many", "users", "posts", None)]


def test_a_unique_foreign_key_is_one_to_one() -> None:
    keys = [foreign_key("user_id", "users.id")]
    by_index = table("a", "id, user_id", "id", foreign_keys=keys, indexes=[unique("user_id")])
    by_key = table("b", "user_id", "user_id", foreign_keys=keys)
    partly = unique("user_id", where="active")
    only_some = table("c", "id, user_id", "id", foreign_keys=keys, indexes=[partly])
    assert found(USERS, by_index, by_key, only_some) == [
        ("one-to-one", "users", "a", None),
        ("one-to-one", "users", "b", None),
        ("one-to-many", "users", "c", None),
    ]


def test_a_foreign_key_that_may_be_null_is_optional() -> None:
    key = foreign_key("a b", "users.id name")
    posts = table("posts", "id, a, b integer?", "id", foreign_keys=[key])
    (one,) = relate([USERS, posts])
    assert one.is_optional and one.child_columns == ["a", "b"]


BOTH = [foreign_key("user_id", "users.id"), foreign_key("game_id", "games.id")]
GAMES = table("games", "id, title string, kind string, released date, maker string", "id")


@pytest.mark.parametrize(
    "intersection",
    [
        table("plays", "user_id, game_id", "user_id game_id", foreign_keys=BOTH),
        table(
            "plays", "user_id, game_id, score, note string", "game_id user_id", foreign_keys=BOTH
        ),
        table("plays", "user_id, game_id, day date", "user_id game_id day", foreign_keys=BOTH),
        table("plays", "id, user_id, game_id, created_at datetime", "id", foreign_keys=BOTH),
        table("plays", "user_id, game_id", foreign_keys=BOTH),
        table(
            "plays",
            "id, user_id, game_id, score",
            "id",
            foreign_keys=BOTH,
            indexes=[unique("user_id game_id")],
        ),
    ],
    ids=["bare", "payload", "repeated", "numbered", "without key", "unique pair"],
)
def test_many_to_many(intersection: SourceTable) -> None:
    kinds = {(one.kind, one.parent, one.child) for one in relate([USERS, GAMES, intersection])}
    assert kinds == {
        ("one-to-many", "users", "plays"),
        ("one-to-many", "games", "plays"),
        ("many-to-many", "users", "games"),
    }


def test_an_entity_with_two_foreign_keys_is_no_intersection() -> None:
    with_payload = table("plays", "id, user_id, game_id, score", "id", foreign_keys=BOTH)
    assert "many-to-many" not in {kind for kind, *_ in found(USERS, GAMES, with_payload)}
    referenced = table("plays", "id, user_id, game_id", "id", foreign_keys=BOTH)
    moves = table("moves", "id, play", "id", foreign_keys=[foreign_key("play", "plays.id")])
    assert "many-to-many" not in {kind for kind, *_ in found(USERS, GAMES, referenced, moves)}


def test_a_table_with_itself() -> None:
    follows = table(
        "follows",
        "follower, followed",
        "follower followed",
        foreign_keys=[foreign_key("follower", "users.id"), foreign_key("followed", "users.id")],
    )
    assert ("many-to-many", "users", "users", "follows") in found(USERS, follows)


def test_hierarchies() -> None:
    staff = table(
        "staff",
        "id, reports_to integer?",
        "id",
        foreign_keys=[foreign_key("reports_to", "staff.id")],
    )
    assert found(staff) == [("hierarchy", "staff", "staff", None)]
    paths = table(
        "paths",
        "ancestor, descendant, depth",
        "ancestor descendant",
        foreign_keys=[foreign_key("ancestor", "users.id"), foreign_key("descendant", "users.id")],
    )
    assert ("hierarchy", "users", "users", "paths") in found(USERS, paths)


STATUS = table("statuses", "id, code string, updated_at datetime", "id", row_count=4)


def test_lookups() -> None:
    keys = [foreign_key("status", "statuses.id")]
    many = table("orders", "id, status, total", "id", foreign_keys=keys, row_count=4000)
    few = table("orders", "id, status, total", "id", foreign_keys=keys, row_count=4)
    twice = table("returns", "id, status, total", "id", foreign_keys=keys)
    assert found(STATUS, many) == [("lookup", "statuses", "orders", None)]
    assert found(STATUS, few) == [("one-to-many", "statuses", "orders", None)]
    assert found(STATUS, few, twice) == [
        ("lookup", "statuses", "orders", None),
        ("lookup", "statuses", "returns", None),
    ]


def test_the_side_of_a_many_to_many_is_no_lookup() -> None:
    keys = [foreign_key("status", "statuses.id"), foreign_key("user", "users.id")]
    marks = table("marks", "status, user", "status user", foreign_keys=keys, row_count=9000)
    assert ("one-to-many", "statuses", "marks", None) in found(STATUS, USERS, marks)


@pytest.mark.parametrize(
    ("one", "attribute"),
    [
        (table("t", "user_id, attribute string, value string", "user_id attribute"), "attribute"),
        (table("t", "meta_id, post_id, meta_key string, meta_value string", "meta_id"), "meta_key"),
        (table("t", "id, item_id, name string, value_int, value_text string", "id"), "name"),
        (
            table("t", "id, ObjectId, PropertyName string, PropertyValue string", "id"),
            "PropertyName",
        ),
        (
            table(
                "t",
                "id, attribute_id, product_id, value_text string, value_integer, value_boolean"
                " boolean, value_float float, value_richtext string, value_date date, value_file"
                " string",
                "id",
            ),
            "attribute_id",
        ),
        (table("settings", "key string, value string", "key"), None),
        (table("t", "id, user_id, full_name string, value decimal", "id"), None),
        (table("t", "user_id, attribute string, amount", "user_id attribute"), None),
    ],
)
def test_entity_attribute_value(one: SourceTable, attribute: str | None) -> None:
    assert eav_attribute(one) == attribute


def test_what_is_not_in_the_inventory_is_no_relationship() -> None:
    lost = table("lost", "id, x", "id", foreign_keys=[foreign_key("x", "nowhere.id")])
    assert found(lost) == []


def test_words_of_names() -> None:
    for name in ("customer_id", "CustomerID", "customerId", "CUSTOMER_ID", "Customer Id"):
        assert words(name) == ["customer", "id"]
