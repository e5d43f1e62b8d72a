"""Choice states: every comparison, on values that match, do not match, or are of another type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .machines import machine_of, play

EARLY, LATE = "2016-03-14T01:59:00Z", "2017-03-14T01:59:00Z"


def takes(rule: dict[str, Any], input: Any) -> bool:
    """True when the rule matches."""
    definition = machine_of(
        {"Type": "Choice", "Choices": [{**rule, "Next": "B"}], "Default": "C"},
        {"Type": "Pass", "Result": True, "End": True},
        {"Type": "Pass", "Result": False},
    )
    output = play(definition, input).output
    assert isinstance(output, bool)
    return output


def is_v(operator: str, operand: Any) -> dict[str, Any]:
    return {"Variable": "$.v", operator: operand}


@pytest.mark.parametrize(
    ("operator", "operand", "matching", "other"),
    [
        ("StringEquals", "b", ["b"], ["a", "B", 1, None, True, ["b"]]),
        ("StringLessThan", "b", ["a", "A", ""], ["b", "c", 1, None]),
        ("StringGreaterThan", "b", ["c", "ba", "ü"], ["b", "a", 3]),
        ("StringLessThanEquals", "b", ["a", "b"], ["c", 1]),
        ("StringGreaterThanEquals", "b", ["c", "b"], ["a", 1]),
        ("NumericEquals", 20, [20, 20.0], [21, "20", None, True]),
        ("NumericEquals", 1, [1], [True]),
        ("NumericLessThan", 20, [19, 19.99, -1], [20, "19"]),
        ("NumericGreaterThan", 20, [21, 1e300], [20, "21"]),
        ("NumericLessThanEquals", 20, [20, 19], [20.5]),
        ("NumericGreaterThanEquals", 20, [20, 30], [19.5]),
        ("BooleanEquals", True, [True], [False, 1, "true", None]),
        ("BooleanEquals", False, [False], [True, 0, "", None]),
        ("TimestampEquals", EARLY, [EARLY, "2016-03-14T02:59:00+01:00"], [LATE, "now", 1]),
        ("TimestampLessThan", LATE, [EARLY], [LATE, "0000", "2016-03-14 01:59:00Z"]),
        ("TimestampGreaterThan", EARLY, [LATE, "2016-03-14T01:59:00.001Z"], [EARLY]),
        ("TimestampLessThanEquals", EARLY, [EARLY], [LATE]),
        ("TimestampGreaterThanEquals", LATE, [LATE], [EARLY]),
        ("IsNull", True, [None], [0, "", False, []]),
        ("IsNull", False, [0, ""], [None]),
        ("IsNumeric", True, [0, 1.5], ["0", True, None]),
        ("IsString", True, ["", "a"], [1, None]),
        ("IsBoolean", True, [True, False], [0, "true", None]),
        ("IsTimestamp", True, [EARLY, LATE], ["2016-03-14", "2016-03-14t01:59:00z", 1]),
        ("IsPresent", True, [None, 1, ""], []),
        ("StringMatches", "log-*.txt", ["log-.txt", "log-a.b.txt"], ["log-.txt2", "Log-.txt", 1]),
        ("StringMatches", "*", ["", "anything\nat all"], [1]),
        ("StringMatches", "*a*b*", ["ab", "xaybz", "aab"], ["ba", "a"]),
        ("StringMatches", "a*a", ["aa", "aba"], ["a"]),
        ("StringMatches", r"a\*b", ["a*b"], ["axb", r"a\*b"]),
        ("StringMatches", r"a\\*", ["a\\", "a\\b"], ["a", "ab"]),
        ("StringMatches", "a.c", ["a.c"], ["abc"]),
    ],
)
def test_a_comparison_holds_for_values_of_its_type(
    operator: str, operand: Any, matching: list[Any], other: list[Any]
) -> None:
    rule = is_v(operator, operand)
    assert [takes(rule, {"v": value}) for value in matching] == [True] * len(matching)
    assert [takes(rule, {"v": value}) for value in other] == [False] * len(other)


@pytest.mark.parametrize(
    ("operator", "value", "operand"),
    [
        ("StringEqualsPath", "a", "a"),
        ("StringLessThanPath", "a", "b"),
        ("NumericGreaterThanPath", 3, 2),
        ("NumericLessThanEqualsPath", 2, 2),
        ("BooleanEqualsPath", False, False),
        ("TimestampLessThanPath", EARLY, LATE),
    ],
)
def test_a_comparison_may_take_its_operand_from_the_input(
    operator: str, value: Any, operand: Any
) -> None:
    rule = is_v(operator, "$.other")
    assert takes(rule, {"v": value, "other": operand})
    assert not takes(rule, {"v": value, "other": {}})


def test_is_present_does_not_need_the_value() -> None:
    assert not takes(is_v("IsPresent", True), {})
    assert takes(is_v("IsPresent", False), {})
    assert not takes(is_v("IsPresent", False), {"v": None})


def test_rules_are_put_together() -> None:
    present, small = is_v("IsPresent", True), is_v("NumericLessThan", 10)
    guarded = {"And": [present, small]}
    assert [takes(guarded, value) for value in ({}, {"v": 5}, {"v": 15})] == [False, True, False]
    either = {"Or": [{"Not": present}, small]}
    assert [takes(either, value) for value in ({}, {"v": 5}, {"v": 15})] == [True, True, False]
    nested = {"Not": {"And": [present, {"Or": [small, is_v("NumericEquals", 99)]}]}}
    assert [takes(nested, {"v": value}) for value in (5, 50, 99)] == [False, True, False]


def test_the_context_object_and_variables_can_be_compared() -> None:
    assert takes({"Variable": "$$.Execution.Name", "StringEquals": "run"}, {})
    definition = machine_of(
        {"Type": "Pass", "Assign": {"limit": 3}},
        {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericLessThanPath": "$limit", "Next": "C"}],
        },
        {"Type": "Succeed"},
    )
    assert play(definition, {"n": 2}).status == "SUCCEEDED"


def test_the_first_rule_that_holds_is_taken() -> None:
    definition = machine_of(
        {
            "Type": "Choice",
            "Choices": [
                {**is_v("NumericGreaterThan", 10), "Next": "B"},
                {**is_v("NumericGreaterThan", 5), "Next": "C"},
            ],
            "Default": "D",
        },
        {"Type": "Pass", "Result": "first", "End": True},
        {"Type": "Pass", "Result": "second", "End": True},
        {"Type": "Pass", "Result": "default"},
    )
    outputs = [play(definition, {"v": value}).output for value in (11, 6, 1)]
    assert outputs == ["first", "second", "default"]


def test_a_choice_that_matches_nothing_fails() -> None:
    definition = machine_of(
        {"Type": "Choice", "Choices": [{**is_v("IsNull", True), "Next": "B"}]}, {"Type": "Succeed"}
    )
    story = play(definition, {"v": 1})
    assert story.error == "States.NoChoiceMatched"
    assert "does not point to a next state" in (story.cause or "")


def test_a_variable_that_is_missing_fails_the_execution() -> None:
    definition = machine_of(
        {"Type": "Choice", "Choices": [{**is_v("IsNull", True), "Next": "B"}], "Default": "B"},
        {"Type": "Succeed"},
    )
    story = play(definition, {})
    assert story.error == "States.Runtime"
    assert "Invalid path '$.v'" in (story.cause or "")


def test_a_rule_that_is_taken_assigns_its_own_variables() -> None:
    definition = machine_of(
        {
            "Type": "Choice",
            "Choices": [{**is_v("NumericEquals", 1), "Assign": {"x.$": "$.v"}, "Next": "B"}],
            "Default": "B",
            "Assign": {"x": "default"},
        },
        {"Type": "Pass", "Parameters": {"x.$": "$x"}},
    )
    assert play(definition, {"v": 1}).output == {"x": 1}
    assert play(definition, {"v": 2}).output == {"x": "default"}


@given(st.text(alphabet="ab*\\", max_size=12), st.text(alphabet="ab*\\", max_size=12))
def test_string_matches_agrees_with_a_slow_and_simple_match(pattern: str, value: str) -> None:
    assert takes(is_v("StringMatches", pattern), {"v": value}) == slow_match(pattern, value)


def slow_match(pattern: str, value: str) -> bool:
    if not pattern:
        return not value
    if pattern[0] == "*":
        return any(slow_match(pattern[1:], value[skip:]) for skip in range(len(value) + 1))
    is_escape = pattern[0] == "\\" and pattern[1:2] in ("*", "\\") and len(pattern) > 1
    literal, rest = (pattern[1], pattern[2:]) if is_escape else (pattern[0], pattern[1:])
    return value[:1] == literal and slow_match(rest, value[1:])
