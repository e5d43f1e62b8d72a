"""Tokens of statements: words, quotes, numbers, comments, and where they stand."""

from __future__ import annotations

import pytest

from partita.database.operations.partiql.language.syntax.statement_tokens import (
    MALFORMED,
    StatementTokenKind,
    tokenize,
)
from partita.errors import ValidationException


def texts(statement: str) -> list[str]:
    return [token.text for token in tokenize(statement)[:-1]]


def places(statement: str) -> list[str]:
    return [str(token.place) for token in tokenize(statement)[:-1]]


def test_keywords_have_no_case_and_names_have() -> None:
    assert texts("SeLect Foo FROM bar") == ["select", "Foo", "from", "bar"]


def test_quotes_are_taken_away_and_doubled_ones_stay_once() -> None:
    kinds = [(token.kind, token.text) for token in tokenize('\'it\'\'s\' "a ""b"""')[:-1]]
    assert kinds == [(StatementTokenKind.STRING, "it's"), (StatementTokenKind.NAME, 'a "b"')]


@pytest.mark.parametrize("number", ["0", "01", "1.", ".5", "1.50", "1e5", "1.e-5", "12E+3"])
def test_numbers_are_one_token(number: str) -> None:
    assert [(token.kind, token.text) for token in tokenize(number)[:-1]] == [
        (StatementTokenKind.NUMBER, number)
    ]


def test_words_that_belong_together_are_one_token_at_the_place_of_the_first() -> None:
    assert texts("a IS  NOT MISSING") == ["a", "is_not", "missing"]
    assert places("a IS  NOT MISSING")[1] == "1:3:2"
    assert texts("LEFT OUTER JOIN b") == ["left_join", "b"]
    assert texts("RETURNING ALL OLD *") == ["returning", "all_old", "*"]


def test_comments_are_blank() -> None:
    assert texts("a -- b\n c /* d\n */ e") == ["a", "c", "e"]
    assert texts("a / b /**/ * c -- /*") == ["a", "/", "b", "*", "c"]


def test_places_count_lines_and_characters() -> None:
    assert places("a\r\n b\n\tc\r'é😀' d") == ["1:1:1", "2:2:1", "3:2:1", "4:1:4", "4:6:1"]


@pytest.mark.parametrize(
    "text",
    [
        *("'a", '"a', "`a", "1e", "1ee", "#", "é", "!", "a ~ b", "a ^ b", "|"),
        *("/*", "a /* b", "/* a * /", "/*/", "a /* b */ /* c"),
        *("1e2147483648", "1e-2147483648", "1.5e-2147483647", "-1e99999999999"),
    ],
)
def test_what_is_no_token_is_malformed_without_words(text: str) -> None:
    with pytest.raises(ValidationException) as refused:
        tokenize(text)
    assert refused.value.message == MALFORMED
