"""Trees of statements: precedence, places, and that nothing but a refusal comes of nonsense."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.database.operations.partiql.language.statement_compiler import compile_statement
from partita.database.operations.partiql.language.syntax.partiql_keywords import KEYWORDS
from partita.database.operations.partiql.language.syntax.statement_parser import parse
from partita.database.operations.partiql.language.syntax.statement_tokens import MALFORMED
from partita.database.operations.partiql.language.syntax.syntax_tree import (
    Identifier,
    Literal,
    OperatorCall,
    PathExpression,
    SelectSyntax,
    SyntaxNode,
    TypeTest,
)
from partita.errors import ValidationException


def where(condition: str) -> str:
    node = parse(f"SELECT * FROM t WHERE {condition}")
    assert isinstance(node, SelectSyntax) and node.where is not None
    return written(node.where)


def written(node: SyntaxNode) -> str:
    """A tree with all its parentheses."""
    if isinstance(node, OperatorCall):
        return f"({node.operator} {' '.join(map(written, node.operands))})"
    if isinstance(node, TypeTest):
        return f"(is {written(node.operand)} {node.type_name})"
    if isinstance(node, (Identifier, Literal)):
        return node.text
    return type(node).__name__


@pytest.mark.parametrize(
    ("condition", "tree"),
    [
        ("a = 1 OR b = 2 AND c = 3", "(or (= a 1) (and (= b 2) (= c 3)))"),
        ("(a = 1 OR b = 2) AND c = 3", "(and (or (= a 1) (= b 2)) (= c 3))"),
        ("a = 1 AND b = 2 AND c = 3", "(and (= a 1) (= b 2) (= c 3))"),
        ("NOT a = 1 AND b = 2", "(and (not (= a 1)) (= b 2))"),
        ("NOT a IN (1, 2)", "(not (in a ListLiteral))"),
        ("a NOT IN [1]", "(not (in a ListLiteral))"),
        ("a BETWEEN 1 AND 2 AND b = 3", "(and (between a 1 2) (= b 3))"),
        ("a + 1 * 2 = b - 1", "(= (+ a (* 1 2)) (- b 1))"),
        ("a IS NOT MISSING OR b IS NULL", "(or (not (is a missing)) (is b null))"),
        ("a = - 1", "(= a -1)"),
        ("a = - - 1", "(= a 1)"),
        ("a = -b", "(= a (- b))"),
        ("a < b = true", "(= (< a b) True)"),
    ],
)
def test_precedence(condition: str, tree: str) -> None:
    assert where(condition) == tree


def test_paths_are_made_of_steps() -> None:
    node = parse("a.b[0]['c'].\"d\"")
    assert isinstance(node, PathExpression)
    assert [written(step) for step in node.steps] == ["b", "0", "c", "d"]


def test_an_operation_stands_where_its_operator_does() -> None:
    node = parse("a\n  = 1")
    assert str(node.place) == "2:3:1"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT n, FROM t", "Expected data manipulation"),
        ("SELECT *, n FROM t", "Other expressions may not be present"),
        ("SELECT a[*] FROM t", "Invalid use of * in select list"),
        ("SELECT * FROM t ORDER sk", "Expected BY"),
        ("INSERT INTO t VALUE {'a' 1}", "Expected COLON"),
        ("INSERT INTO t VALUE {'a': 1", "Expected RIGHT_CURLY"),
        ("INSERT INTO 't' VALUE {}", "Expected identifier for simple path"),
        ("UPDATE t SET a.b.* = 1", "Invalid path dot component for simple path"),
        ("SELECT * FROM t WHERE a IS 'x'", "Expected type name"),
        ("SELECT * FROM t WHERE a BETWEEN 1", "Expected AND keyword"),
        ("SELECT * FROM t WHERE (DELETE FROM t)", "Keyword DELETE only expected at the top level"),
    ],
)
def test_what_is_malformed(statement: str, message: str) -> None:
    with pytest.raises(ValidationException) as refused:
        parse(statement)
    assert (refused.value.message or "").startswith(MALFORMED + message)


def test_a_name_that_is_a_keyword_must_be_quoted() -> None:
    for word in sorted(KEYWORDS - {"size", "exists"}):
        assert parse(f'SELECT "{word}" FROM t')
        with pytest.raises(ValidationException):
            compile_statement(f"SELECT {word} FROM t")


def test_statements_that_come_again_are_parsed_once() -> None:
    assert parse("SELECT * FROM t") is parse("SELECT * FROM t")


words = st.one_of(
    st.sampled_from(sorted(KEYWORDS)),
    st.sampled_from(
        [*"()[]{}<>=+-*/%,.:;?@'\"`|!#", "<<", ">>", "<>", "is", "not", "in", "and", "or", "null"]
    ),
    st.sampled_from(["a", '"b"', "'c'", "1", "1.5e3", "true", "missing", "as", "by", "desc"]),
    st.text(max_size=3),
)
BEGINNINGS = [
    "",
    "SELECT",
    "SELECT * FROM t WHERE",
    "UPDATE t SET",
    "INSERT INTO t VALUE",
    "DELETE",
]


@given(st.sampled_from(BEGINNINGS), st.lists(words, max_size=25))
def test_nonsense_is_only_ever_refused(beginning: str, rest: list[str]) -> None:
    with suppress(ValidationException):
        compile_statement(" ".join([beginning, *rest]))


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(ValidationException):
        parse(text)
