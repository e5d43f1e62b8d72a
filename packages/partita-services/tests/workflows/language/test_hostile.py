"""Definitions and data that were made to hang, to fill the memory, or to break something."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita_services.workflows.language import InvalidDefinition, diagnose, parse

from .machines import PREDEFINED, machine_of, play, task

SECONDS_MAX = 10
"""Far more than any of these takes; far less than what they were made to take."""


def nested(levels: int, value: Any = 1) -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.fixture(autouse=True)
def in_time() -> Any:
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS_MAX


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"States":' * 50_000,
        '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true, "Result": '
        + "[" * 500
        + "]" * 500
        + "}}}",
        '"' + "x" * 2_000_000 + '"',
        "\x00",
        "\ud800",
        b"\xff\xfe",
        b"{}\x00",
    ],
)
def test_texts_that_are_no_definitions_are_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidDefinition):
        parse(text)


def test_deeply_nested_branches_are_refused() -> None:
    inner: dict[str, Any] = {"StartAt": "S", "States": {"S": {"Type": "Succeed"}}}
    for level in range(200):
        state = {"Type": "Parallel", "Branches": [inner], "End": True}
        inner = {"StartAt": f"P{level}", "States": {f"P{level}": state}}
    assert "nested deeper" in str(diagnose(inner)[0])


def test_branches_that_are_nested_as_deep_as_allowed_run() -> None:
    inner: dict[str, Any] = {"StartAt": "S", "States": {"S": {"Type": "Pass", "End": True}}}
    for level in range(23):
        state = {"Type": "Parallel", "Branches": [inner], "End": True}
        inner = {"StartAt": f"P{level}", "States": {f"P{level}": state}}
    output = play(inner, {"x": 1}).output
    assert str(output) == "[" * 23 + "{'x': 1}" + "]" * 23


def test_a_rule_of_many_rules_is_refused_or_decided() -> None:
    rule: dict[str, Any] = {"Variable": "$.a", "IsPresent": True}
    for _ in range(300):
        rule = {"Not": rule}
    definition = machine_of(
        {"Type": "Choice", "Choices": [{**rule, "Next": "B"}]}, {"Type": "Succeed"}
    )
    assert "nested deeper" in str(diagnose(definition)[0])


@pytest.mark.parametrize(
    "path",
    [
        "$" + ".a" * 10_000,
        "$" + "[0]" * 10_000,
        "$" + "..*" * 20,
        "$" + "..a" * 200,
        "$[?" + "(" * 500 + "@.a" + ")" * 500 + "]",
        "$[?" + "!" * 5000 + "@.a]",
        "$['" + "\\" * 9_999 + "']",
        "$[99999999999999999999999]",
        "$[0:99999999999:1]",
        "$.a" + "[?@.a" * 100 + "]" * 100,
    ],
)
def test_paths_that_are_long_deep_or_look_everywhere(path: str) -> None:
    definition = machine_of({"Type": "Pass", "InputPath": path})
    if diagnose(definition):
        return
    story = play(definition, nested(80, [{"a": number} for number in range(100)]))
    assert story.status == "SUCCEEDED" or story.error in PREDEFINED


def test_a_path_that_multiplies_its_matches_is_stopped() -> None:
    story = play(machine_of({"Type": "Pass", "InputPath": "$" + "..*" * 4}), nested(150))
    assert story.error == "States.Runtime"


@pytest.mark.parametrize(
    "expression",
    [
        "($f := function($n) { $f($n + 1) }; $f(0))",
        "$map([1..999999], function($v) { $map([1..999999], function($w) { $w }) })",
        "$pad('x', 4000000000)",
        "$join([1..5000000].('x'))",
        "$match('" + "a" * 40 + "b', /(a+)+$/)",
        "$replace('aaa', /a*/, 'b')",
        "1e308 * 10",
        "0 / 0",
        "$number('1e999')",
        "$string(function($x) { $x })",
        "$lookup({}, 'a')",
        "(" * 300 + "1" + ")" * 300,
    ],
)
def test_expressions_of_jsonata_that_do_not_end_or_have_no_value(expression: str) -> None:
    definition = machine_of(
        {"Type": "Pass", "Output": "{% " + expression + " %}"}, QueryLanguage="JSONata"
    )
    if diagnose(definition):
        return
    story = play(definition)
    assert story.status == "SUCCEEDED" or story.error in PREDEFINED


def test_data_that_is_nested_as_deep_as_json_can_be() -> None:
    definition = machine_of(
        {"Type": "Pass", "Parameters": {"v.$": "States.ArrayContains($.list, $.deep)"}},
    )
    story = play(definition, {"list": [nested(400), nested(400)], "deep": nested(400)})
    assert story.status == "SUCCEEDED" or story.error in PREDEFINED


def test_a_pattern_of_many_stars_is_decided_at_once() -> None:
    definition = machine_of(
        {
            "Type": "Choice",
            "Choices": [{"Variable": "$.v", "StringMatches": "*a" * 5000 + "b", "Next": "B"}],
            "Default": "B",
        },
        {"Type": "Succeed"},
    )
    assert play(definition, {"v": "a" * 50_000}).status == "SUCCEEDED"


def test_numbers_of_any_size_pass_through() -> None:
    data = {"n": 10**4000, "m": -(10**30), "f": 5e-324, "z": -0.0}
    assert play(machine_of({"Type": "Pass", "Parameters": {"all.$": "$"}}), data).output == {
        "all": data
    }


@pytest.mark.parametrize(
    ("fields", "n"),
    [
        ({"Parameters": {"v.$": "States.MathAdd($.n, 1)"}}, 10**4200),
        ({"Parameters": {"v.$": "States.ArrayRange(0, $.n, 1)"}}, 1e308),
        ({"Parameters": {"v.$": "States.ArrayPartition(States.Array(1), $.n)"}}, 10**400),
        ({"Parameters": {"v.$": "States.ArrayGetItem(States.Array(1), $.n)"}}, -1e308),
        ({"QueryLanguage": "JSONata", "Output": "{% $states.input.n + 1 %}"}, 10**4200),
        ({"QueryLanguage": "JSONata", "Output": "{% $range(0, $states.input.n, 1) %}"}, 1e308),
    ],
)
def test_numbers_that_are_too_large_to_count_with_fail_the_state(
    fields: dict[str, Any], n: Any
) -> None:
    story = play(machine_of({"Type": "Pass", **fields}), {"n": n})
    assert story.error in ("States.IntrinsicFailure", "States.QueryEvaluationError")


def test_names_and_values_of_any_script_pass_through() -> None:
    data = {"\u0000": "\U0001f600", "": [""], "$": "$", "a.$": "$.a", "\u202e": "\n"}
    assert play(machine_of({"Type": "Pass", "InputPath": "$"}, task()), data).output == data


definitions = st.recursive(
    st.sampled_from(
        [
            *("A", "B", "$.a", "$$", "Pass", "Task", "Map", "Choice", "Parallel", "Wait", "Fail"),
            *("States.ALL", "{% $x %}", "JSONata", "States.Format('{}', $.a)", "", "INLINE"),
            *(True, False, None, 0, 1, -1, 2.5),
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("StartAt", "States", "Type", "Next", "End", "A", "B", "Choices", "Variable"),
                    *(
                        "And",
                        "Not",
                        "IsNull",
                        "Default",
                        "Retry",
                        "Catch",
                        "ErrorEquals",
                        "Branches",
                    ),
                    *(
                        "ItemProcessor",
                        "Iterator",
                        "ItemBatcher",
                        "ProcessorConfig",
                        "Mode",
                        "Assign",
                    ),
                    *("QueryLanguage", "Parameters", "Output", "ResultPath", "Resource", "Seconds"),
                    *(
                        "TimeoutSeconds",
                        "HeartbeatSeconds",
                        "MaxDelaySeconds",
                        "JitterStrategy",
                        "Condition",
                    ),
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=300)
@given(definitions)
def test_any_json_is_a_definition_or_refused(definition: Any) -> None:
    try:
        machine = parse({"StartAt": "A", "States": {"A": definition}})
    except InvalidDefinition as error:
        assert error.diagnostics
    else:
        assert list(machine.tasks()) is not None
