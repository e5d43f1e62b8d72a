"""JSONata as the query language of a machine, and of some of its states."""

from __future__ import annotations

from typing import Any

import pytest

from .machines import (
    ARN,
    Story,
    fails,
    gives,
    machine_of,
    play,
    task,
)


def play_jsonata(*states: dict[str, Any], input: Any = None, **answers: Any) -> Story:
    return play(machine_of(*states, QueryLanguage="JSONata"), input, answers)


def value_of(expression: Any, input: Any = None) -> Any:
    return play_jsonata({"Type": "Pass", "Output": expression}, input=input).output


@pytest.mark.parametrize(
    ("template", "output"),
    [
        ("{% $states.input.a %}", 1),
        ("{% $states.input %}", {"a": 1, "list": [3, 1, 2], "nothing": None}),
        ("{%$states.input.a+1%}", 2),
        (
            {"sum": "{% $sum($states.input.list) %}", "n": 5, "b": [True, "{% 'x' & 'y' %}"]},
            {"sum": 6, "n": 5, "b": [True, "xy"]},
        ),
        (" {% $states.input.a %}", " {% $states.input.a %}"),
        ("$states.input.a", "$states.input.a"),
        ({"a.$": "$.a"}, {"a.$": "$.a"}),
        ("{% $states.input.nothing %}", None),
        ("{% $sort($states.input.list) %}", [1, 2, 3]),
        ("{% $states.context.Execution.Id %}", ARN),
        ("{% $states.context.State.Name %}", "A"),
        ("{% $partition([1,2,3,4,5], 2) %}", [[1, 2], [3, 4], [5]]),
        ("{% $range(0, 9, 3) %}", [0, 3, 6, 9]),
        ("{% $hash('input data', 'SHA-1') %}", "aaff4a450a104cd177d28d18d74485e8cae074b7"),
        ("{% $parse('{\"a\": [1]}') %}", {"a": [1]}),
        ("{% $pad('x', -3, '#') & $pad('y', 3) %}", "##xy  "),
        ("{% $random(7) = $random(7) %}", True),
        ("{% $length($uuid()) %}", 36),
        ("{% $now() %}", "2023-11-14T22:13:20.000Z"),
        ("{% $millis() %}", 1_700_000_000_000),
        ("{% $now('[Y0001]-[M01]') %}", "2023-11"),
        ("{% $match('ab12', /[0-9]+/).match %}", "12"),
    ],
)
def test_the_value_of_an_output(template: Any, output: Any) -> None:
    assert value_of(template, {"a": 1, "list": [3, 1, 2], "nothing": None}) == output


def test_without_an_output_a_pass_state_hands_on_its_input_and_a_task_its_result() -> None:
    assert play_jsonata({"Type": "Pass"}, input={"a": 1}).output == {"a": 1}
    assert play_jsonata(task(), input={"a": 1}, A=gives("result")).output == "result"


def test_a_task_takes_arguments_and_shapes_its_result() -> None:
    story = play_jsonata(
        task(
            Arguments={"x": "{% $states.input.n * 2 %}"},
            Output={"was": "{% $states.input.n %}", "is": "{% $states.result.y %}"},
            TimeoutSeconds="{% $states.input.n + 1 %}",
        ),
        input={"n": 4},
        A=gives({"y": "z"}),
    )
    assert story.tasks[0].input == {"x": 8}
    assert story.tasks[0].timeout_seconds == 5
    assert story.output == {"was": 4, "is": "z"}


def test_variables_are_assigned_together_and_kept() -> None:
    story = play_jsonata(
        task(Assign={"x": "{% $states.result %}", "y": 2}, Output="{% $states.input %}"),
        {"Type": "Pass", "Assign": {"x": "{% $y %}", "y": "{% $x %}"}, "Output": "{% [$x, $y] %}"},
        {"Type": "Pass", "Output": {"before": "{% $states.input %}", "after": "{% [$x, $y] %}"}},
        A=gives(1),
    )
    assert story.output == {"before": [1, 2], "after": [2, 1]}


def test_a_choice_takes_the_first_condition_that_holds() -> None:
    def chosen(n: int) -> Any:
        return play_jsonata(
            {
                "Type": "Choice",
                "Choices": [
                    {"Condition": "{% $states.input.n > 10 %}", "Next": "B", "Output": "large"},
                    {"Condition": "{% $states.input.n > 5 %}", "Next": "B", "Assign": {"m": 1}},
                ],
                "Default": "B",
                "Output": "{% 'default ' & $states.input.n %}",
            },
            {"Type": "Pass", "Output": "{% [$states.input, $exists($m)] %}"},
            input={"n": n},
        ).output

    assert chosen(11) == ["large", False]
    assert chosen(6) == [{"n": 6}, True]
    assert chosen(1) == ["default 1", False]


def test_waits_and_failures_are_computed() -> None:
    story = play_jsonata(
        {"Type": "Wait", "Seconds": "{% $states.input.s %}"},
        {"Type": "Wait", "Timestamp": "{% $states.input.t %}"},
        {
            "Type": "Fail",
            "Error": "{% $states.input.e %}",
            "Cause": "{% 'no ' & $states.input.s %}",
        },
        input={"s": 5, "t": "2023-11-14T22:13:30Z", "e": "Broken"},
    )
    assert story.waits == [5, 5]
    assert (story.error, story.cause) == ("Broken", "no 5")


def test_a_catcher_sees_the_error_output() -> None:
    story = play_jsonata(
        task(
            Catch=[
                {
                    "ErrorEquals": ["States.ALL"],
                    "Next": "B",
                    "Output": {
                        "why": "{% $states.errorOutput.Cause %}",
                        "in": "{% $states.input %}",
                    },
                    "Assign": {"name": "{% $states.errorOutput.Error %}"},
                }
            ]
        ),
        {"Type": "Pass", "Output": "{% $merge([$states.input, {'name': $name}]) %}"},
        input=1,
        A=fails("E", "because"),
    )
    assert story.output == {"why": "because", "in": 1, "name": "E"}


def test_a_map_state_computes_its_items() -> None:
    processor = {
        "StartAt": "P",
        "States": {"P": {"Type": "Pass", "Output": "{% $states.input.v * $factor %}", "End": True}},
    }
    story = play_jsonata(
        {"Type": "Pass", "Assign": {"factor": 10}},
        {
            "Type": "Map",
            "Items": "{% $states.input.list[$ > 1] %}",
            "ItemSelector": {
                "v": "{% $states.context.Map.Item.Value %}",
                "i": "{% $states.context.Map.Item.Index %}",
            },
            "MaxConcurrency": "{% 1 + 1 %}",
            "ItemProcessor": processor,
            "Output": "{% $sum($states.result) %}",
        },
        input={"list": [1, 2, 3]},
    )
    assert story.output == 50


def test_a_map_state_may_go_over_an_object() -> None:
    processor = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    story = play_jsonata(
        {
            "Type": "Map",
            "Items": "{% $states.input %}",
            "ItemSelector": "{% $states.context.Map.Item.Key & $states.context.Map.Item.Value %}",
            "ItemProcessor": processor,
        },
        input={"a": 1, "b": 2},
    )
    assert story.output == ["a1", "b2"]


def test_branches_take_arguments() -> None:
    one = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    two = {
        "StartAt": "Q",
        "States": {"Q": {"Type": "Pass", "Output": "{% $states.input.x + 1 %}", "End": True}},
    }
    story = play_jsonata(
        {"Type": "Parallel", "Branches": [one, two], "Arguments": {"x": "{% $states.input %}"}},
        input=1,
    )
    assert story.output == [{"x": 1}, 2]


def test_a_state_of_a_jsonpath_machine_may_use_jsonata() -> None:
    definition = machine_of(
        {"Type": "Pass", "Parameters": {"a.$": "$.x"}, "Assign": {"v.$": "$.a"}},
        {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% $states.input.a + $v %}"},
        {"Type": "Pass", "Parameters": {"sum.$": "$", "v.$": "$v"}},
    )
    assert play(definition, {"x": 2}).output == {"sum": 4, "v": 2}


@pytest.mark.parametrize(
    ("state", "location", "reason"),
    [
        (
            {"Type": "Pass", "Output": {"v": "{% $states.input.missing %}"}},
            "Output/v",
            "An error occurred while executing the state 'A' (entered at the event id #2). The "
            "JSONata expression '$states.input.missing' specified for the field 'Output/v' "
            "returned nothing (undefined).",
        ),
        ({"Type": "Pass", "Output": {"a": [1, "{% $x %}"]}}, "Output/a[1]", "undefined"),
        ({"Type": "Pass", "Assign": {"x": "{% 1 + 'a' %}"}}, "Assign/x", "T2002"),
        ({"Type": "Wait", "Seconds": "{% 'x' %}"}, "Seconds", '"x"'),
        ({"Type": "Wait", "Seconds": "{% -1 %}"}, "Seconds", "-1"),
        ({"Type": "Wait", "Timestamp": "{% 'soon' %}"}, "Timestamp", '"soon"'),
        ({"Type": "Fail", "Error": "{% 1 %}"}, "Error", "string"),
        ({"Type": "Pass", "Output": "{% $eval('1') %}"}, "Output", "$eval is not available"),
        ({"Type": "Pass", "Output": "{% $partition([1], 0) %}"}, "Output", "positive"),
        ({"Type": "Pass", "Output": "{% $range(1, 5000, 1) %}"}, "Output", "1000"),
        ({"Type": "Pass", "Output": "{% $parse('oops') %}"}, "Output", "threw an error"),
        ({"Type": "Pass", "Output": "{% $pad('x', 1000000000) %}"}, "Output", "width"),
        ({"Type": "Pass", "Output": "{% $hash('x', 'ROT13') %}"}, "Output", "SHA-256"),
        ({"Type": "Pass", "Output": "{% $error('own words') %}"}, "Output", "own words"),
        ({"Type": "Pass", "Output": "{% ($f := function(){$f()}; $f()) %}"}, "Output", "threw"),
    ],
)
def test_an_expression_that_fails_fails_the_state(
    state: dict[str, Any], location: str, reason: str
) -> None:
    story = play_jsonata(state, input={})
    assert story.error == "States.QueryEvaluationError"
    assert reason in (story.cause or "")
    failed = story.events[-2]
    assert failed["type"] == "EvaluationFailed"
    assert failed["evaluationFailedEventDetails"] == {
        "error": story.error,
        "cause": story.cause,
        "location": location,
        "state": "A",
    }


def test_a_condition_that_is_no_boolean_fails() -> None:
    story = play_jsonata(
        {"Type": "Choice", "Choices": [{"Condition": "{% 1 %}", "Next": "B"}]}, {"Type": "Succeed"}
    )
    assert story.error == "States.QueryEvaluationError"
    assert "Expected 'boolean', but was 'number'" in (story.cause or "")


def test_a_failed_expression_of_a_task_is_caught() -> None:
    story = play_jsonata(
        task(
            Arguments="{% $states.input.no %}",
            Catch=[{"ErrorEquals": ["States.QueryEvaluationError"], "Next": "B"}],
        ),
        {"Type": "Pass", "Output": "{% $states.input.Error %}"},
        input={},
    )
    assert story.output == "States.QueryEvaluationError"


def test_numbers_beyond_64_bits_become_doubles() -> None:
    assert value_of("{% $states.input.n %}", {"n": 10**25}) == 1e25


def test_a_jsonata_state_hands_on_exact_numbers_that_it_does_not_compute() -> None:
    big = 2**60 + 1
    assert play_jsonata({"Type": "Pass"}, input={"n": big}).output == {"n": big}


def test_what_comes_in_as_data_is_never_evaluated() -> None:
    code = "{% $states.context %}"
    processor = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    story = play_jsonata(
        task(),
        {"Type": "Map", "ItemProcessor": processor},
        input=[code],
        A=gives([code, {"a": code}]),
    )
    assert story.output == [code, {"a": code}]
