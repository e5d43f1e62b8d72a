"""Definitions that are refused, and everything that is said about them."""

from __future__ import annotations

from typing import Any

import pytest

from partita_services.workflows.language import InvalidDefinition, diagnose, parse, strip_comments

from .machines import machine_of, task

PASS = {"Type": "Pass", "End": True}
DISTRIBUTED = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "B",
    "States": {"B": PASS},
}
SCHEMA = "SCHEMA_VALIDATION_FAILED: "


def refusals(definition: Any) -> list[str]:
    return [str(diagnostic) for diagnostic in diagnose(definition)]


def refusal_of(state: dict[str, Any], *more: dict[str, Any], **fields: Any) -> list[str]:
    return refusals(machine_of(state, *more, **fields))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [SCHEMA + "Definition must be a valid JSON object"]),
        ("  \n", [SCHEMA + "Definition must be a valid JSON object"]),
        ("[]", [SCHEMA + "Definition must be a valid JSON object"]),
        ("{}", [SCHEMA + "These fields are required: [States, StartAt] at /"]),
        (
            '{"States": {"A": {"Type": "Succeed"}}}',
            [SCHEMA + "These fields are required: [StartAt] at /"],
        ),
        ('{"StartAt": "A"}', [SCHEMA + "These fields are required: [States] at /"]),
    ],
)
def test_texts_of_the_service(text: str, found: list[str]) -> None:
    assert refusals(text) == found


def test_the_message_of_a_refusal() -> None:
    with pytest.raises(InvalidDefinition) as caught:
        parse({"StartAt": "A"})
    assert str(caught.value) == (
        "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: These fields are required: "
        "[States] at /'"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("not a definition", "line: 1, column: 1"),
        ('{"StartAt": "A",\n  "States": {,}}', "line: 2, column: 14"),
        ('{"TimeoutSeconds": NaN}', "malformed"),
        ('{"TimeoutSeconds": 1e999}', "range"),
        ('{"Comment": "\\ud800"}', ""),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, place: str) -> None:
    [found] = diagnose(text)
    assert found.code == "INVALID_JSON_DESCRIPTION"
    assert place in found.message


def test_everything_that_is_wrong_is_said_at_once() -> None:
    definition = {
        "StartAt": "Nowhere",
        "TimeoutSeconds": "ten",
        "Version": "2.0",
        "States": {
            "A": {"Type": "Pass", "Next": "B", "Colour": "red"},
            "C": {"Type": "Dance"},
            "D": 5,
        },
    }
    assert refusals(definition) == [
        SCHEMA + "Value must be one of: [1.0] at /Version",
        SCHEMA + "The value must be an integer from 1 to 99999999 at /TimeoutSeconds",
        "MISSING_TRANSITION_TARGET: Missing 'StartAt' target: Nowhere at /StartAt",
        SCHEMA + "Field is not supported at /States/A/Colour",
        "MISSING_TRANSITION_TARGET: Missing 'Next' target: B at /States/A/Next",
        SCHEMA
        + "Value must be one of: ['Pass', 'Task', 'Choice', 'Wait', 'Succeed', 'Fail', 'Parallel', "
        "'Map'] at /States/C/Type",
        SCHEMA + "The value must be an object at /States/D",
    ]


def test_states_that_nothing_leads_to_are_refused() -> None:
    definition = {"StartAt": "A", "States": {"A": PASS, "B": {"Type": "Pass", "Next": "A"}}}
    assert refusals(definition) == [
        'MISSING_TRANSITION_TARGET: State "B" is not reachable. at /States/B'
    ]


def test_a_name_is_given_once_in_the_whole_machine() -> None:
    inner = {"StartAt": "A", "States": {"A": PASS}}
    assert refusal_of({"Type": "Parallel", "Branches": [inner]}) == [
        "DUPLICATE_STATE_NAME: Duplicate State name: A at /States/A/Branches[0]/States/A"
    ]


RETRY_ALL = {"ErrorEquals": ["States.ALL"]}


@pytest.mark.parametrize(
    ("state", "message", "place"),
    [
        ({"Type": "Pass", "InputPath": "no path"}, "JSONPath", "/InputPath"),
        ({"Type": "Pass", "InputPath": "States.Array()"}, "JSONPath", "/InputPath"),
        ({"Type": "Pass", "OutputPath": 1}, "JSONPath", "/OutputPath"),
        ({"Type": "Pass", "ResultPath": "$.a[*]"}, "Reference Path", "/ResultPath"),
        ({"Type": "Pass", "ResultPath": "$$.a"}, "Reference Path", "/ResultPath"),
        ({"Type": "Pass", "ResultPath": "$a"}, "Reference Path", "/ResultPath"),
        ({"Type": "Pass", "ResultPath": "$..a"}, "Reference Path", "/ResultPath"),
        ({"Type": "Pass", "Parameters": {"a": {"b.$": 1}}}, "JSONPath", "/Parameters/a/b.$"),
        ({"Type": "Pass", "Parameters": [{"b.$": "x"}]}, "JSONPath", "/Parameters[0]/b.$"),
        ({"Type": "Pass", "ResultSelector": {}}, "not supported", "/ResultSelector"),
        ({"Type": "Pass", "Output": 1}, "not supported", "/Output"),
        ({"Type": "Pass", "Retry": [RETRY_ALL]}, "not supported", "/Retry"),
        ({"Type": "Pass", "Comment": 1}, "string", "/Comment"),
        ({"Type": "Pass", "End": "yes"}, "boolean", "/End"),
        ({"Type": "Pass", "End": False}, "[Next, End]", ""),
        ({"Type": "Pass", "Assign": 1}, "object", "/Assign"),
        ({"Type": "Pass", "Assign": {"1x": 1}}, "identifier", "/Assign/1x"),
        ({"Type": "Pass", "Assign": {"states": 1}}, "reserved", "/Assign/states"),
        ({"Type": "Task"}, "[Resource]", ""),
        ({"Type": "Task", "Resource": "f"}, "resource ARN", "/Resource"),
        (task(TimeoutSeconds=0), "integer", "/TimeoutSeconds"),
        (task(TimeoutSeconds=True), "integer", "/TimeoutSeconds"),
        (task(TimeoutSeconds=5, HeartbeatSeconds=5), "smaller", "/HeartbeatSeconds"),
        (task(TimeoutSeconds=5, TimeoutSecondsPath="$.t"), "Only one", ""),
        (task(Retry={}), "array", "/Retry"),
        (task(Retry=[1]), "object", "/Retry[0]"),
        (task(Retry=[{}]), "non-empty array", "/Retry[0]/ErrorEquals"),
        (task(Retry=[{"ErrorEquals": []}]), "non-empty array", "/Retry[0]/ErrorEquals"),
        (task(Retry=[{"ErrorEquals": [1]}]), "non-empty array", "/Retry[0]/ErrorEquals"),
        (task(Retry=[RETRY_ALL, {"ErrorEquals": ["E"]}]), "alone", "/Retry[0]/ErrorEquals"),
        (task(Retry=[{"ErrorEquals": ["States.ALL", "E"]}]), "alone", "/Retry[0]/ErrorEquals"),
        (task(Retry=[{**RETRY_ALL, "BackoffRate": 0.5}]), "number", "/Retry[0]/BackoffRate"),
        (task(Retry=[{**RETRY_ALL, "IntervalSeconds": 0}]), "integer", "/Retry[0]/IntervalSeconds"),
        (task(Retry=[{**RETRY_ALL, "MaxAttempts": -1}]), "integer", "/Retry[0]/MaxAttempts"),
        (task(Retry=[{**RETRY_ALL, "MaxDelaySeconds": 1}]), "greater", "/Retry[0]/MaxDelaySeconds"),
        (
            task(Retry=[{**RETRY_ALL, "JitterStrategy": "HALF"}]),
            "[FULL, NONE]",
            "/Retry[0]/JitterStrategy",
        ),
        (task(Retry=[{**RETRY_ALL, "Next": "A"}]), "not supported", "/Retry[0]/Next"),
        (task(Catch=[RETRY_ALL]), "[Next]", "/Catch[0]"),
        (task(Catch=[{**RETRY_ALL, "Next": "Z"}]), "target: Z", "/Catch[0]/Next"),
        ({"Type": "Wait"}, "Exactly one", ""),
        ({"Type": "Wait", "Seconds": 1, "Timestamp": "2026-01-01T00:00:00Z"}, "Exactly one", ""),
        ({"Type": "Wait", "Seconds": -1}, "integer", "/Seconds"),
        ({"Type": "Wait", "Timestamp": "tomorrow"}, "timestamp", "/Timestamp"),
        ({"Type": "Succeed", "Next": "A"}, "not supported", "/Next"),
        ({"Type": "Fail", "InputPath": "$"}, "not supported", "/InputPath"),
        ({"Type": "Fail", "Error": "E", "ErrorPath": "$.e"}, "Only one", ""),
        ({"Type": "Fail", "Error": 5}, "string", "/Error"),
        ({"Type": "Choice"}, "[Choices]", ""),
        ({"Type": "Choice", "Choices": []}, "at least one", "/Choices"),
        ({"Type": "Choice", "Choices": [{"Next": "A"}]}, "one operator", "/Choices[0]"),
        (
            {"Type": "Choice", "Choices": [{"IsNull": True, "Next": "A"}]},
            "[Variable]",
            "/Choices[0]",
        ),
        (
            {"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": True}]},
            "[Next]",
            "/Choices[0]",
        ),
        (
            {"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": "yes", "Next": "A"}]},
            "boolean",
            "/Choices[0]/IsNull",
        ),
        (
            {"Type": "Choice", "Choices": [{"Variable": "$.a", "NumericEquals": "1", "Next": "A"}]},
            "number",
            "/Choices[0]/NumericEquals",
        ),
        (
            {"Type": "Choice", "Choices": [{"And": [{"Not": {"Next": "A"}}], "Next": "A"}]},
            "one operator",
            "/Choices[0]/And[0]/Not",
        ),
        ({"Type": "Parallel"}, "[Branches]", ""),
        ({"Type": "Parallel", "Branches": []}, "non-empty", "/Branches"),
        ({"Type": "Parallel", "Branches": [1]}, "object", "/Branches[0]"),
        ({"Type": "Parallel", "Branches": [{}]}, "[States, StartAt]", "/Branches[0]"),
        ({"Type": "Map"}, "[ItemProcessor]", ""),
        (
            {
                "Type": "Map",
                "ItemProcessor": {"StartAt": "B", "States": {"B": PASS}},
                "ItemReader": {"Resource": "arn:aws:states:::s3:getObject"},
            },
            "only allowed in the mode DISTRIBUTED",
            "",
        ),
        (
            {
                "Type": "Map",
                "ItemProcessor": DISTRIBUTED,
                "ItemReader": {"Resource": "arn:aws:states:::glue:getTable"},
            },
            "not supported",
            "/ItemReader/Resource",
        ),
        (
            {
                "Type": "Map",
                "ItemProcessor": DISTRIBUTED,
                "ItemReader": {
                    "Resource": "arn:aws:states:::s3:getObject",
                    "ReaderConfig": {"InputType": "MANIFEST"},
                },
            },
            "['CSV', 'JSON', 'JSONL']",
            "/ItemReader/ReaderConfig/InputType",
        ),
        (
            {
                "Type": "Map",
                "ItemProcessor": {"StartAt": "B", "States": {"B": PASS}},
                "ItemBatcher": {},
            },
            "required",
            "/ItemBatcher",
        ),
        (
            {
                "Type": "Map",
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED"},
                    "StartAt": "B",
                    "States": {"B": PASS},
                },
            },
            "[STANDARD, EXPRESS]",
            "/ItemProcessor/ProcessorConfig/ExecutionType",
        ),
        ({"Type": "Pass", "QueryLanguage": "SQL"}, "[JSONPath, JSONata]", "/QueryLanguage"),
        ({"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% 1 + %}"}, "JSONata", "/Output"),
        (
            {"Type": "Pass", "QueryLanguage": "JSONata", "Parameters": {}},
            "not supported",
            "/Parameters",
        ),
    ],
)
def test_what_is_wrong_with_a_state(state: dict[str, Any], message: str, place: str) -> None:
    found = diagnose(machine_of(state))
    assert [(message in problem.message, problem.location) for problem in found] == [
        (True, f"/States/A{place}")
    ]


def test_a_machine_of_jsonata_has_no_states_of_jsonpath() -> None:
    assert refusal_of({"Type": "Pass", "QueryLanguage": "JSONPath"}, QueryLanguage="JSONata") == [
        SCHEMA
        + "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine at "
        "/States/A"
    ]


def test_a_branch_must_not_assign_a_variable_of_the_states_around_it() -> None:
    inner = {"StartAt": "X", "States": {"X": {**PASS, "Assign": {"v": 2}}}}
    found = refusal_of(
        {"Type": "Pass", "Assign": {"v": 1}}, {"Type": "Parallel", "Branches": [inner]}
    )
    assert found == [
        SCHEMA
        + "Variable 'v' is already assigned in an outer scope at /States/B/Branches[0]/States/X"
    ]


def test_a_transition_does_not_leave_its_branch() -> None:
    inner = {"StartAt": "X", "States": {"X": {"Type": "Pass", "Next": "B"}}}
    found = refusal_of({"Type": "Parallel", "Branches": [inner]}, {"Type": "Succeed"})
    assert found == [
        "MISSING_TRANSITION_TARGET: Missing 'Next' target: B at /States/A/Branches[0]/States/X/Next"
    ]


def test_names_have_80_characters() -> None:
    def named(name: str) -> dict[str, Any]:
        return {"StartAt": name, "States": {name: PASS}}

    assert refusals(named("ü" * 80)) == []
    assert "80 characters" in refusals(named("ü" * 81))[0]


def test_comments_are_allowed_wherever_the_language_has_them() -> None:
    rule = {"Variable": "$.a", "IsNull": True, "Comment": "a rule"}
    definition = machine_of(
        {
            "Type": "Choice",
            "Comment": "c",
            "Choices": [{"And": [rule], "Comment": "c", "Next": "B"}],
        },
        task(
            Comment="c",
            Retry=[{"ErrorEquals": ["E"], "Comment": "c"}],
            Catch=[{"ErrorEquals": ["E"], "Next": "B", "Comment": "c"}],
        ),
        Comment="c",
        Version="1.0",
    )
    assert refusals(definition) == []


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("{} // x", "{}     "),
        ("# x\n{}", "   \n{}"),
        ("{/* a\nb */}", "{    \n    }"),
        ('{"a": "// # /* */"}', '{"a": "// # /* */"}'),
        ('{"a": "\\"// no"} // yes', '{"a": "\\"// no"}       '),
        ('"https://x" // y', '"https://x"     '),
    ],
)
def test_comments_are_stripped_outside_of_strings(text: str, stripped: str) -> None:
    assert strip_comments(text) == stripped


def test_a_machine_knows_its_tasks_and_transitions() -> None:
    inner = {"StartAt": "X", "States": {"X": {**task(), "End": True}}}
    machine = parse(
        machine_of(
            {
                "Type": "Choice",
                "Choices": [{"Variable": "$.a", "IsNull": True, "Next": "B"}],
                "Default": "C",
            },
            task(Catch=[{"ErrorEquals": ["E", "F"], "Next": "C"}]),
            {"Type": "Map", "Iterator": inner},
            {
                "Type": "Parallel",
                "Branches": [{"StartAt": "Y", "States": {"Y": {**task(), "End": True}}}],
            },
        )
    )
    assert [place for place, _ in machine.tasks()] == [
        "/States/B/Resource",
        "/States/C/Iterator/States/X/Resource",
        "/States/D/Branches[0]/States/Y/Resource",
    ]
    assert machine.states["A"].transitions() == [("choice 1", "B"), ("default", "C")]
    assert machine.states["B"].transitions() == [("", "C"), ("catch E, F", "C")]
