"""InputPath, Parameters, ResultSelector, ResultPath, OutputPath, the context object, variables.

The cases follow the examples of the States Language specification and of the developer guide.
"""

from __future__ import annotations

from typing import Any

import pytest

from .machines import ARN, echoes, fails, gives, machine_of, play, task

ORDER = {"title": "Numbers to add", "numbers": {"val1": 3, "val2": 4}, "list": [1, 2, 3]}
EMPTY: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("fields", "input", "output"),
    [
        ({}, ORDER, ORDER),
        ({"InputPath": "$.numbers"}, ORDER, {"val1": 3, "val2": 4}),
        ({"InputPath": None}, ORDER, EMPTY),
        ({"OutputPath": "$.title"}, ORDER, "Numbers to add"),
        ({"OutputPath": None}, ORDER, EMPTY),
        (
            {"Result": {"x": 0.381018, "y": 622.2269926397355}},
            ORDER,
            {"x": 0.381018, "y": 622.2269926397355},
        ),
        ({"Result": 7, "ResultPath": "$.sum"}, ORDER, {**ORDER, "sum": 7}),
        (
            {"Result": 7, "ResultPath": "$.numbers.sum"},
            {"numbers": {"a": 1}},
            {"numbers": {"a": 1, "sum": 7}},
        ),
        ({"Result": 7, "ResultPath": "$.new.deep.sum"}, EMPTY, {"new": {"deep": {"sum": 7}}}),
        ({"Result": 7, "ResultPath": "$.list[1]"}, {"list": [1, 2]}, {"list": [1, 7]}),
        ({"Result": 7, "ResultPath": None}, ORDER, ORDER),
        ({"Result": 7, "ResultPath": "$"}, ORDER, 7),
        ({"Result": {"a": 1}, "ResultPath": "$['a b']", "OutputPath": "$['a b'].a"}, EMPTY, 1),
        ({"Result": {"not.$": "$.a path"}}, EMPTY, {"not.$": "$.a path"}),
        ({"Result": None}, ORDER, None),
        (
            {"Parameters": {"flag": True, "vals.$": "$.list"}},
            ORDER,
            {"flag": True, "vals": [1, 2, 3]},
        ),
        (
            {"Parameters": {"a": [{"b.$": "$.title"}, 1]}},
            ORDER,
            {"a": [{"b": "Numbers to add"}, 1]},
        ),
        ({"InputPath": "$.numbers", "Parameters": {"v.$": "$.val2"}}, ORDER, {"v": 4}),
        (
            {"Parameters": {"all.$": "$.list[*]", "few.$": "$.list[0:2]"}},
            ORDER,
            {"all": [1, 2, 3], "few": [1, 2]},
        ),
        ({"Parameters": {"none.$": "$.list[?(@ > 7)]"}}, ORDER, {"none": []}),
        ({"Parameters": {"id.$": "$$.Execution.Id"}}, EMPTY, {"id": ARN}),
        ({"Parameters": {"in.$": "$$.Execution.Input.title"}}, ORDER, {"in": "Numbers to add"}),
        ({"Parameters": {"name.$": "$$.State.Name"}}, EMPTY, {"name": "A"}),
        ({"InputPath": "$$.StateMachine.Name"}, ORDER, "machine"),
    ],
)
def test_a_pass_state_shapes_its_data(fields: dict[str, Any], input: Any, output: Any) -> None:
    assert play(machine_of({"Type": "Pass", **fields}), input).output == output


def test_a_task_goes_through_every_field_in_order() -> None:
    definition = machine_of(
        task(
            InputPath="$.numbers",
            Parameters={"x.$": "$.val1", "y": 2},
            ResultSelector={"sum.$": "$.Payload.sum"},
            ResultPath="$.answer",
            OutputPath="$.answer",
        )
    )
    story = play(definition, ORDER, {"A": gives({"Payload": {"sum": 5}, "Status": 200})})
    assert story.tasks[0].input == {"x": 3, "y": 2}
    assert story.output == {"sum": 5}


def test_the_result_is_placed_into_the_raw_input_and_not_into_the_effective_one() -> None:
    definition = machine_of(task(InputPath="$.numbers", ResultPath="$.sum"))
    assert play(definition, ORDER, {"A": gives(7)}).output == {**ORDER, "sum": 7}


@pytest.mark.parametrize(
    ("state", "input", "error", "cause"),
    [
        (
            {"Type": "Pass", "Parameters": {"address.$": "$.application.address"}},
            {"flagged": False},
            "States.Runtime",
            "An error occurred while executing the state 'A' (entered at the event id #2). The "
            "JSONPath '$.application.address' specified for the field 'address.$' could not be "
            "found in the input '{\"flagged\":false}'",
        ),
        ({"Type": "Pass", "InputPath": "$.a"}, {}, "States.Runtime", "Invalid path '$.a'"),
        ({"Type": "Pass", "OutputPath": "$.a"}, {}, "States.Runtime", "Invalid path '$.a'"),
        ({"Type": "Pass", "Parameters": {"a.$": "$x"}}, {}, "States.Runtime", "'$x'"),
        (
            {"Type": "Pass", "ResultPath": "$.a.b"},
            {"a": 1},
            "States.ResultPathMatchFailure",
            "$.a.b",
        ),
        (
            {"Type": "Pass", "ResultPath": "$.a[3]"},
            {"a": []},
            "States.ResultPathMatchFailure",
            "$.a[3]",
        ),
        ({"Type": "Pass", "ResultPath": "$.a"}, "text", "States.ResultPathMatchFailure", "$.a"),
        ({"Type": "Wait", "SecondsPath": "$.s"}, {"s": "ten"}, "States.Runtime", '"ten"'),
        ({"Type": "Wait", "SecondsPath": "$.s"}, {"s": 1.5}, "States.Runtime", "1.5"),
        ({"Type": "Wait", "TimestampPath": "$.s"}, {"s": "today"}, "States.Runtime", '"today"'),
        ({"Type": "Fail", "ErrorPath": "$.nope"}, {}, "States.Runtime", "'ErrorPath'"),
        ({"Type": "Fail", "CausePath": "$.n"}, {"n": 1}, "States.Runtime", "'Cause'"),
    ],
)
def test_data_that_does_not_fit_fails_the_state(
    state: dict[str, Any], input: Any, error: str, cause: str
) -> None:
    story = play(machine_of(state), input)
    assert story.error == error
    assert cause in (story.cause or "")


@pytest.mark.parametrize(
    ("fields", "input", "error", "cause"),
    [
        ({}, {}, None, None),
        ({"Error": "ErrorA", "Cause": "Kaiju attack"}, {}, "ErrorA", "Kaiju attack"),
        ({"ErrorPath": "$.e", "CausePath": "$.c"}, {"e": "E", "c": "C"}, "E", "C"),
        ({"Error": "E", "CausePath": "States.Format('no {}', $.x)"}, {"x": 1}, "E", "no 1"),
    ],
)
def test_a_fail_state_ends_with_its_error(
    fields: dict[str, Any], input: Any, error: str | None, cause: str | None
) -> None:
    story = play(machine_of({"Type": "Fail", **fields}), input)
    assert (story.error, story.cause) == (error, cause)


@pytest.mark.parametrize(
    ("fields", "input", "seconds"),
    [
        ({"Seconds": 10}, {}, [10]),
        ({"Seconds": 0}, {}, []),
        ({"SecondsPath": "$.after"}, {"after": 3}, [3]),
        ({"Timestamp": "2023-11-14T22:13:50Z"}, {}, [30]),
        ({"Timestamp": "2023-11-14T23:13:20.500+00:00"}, {}, [3600.5]),
        ({"TimestampPath": "$.at"}, {"at": "2023-11-15T00:13:20+02:00"}, []),
        ({"TimestampPath": "$.at"}, {"at": "1999-01-01T00:00:00Z"}, []),
    ],
)
def test_a_wait_state_waits(fields: dict[str, Any], input: Any, seconds: list[float]) -> None:
    story = play(machine_of({"Type": "Wait", **fields}, {"Type": "Succeed"}), input)
    assert story.output == input
    assert story.waits == seconds


def test_a_succeed_state_may_choose_from_its_input() -> None:
    assert (
        play(machine_of({"Type": "Succeed", "OutputPath": "$.title"}), ORDER).output
        == "Numbers to add"
    )


def test_timeouts_and_heartbeats_come_from_fields_or_paths() -> None:
    definition = machine_of(
        task(TimeoutSeconds=300, HeartbeatSeconds=60),
        task(TimeoutSecondsPath="$.timeout", HeartbeatSecondsPath="$.beat"),
    )
    first, second = play(definition, {"timeout": 9, "beat": 3}).tasks
    assert (first.timeout_seconds, first.heartbeat_seconds) == (300, 60)
    assert (second.timeout_seconds, second.heartbeat_seconds) == (9, 3)


def test_variables_are_assigned_from_the_result_and_last() -> None:
    definition = machine_of(
        task(ResultPath=None, Assign={"sum.$": "$.sum", "fixed": 1}),
        {"Type": "Pass", "Parameters": {"sum.$": "$sum", "deep.$": "$fixed"}},
    )
    assert play(definition, ORDER, {"A": gives({"sum": 5})}).output == {"sum": 5, "deep": 1}


def test_variables_of_one_assign_see_the_values_of_before() -> None:
    definition = machine_of(
        {"Type": "Pass", "Assign": {"x": 1, "y": 2}},
        {"Type": "Pass", "Assign": {"x.$": "$y", "y.$": "$x"}},
        {"Type": "Pass", "Parameters": {"x.$": "$x", "y.$": "$y"}},
    )
    assert play(definition).output == {"x": 2, "y": 1}


def test_variables_have_paths_of_their_own() -> None:
    definition = machine_of(
        {"Type": "Pass", "Assign": {"all": {"list": [1, {"a": 2}]}}},
        {"Type": "Pass", "Parameters": {"a.$": "$all.list[1].a", "n.$": "$all.list.length()"}},
    )
    assert play(definition).output == {"a": 2, "n": 2}


def test_a_catcher_assigns_from_the_error_output() -> None:
    definition = machine_of(
        task(
            Catch=[
                {
                    "ErrorEquals": ["E"],
                    "ResultPath": None,
                    "Assign": {"why.$": "$.Cause"},
                    "Next": "B",
                }
            ]
        ),
        {"Type": "Pass", "Parameters": {"why.$": "$why", "input.$": "$.title"}},
    )
    story = play(definition, ORDER, {"A": fails("E", "because")})
    assert story.output == {"why": "because", "input": "Numbers to add"}


def test_a_token_is_in_the_context_of_a_task_that_waits_for_it() -> None:
    definition = machine_of(
        {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "Parameters": {"Payload": {"token.$": "$$.Task.Token"}},
        }
    )
    story = play(definition, {}, {"A": echoes})
    token = story.tasks[0].token
    assert token
    assert story.output == {"Payload": {"token": token}}


@pytest.mark.parametrize("size", [256 * 1024 - 2, 256 * 1024 - 1])
def test_a_result_may_have_256_kb(size: int) -> None:
    # Two more bytes are the quotes.
    story = play(machine_of(task()), {}, {"A": gives("x" * size)})
    if size == 256 * 1024 - 2:
        assert story.output == "x" * size
    else:
        assert story.error == "States.DataLimitExceeded"
        assert "exceeding the maximum number of bytes" in (story.cause or "")


def test_bytes_are_counted_and_not_characters() -> None:
    story = play(machine_of(task()), {}, {"A": gives("ü" * 140_000)})
    assert story.error == "States.DataLimitExceeded"


def test_a_template_that_grows_beyond_256_kb_fails() -> None:
    grown = {f"{name}.$": "$.text" for name in "abc"}
    story = play(machine_of({"Type": "Pass", "Parameters": grown}), {"text": "x" * 100_000})
    assert story.error == "States.DataLimitExceeded"
