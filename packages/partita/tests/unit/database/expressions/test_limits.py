"""Limits of expressions, and expressions made to break a parser."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time
from weakref import ref

import pytest

from partita.database.expressions.condition import compile_condition
from partita.database.expressions.key_condition import compile_key_condition
from partita.database.expressions.name_resolution import (
    CACHED_CHARS_MAX,
    Compile,
    NameItems,
    cached,
)
from partita.database.expressions.projection import compile_projection
from partita.database.expressions.update import compile_update
from partita.errors import ValidationException
from partita.foundation.service_limits import (
    DOCUMENT_PATH_ELEMENTS_MAX,
    EXPRESSION_BYTES_MAX,
    EXPRESSION_OPERATORS_MAX,
    IN_OPERANDS_MAX,
)

VALUES = {":a": {"N": "1"}}


def check_condition(text: str) -> None:
    condition = compile_condition(text, {})
    condition.check(VALUES)
    condition.holds({}, VALUES)


def check_update(text: str) -> None:
    compile_update(text, {}).check(VALUES)


def check_projection(text: str) -> None:
    compile_projection(text, {})


def check_key_condition(text: str) -> None:
    compile_key_condition(text, {}).check(VALUES)


def refusal(check: Callable[[str], None], text: str) -> str:
    with pytest.raises(ValidationException) as caught:
        check(text)
    assert caught.value.message
    return caught.value.message.partition(": ")[2]


TOO_LONG = "Expression size has exceeded the maximum allowed size;"


@pytest.mark.parametrize(
    ("check", "text", "message"),
    [
        (check_condition, "a = :a", f"{TOO_LONG} expression size: {EXPRESSION_BYTES_MAX + 1}"),
        (check_key_condition, "a = :a", f"{TOO_LONG} expression size: {EXPRESSION_BYTES_MAX + 1}"),
        (check_update, "SET a = :a", TOO_LONG),
        (check_projection, "a", TOO_LONG),
    ],
)
def test_an_expression_has_4096_bytes_at_most(
    check: Callable[[str], None], text: str, message: str
) -> None:
    longest = text.ljust(EXPRESSION_BYTES_MAX)
    check(longest)
    assert refusal(check, longest + " ") == message


def test_the_size_of_an_expression_is_counted_in_bytes() -> None:
    assert refusal(check_condition, "é" * 2049).startswith(TOO_LONG)
    assert refusal(check_condition, "é" * 2048).startswith("Syntax error")


def test_a_condition_has_300_operators_at_most() -> None:
    too_many = "The expression contains too many operators; operator count: 301"
    negations = EXPRESSION_OPERATORS_MAX - 1
    check_condition("NOT " * negations + "a = :a")
    assert refusal(check_condition, "NOT " * (negations + 1) + "a = :a") == too_many
    check_condition("NOT (" * negations + "a = :a" + ")" * negations)
    comparisons = EXPRESSION_OPERATORS_MAX // 2
    check_condition(" AND ".join(["a = :a"] * comparisons))
    assert refusal(check_condition, " AND ".join(["a = :a"] * (comparisons + 1))) == too_many
    check_condition(" OR ".join(["size(a) = :a"] * 100))
    assert refusal(check_condition, " OR ".join(["size(a) = :a"] * 101)) == too_many


def test_sums_and_functions_of_an_update_are_counted_too() -> None:
    sums = [f"a{number}=b+:a" for number in range(EXPRESSION_OPERATORS_MAX + 1)]
    check_update("SET " + ",".join(sums[:-1]))
    assert refusal(check_update, "SET " + ",".join(sums)) == (
        "The expression contains too many operators; operator count: 301"
    )


def test_in_has_100_operands_at_most() -> None:
    check_condition(f"a IN ({','.join([':a'] * IN_OPERANDS_MAX)})")
    assert refusal(check_condition, f"a IN ({','.join([':a'] * (IN_OPERANDS_MAX + 1))})") == (
        "The IN operator is provided with too many operands; number of operands: 101"
    )


@pytest.mark.parametrize(
    ("check", "template"),
    [
        (check_condition, "{} = :a"),
        (check_projection, "{}"),
        (check_update, "SET {} = :a"),
        (check_update, "SET a = {}"),
    ],
)
def test_a_path_has_32_elements_at_most(check: Callable[[str], None], template: str) -> None:
    check(template.format("a" + "[0]" * (DOCUMENT_PATH_ELEMENTS_MAX - 1)))
    too_long = template.format(".".join(["a"] * (DOCUMENT_PATH_ELEMENTS_MAX + 1)))
    assert refusal(check, too_long) == (
        "The document path has too many nesting levels; nesting levels: 33"
    )


def test_a_list_index_is_a_32_bit_number() -> None:
    check_projection("a[2147483647]")
    for index in ("2147483648", "9" * 4000):
        assert refusal(check_projection, f"a[{index}]") == (
            f"List index is not within the allowable range; index: [{index}]"
        )


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4096,
        "(" * 2000 + "a = :a" + ")" * 2000,
        "a = " + "(" * 2000 + "b" + ")" * 2000,
        "NOT " * 1023,
        "NOT " * 1020 + "a = :a",
        "NOT(" * 800 + "a = :a" + ")" * 800,
        "size(" * 680 + "a" + ")" * 680 + " > :a",
        "(a = :a AND " * 300 + "a = :a" + ")" * 300,
        "a" + ".a" * 2000,
        "a" + "[0]" * 1300 + " = :a",
        "=" * 4096,
        "a IN (" + "b," * 2000,
    ],
)
def test_hostile_nesting_is_an_answer_in_every_kind_of_expression(text: str) -> None:
    for check, template in (
        (check_condition, "{}"),
        (check_key_condition, "{}"),
        (check_projection, "{}"),
        (check_update, "SET a = {}"),
    ):
        with pytest.raises(ValidationException):
            check(template.format(text)[:EXPRESSION_BYTES_MAX])


class TestKept:
    """Compiled expressions are cached, and never more of them than a little memory holds."""

    def compiler(self) -> tuple[Compile[object], list[str]]:
        compiled: list[str] = []

        def compile_one(text: str, names: NameItems, parameter: str) -> object:
            compiled.append(text)
            return object()

        return cached(compile_one), compiled

    def test_an_expression_is_compiled_once_for_its_names(self) -> None:
        compile_cached, compiled = self.compiler()
        first = compile_cached("a", (), "X")
        assert compile_cached("a", (), "X") is first
        assert compile_cached("a", (("#a", "b"),), "X") is not first
        assert len(compiled) == 2

    def test_the_oldest_go(self) -> None:
        compile_cached, compiled = self.compiler()
        texts = [f"{number:01000}" for number in range(2 * CACHED_CHARS_MAX // 1000)]
        for text in texts:
            compile_cached(text, (), "X")
        del compiled[:]
        compile_cached(texts[-1], (), "X")
        assert not compiled
        compile_cached(texts[0], (), "X")
        assert compiled == texts[:1]

    def test_very_large_names_are_not_cached(self) -> None:
        compile_cached, compiled = self.compiler()
        for _ in range(2):
            compile_cached("a", (("#a", "x" * 60_000),), "X")
        assert len(compiled) == 2


def test_a_refusal_that_is_kept_keeps_nothing_of_the_requests() -> None:
    condition = compile_condition("attribute_type(a, b)", {})
    values = _Values()
    gone = ref(values)
    with pytest.raises(ValidationException):
        condition.check(values)
    del values
    gc.collect()
    assert gone() is None


class _Values(dict[str, dict[str, str]]):
    """A dict that a weak reference can be made to."""


def test_a_candidate_that_is_repeated_is_looked_at_once() -> None:
    large, other = ({"L": [{"N": "1"} for _ in range(50_000)]} for _ in range(2))
    other["L"][-1] = {"N": "2"}
    condition = compile_condition(" OR ".join(["a IN (" + ",".join([":v"] * 100) + ")"] * 10), {})
    started = process_time()
    assert not condition.holds({"a": large}, {":v": other})
    assert process_time() - started < 1
