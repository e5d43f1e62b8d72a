"""Tests normalized statements: without values, with folded lists, also from shortened texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita_migrate.understanding.patterns.mining.normalized_statements import (
    NormalizedStatement,
    shapes_of,
)


def shape(statement: str, dialect: str = "mysql") -> NormalizedStatement:
    (one,) = shapes_of(statement, dialect)
    return one


@pytest.mark.parametrize(
    ("dialect", "statement", "text"),
    [
        ("mysql", "SELECT a FROM t WHERE b = 'it''s' AND c = \"x\\\"\"", "b = ? AND c = ?"),
        ("mysql", "SELECT a FROM t WHERE b = X'ff' AND c = 0x1F AND d = 1.5e-3", "AND d = ?"),
        ("mysql", "SELECT a FROM t WHERE b IN (1,2,3)", "b IN (?)"),
        ("mysql", "SELECT a FROM t WHERE (b, c) IN ((1, 2), (3, 4))", "(b, c) IN ((?))"),
        ("mysql", "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "VALUES (?)"),
        ("mysql", "SELECT a FROM t LIMIT 10 OFFSET 20", "LIMIT 10 OFFSET ?"),
        ("mysql", "SELECT a # comment\nFROM t -- another\n/* and one more */", "SELECT a FROM t"),
        ("mysql", "SELECT f(1, 2) FROM t WHERE b LIKE 'x%'", "LIKE ?%"),
        ("postgres", "SELECT $1::int FROM t WHERE b = E'a\\'b' AND c = $tag$it's$tag$", "c = ?"),
        ("postgres", "SELECT \"a b\" FROM t WHERE c ? 'k'", "c ? ?"),
        ("postgres", "SELECT a FROM t WHERE b = $1 AND c IN ($2, $3)", "c IN (?)"),
        ("postgres", "SELECT a FROM t WHERE b = 'c:\\' AND d = 4", "b = ? AND d = ?"),
        ("sqlite", "SELECT [a b] FROM `t` WHERE b = 'x'", "b = ?"),
    ],
)
def test_values_become_question_marks(dialect: str, statement: str, text: str) -> None:
    assert shape(statement, dialect).text.endswith(text)


def test_several_statements_in_one_text_are_taken_one_by_one() -> None:
    texts = [one.text for one in shapes_of("BEGIN; SELECT ';' FROM t; COMMIT;", "mysql")]
    assert texts == ["BEGIN", "SELECT ? FROM t", "COMMIT"]


def test_the_body_of_a_routine_stays_whole() -> None:
    assert len(list(shapes_of("CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END", "mysql"))) == 1


@pytest.mark.parametrize(
    ("statement", "members"),
    [
        ("SELECT a FROM t WHERE b IN (1, 2, 3)", 3),
        ("SELECT a FROM t WHERE b = 1", 1),
        ("INSERT INTO t VALUES (1, 2, 3)", 1),
        ("INSERT INTO t VALUES (1, 2, 3), (4, 5, 6)", 2),
        ("INSERT INTO t VALUES (...) /* , ... */", 0),
    ],
)
def test_members_of_lists_are_counted_where_the_text_shows_them(
    statement: str, members: int
) -> None:
    assert shape(statement).members == members


secrets = st.text(st.characters(exclude_characters="\\", exclude_categories=["Cs"]), min_size=8)


@given(secrets, st.sampled_from(["mysql", "postgres", "sqlite"]))
def test_no_value_of_a_text_survives(secret: str, dialect: str) -> None:
    quoted = secret.replace("'", "''")
    found = shape(f"SELECT a FROM t WHERE b = '{quoted}' AND c = 4", dialect)
    assert found.text == "SELECT a FROM t WHERE b = ? AND c = ?"


@given(st.text(max_size=200), st.sampled_from(["mysql", "postgres", "sqlite"]))
def test_any_text_has_shapes(text: str, dialect: str) -> None:
    for one in shapes_of(text, dialect):
        assert one.text
