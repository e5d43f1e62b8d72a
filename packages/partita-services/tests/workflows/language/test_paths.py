"""JSONPath: finding values, and placing results by reference paths."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita_services.workflows.language.expressions.json_paths import (
    PathNotFound,
    PathSyntaxError,
    parse_path,
    place,
    resolve,
)

STORE = {
    "store": {
        "book": [
            {"category": "reference", "price": 8.95, "title": "A"},
            {"category": "fiction", "price": 12.99, "title": "B"},
            {"category": "fiction", "price": 8.99, "title": "C", "isbn": "0-553"},
        ],
        "bicycle": {"color": "red", "price": 19.95},
    },
    "error-info": 1,
    "x.y": {"z'q": 2},
    "häß": 3,
    "matrix": [[1, 2], [3, 4]],
    "no": None,
    "a.[b]": 4,
}


def find(path: str, data: Any = STORE) -> Any:
    return resolve(path, data, {"Execution": {"Id": "arn"}}, {"v": {"a": [5]}})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.store.book[0].title", "A"),
        ("$['store']['book'][1]['title']", "B"),
        ('$["store"].bicycle.color', "red"),
        ("$.store.book[-1].isbn", "0-553"),
        ("$.error-info", 1),
        ("$['x.y']['z\\'q']", 2),
        ("$.häß", 3),
        ("$.matrix[1][0]", 3),
        ("$.matrix.[1].[0]", 3),
        ("$.store.book.[?(@.isbn)].title", ["C"]),
        ("$..[1].[1]", [4]),
        ("$['a.[b]']", 4),
        ("$.no", None),
        ("$$.Execution.Id", "arn"),
        ("$v.a[0]", 5),
        ("$.store.book[*].title", ["A", "B", "C"]),
        ("$..price", [8.95, 12.99, 8.99, 19.95]),
        ("$.store.book[0,2].title", ["A", "C"]),
        ("$.store.book[1:].title", ["B", "C"]),
        ("$.store.book[:-1].title", ["A", "B"]),
        ("$.store.book[?(@.isbn)].title", ["C"]),
        ("$.store.book[?(!@.isbn)].title", ["A", "B"]),
        ("$.store.book[?(@.price < 10)].title", ["A", "C"]),
        ("$.store.book[?(@.price < 10 && @.category == 'fiction')].title", ["C"]),
        ("$.store.book[?(@.title == 'A' || @.title == \"B\")].price", [8.95, 12.99]),
        ("$.store.book[?(@.price > $.store.bicycle.price)]", []),
        ("$.store.book[?(@.category==fiction && @.title != B)].title", ["C"]),
        ("$.store.book[?(@.title == '== B)')].title", []),
        ("$.store.book[?(@.price > .95 && @.price<8.96)].title", ["A"]),
        ("$$.Execution.Id ", "arn"),
        ("$.store.*.color", ["red"]),
        ("$..nothing", []),
        ("$.store.book.length()", 3),
        ("$.store.book[*].price.min()", 8.95),
        ("$.store.bicycle.keys()", ["color", "price"]),
        ("$.matrix[0].sum()", 3),
        ("$.matrix[1].avg()", 3.5),
    ],
)
def test_what_a_path_finds(path: str, value: Any) -> None:
    assert find(path) == value


@pytest.mark.parametrize(
    "path",
    [
        "$.nope",
        "$.store.book[3]",
        "$.store[0]",
        "$.matrix.a",
        "$.no.a",
        "$w",
        "$.store.max()",
        "$$.x",
    ],
)
def test_one_value_that_is_not_there_is_not_found(path: str) -> None:
    with pytest.raises(PathNotFound):
        find(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "store",
        "@.a",
        "$.",
        "$.a.",
        "$[",
        "$[]",
        "$.a[",
        "$.a[?(]",
        "$.a[1",
        "$.a b",
        "$$v",
        "$.a.nope()",
    ],
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(PathSyntaxError):
        parse_path(path)


def test_regular_expressions_are_not_part_of_paths() -> None:
    with pytest.raises(PathSyntaxError):
        parse_path("$.a[?match(@.b, '(a+)+$')]")


names = st.text(min_size=1, max_size=8)
steps = st.lists(names | st.integers(0, 3), min_size=1, max_size=5)


def written(path: list[str | int]) -> str:
    parts = ["$"]
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            quoted = step.replace("\\", "\\\\").replace("'", "\\'")
            parts.append(f"['{quoted}']")
    return "".join(parts)


def around(path: list[str | int], value: Any) -> Any:
    """Data that has the value at the path."""
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    return value


@given(steps, st.integers())
def test_any_name_can_be_written_and_found(path: list[str | int], value: int) -> None:
    assert resolve(written(path), around(path, value), {}, {}) == value


@given(steps)
def test_what_is_placed_is_found_and_nothing_else_changes(path: list[str | int]) -> None:
    data = {"kept": 1, "here": around(path, "old")}
    text = written(["here", *path])
    placed = place(text, data, "new")
    assert resolve(text, placed, {}, {}) == "new"
    assert placed == {"kept": 1, "here": around(path, "new")}
    assert data == {"kept": 1, "here": around(path, "old")}


@given(st.lists(names, min_size=1, max_size=5))
def test_objects_on_the_way_are_created(path: list[Any]) -> None:
    assert place(written(path), {}, 1) == around(path, 1)


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    with suppress(PathSyntaxError, PathNotFound):
        resolve(text, STORE, {}, {})


@given(st.text(alphabet="$.[]()*?@'\",:0a-<>=!&| ", max_size=25))
def test_any_text_that_looks_like_a_path_is_one_or_refused(text: str) -> None:
    with suppress(PathSyntaxError, PathNotFound):
        resolve("$" + text, STORE, {}, {"a": 1})
