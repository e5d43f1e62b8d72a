"""Tests that a statement is either understood completely or refused with the reason."""

from __future__ import annotations

import pytest

from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.statements.resolved_statements import (
    Constant,
    Insertion,
    Modification,
    NotExact,
    Parameter,
    ResolvedQuery,
)
from partita_migrate.understanding.statements.statement_parsing import parse_statement

from ..schemas import foreign_key, inventory, table

SHOP = inventory(
    table("users", "id, name string, born date?", "id"),
    table(
        "orders",
        "id, user_id, total decimal, note string?",
        "id",
        foreign_keys=[foreign_key("user_id", "users.id")],
    ),
    table("tickets", "id, is_new boolean?", "id"),
)
LOOKUP = SchemaLookup(SHOP)


def question(sql: str) -> ResolvedQuery:
    found = parse_statement(sql, LOOKUP)
    assert isinstance(found, ResolvedQuery)
    return found


def test_tests_order_and_limit_are_told() -> None:
    found = question(
        "SELECT o.id FROM orders o WHERE o.user_id = $1 AND total > 5 AND note IS NOT NULL"
        " ORDER BY total DESC LIMIT 3 OFFSET ?"
    )
    assert [(test.ref.column, test.operator) for test in found.tests] == [
        ("user_id", "="),
        ("total", ">"),
        ("note", "is not null"),
    ]
    assert found.tests[0].values == (Parameter("user_id", found.tests[0].ref),)
    assert found.tests[1].values == (Constant(5),)
    assert [(one.ref.column, one.is_descending) for one in found.order] == [("total", True)]
    assert (found.limit, found.offset) == (3, Parameter("offset"))


def test_joins_make_columns_the_same() -> None:
    found = question("SELECT * FROM orders o JOIN users u ON u.id = o.user_id WHERE u.name = ?")
    (test,) = found.tests
    assert str(test.ref) == "users.name"
    ids = next(ref for ref in found.columns if str(ref) == "users.id")
    assert {str(ref) for ref in found.same(ids)} == {"users.id", "orders.user_id"}


def test_what_the_application_finishes_is_said_and_its_rows_are_asked_for() -> None:
    found = question("SELECT user_id, SUM(total) FROM orders WHERE user_id = ? GROUP BY user_id")
    assert found.finish == "groups the rows"
    assert {ref.column for ref in found.columns} == {"user_id", "total"}


@pytest.mark.parametrize(
    ("condition", "alternatives"),
    [
        ("id NOT BETWEEN ? AND 9", [[("id", "<")], [("id", ">")]]),
        ("is_new IS NOT TRUE", [[("is_new", "=")], [("is_new", "is null")]]),
    ],
)
def test_the_opposite_of_a_range_or_a_truth_is_one_of_two(
    condition: str, alternatives: list[list[tuple[str, str]]]
) -> None:
    found = question(f"SELECT id FROM tickets WHERE {condition}")
    told = [[(test.ref.column, test.operator) for test in group] for group in found.alternatives]
    assert told == alternatives


def test_a_number_that_stands_for_a_condition_is_true_unless_it_is_0() -> None:
    (test,) = question("SELECT id FROM tickets WHERE id").tests
    assert (test.operator, test.values) == ("<>", (Constant(0),))


def test_mysql_reads_texts_as_numbers_to_compare_them_with_one() -> None:
    with pytest.raises(NotExact, match="converted to a number"):
        parse_statement("SELECT id FROM users WHERE name = 5", LOOKUP)


def test_writes_are_told() -> None:
    insertion = parse_statement("INSERT INTO users (id, name) VALUES (?, 'x')", LOOKUP)
    assert isinstance(insertion, Insertion)
    assert insertion.values[1] == Constant("x")
    change = parse_statement("UPDATE orders SET total = total - ? WHERE id = ?", LOOKUP)
    assert isinstance(change, Modification)
    assert [(one.ref.column, one.sign) for one in change.changes] == [("total", -1)]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "SELECT id, (SELECT COUNT(*) FROM orders) FROM users WHERE id = 1",
            "a pattern of its own",
        ),
        ("SELECT * FROM users WHERE id = (SELECT MAX(user_id) FROM orders)", "read first"),
        ("SELECT * FROM users WHERE id = 1 OR id IN (SELECT user_id FROM orders)", "SELECT inside"),
        ("DELETE FROM users WHERE id IN (SELECT user_id FROM orders)", "SELECT inside it"),
        ("SELECT * FROM users a JOIN users b ON a.id = b.id", "twice"),
        ("SELECT * FROM users WHERE name LIKE ?", "parameter of LIKE"),
        ("SELECT * FROM users WHERE born = id", "compares columns"),
        ("SELECT DISTINCT ON (name) * FROM users WHERE id = ?", "not understood"),
        ("SELECT * FROM users WHERE id = ? ORDER BY born NULLS LAST", "sorted"),
        ("SELECT * FROM users UNION SELECT * FROM users", "several SELECTs"),
        ("UPDATE users SET name = upper(name) WHERE id = 1", "computed from the row"),
        (
            "SELECT id, unnest(string_to_array(name, ',')) FROM users WHERE id = 1",
            "one row into several",
        ),
        ("SELECT * FROM users WHERE id = 1 AND name", "neither true nor false"),
        ("SELECT * FROM nobody WHERE id = 1", "not among the tables"),
    ],
)
def test_what_is_not_understood_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(NotExact, match=reason.replace("(", r"\(").replace(")", r"\)")):
        parse_statement(sql, LOOKUP)
