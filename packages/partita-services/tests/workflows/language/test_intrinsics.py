"""Intrinsic functions: the examples of the developer guide, edges, and what is refused."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita_services.workflows.language import InvalidDefinition, parse

from .machines import machine_of, play

DATA = {
    "name": "Foo",
    "int": 7,
    "list": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "same": [1, 1.0, True, "1", None, None, {"a": 1, "b": 2}, {"b": 2, "a": 1}, [1], [1]],
    "text": '{"foo": "bar"}',
    "object": {"a": {"b": 1}, "c": "d"},
    "odd key": "odd",
    "with,comma": [5],
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def evaluate(call: str, data: Any = DATA) -> Any:
    definition = machine_of({"Type": "Pass", "Parameters": {"v.$": call}, "OutputPath": "$.v"})
    return play(definition, data).output


def failure(call: str, data: Any = DATA) -> str:
    story = play(machine_of({"Type": "Pass", "Parameters": {"v.$": call}}), data)
    assert story.error == "States.IntrinsicFailure", story.cause
    assert f"The function '{call}' had the following error" in (story.cause or "")
    return story.cause or ""


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("States.Format('Hello, my name is {}.', $.name)", "Hello, my name is Foo."),
        ("States.Format('{}{}{}', 1, true, null)", "1truenull"),
        ("States.Format('{}', $.object)", '{"a":{"b":1},"c":"d"}'),
        ("States.Format('{}', 'it\\'s')", "it's"),
        (r"States.Format('\{\} {} \\', 1)", "{} 1 \\"),
        ("States.Format('nothing')", "nothing"),
        ("States.Format($.t, 1)", "<1>"),
        ("States.StringToJson($.text)", {"foo": "bar"}),
        ("States.StringToJson('[1, 2.5]')", [1, 2.5]),
        ("States.JsonToString($.object)", '{"a":{"b":1},"c":"d"}'),
        ("States.JsonToString($)", None),
        ("States.Array()", []),
        ("States.Array('a', 1, null, $.int)", ["a", 1, None, 7]),
        ("States.ArrayPartition($.list, 4)", [[1, 2, 3, 4], [5, 6, 7, 8], [9]]),
        ("States.ArrayPartition(States.Array(), 4)", []),
        ("States.ArrayPartition($.list, 4.4)", [[1, 2, 3, 4], [5, 6, 7, 8], [9]]),
        ("States.ArrayContains($.list, 5)", True),
        ("States.ArrayContains($.list, 5.0)", True),
        ("States.ArrayContains($.list, '5')", False),
        ("States.ArrayContains(States.Array(1), true)", False),
        ("States.ArrayContains($.same, $.same[6])", True),
        ("States.ArrayRange(1, 9, 2)", [1, 3, 5, 7, 9]),
        ("States.ArrayRange(9, 1, -4)", [9, 5, 1]),
        ("States.ArrayRange(1, 0, 1)", []),
        ("States.ArrayRange(0, 999, 1)", list(range(1000))),
        ("States.ArrayGetItem($.list, 5)", 6),
        ("States.ArrayLength($.list)", 9),
        ("States.ArrayUnique($.same)", [1, True, "1", None, {"a": 1, "b": 2}, [1]]),
        ("States.Base64Encode('Data to encode')", "RGF0YSB0byBlbmNvZGU="),
        ("States.Base64Decode('RGVjb2RlZCBkYXRh')", "Decoded data"),
        ("States.Hash('input data', 'SHA-1')", "aaff4a450a104cd177d28d18d74485e8cae074b7"),
        ("States.Hash('', 'MD5')", "d41d8cd98f00b204e9800998ecf8427e"),
        ("States.Hash(1, 'MD5')", "c4ca4238a0b923820dcc509a6f75849b"),
        (
            "States.JsonMerge($.object, States.StringToJson('{\"a\": 2}'), false)",
            {"a": 2, "c": "d"},
        ),
        ("States.MathAdd(111, -1)", 110),
        ("States.MathAdd(1.5, $.int)", 9),
        ("States.StringSplit('1,2,3,4,5', ',')", ["1", "2", "3", "4", "5"]),
        (
            "States.StringSplit('This.is+a,test=string', '.+,=')",
            ["This", "is", "a", "test", "string"],
        ),
        ("States.StringSplit(', , ,', ',')", [" ", " "]),
        ("States.StringSplit(',,,,', ',')", []),
        ("States.StringSplit('a-b]c^d', ']^-')", ["a", "b", "c", "d"]),
        ("States.Format('{}', $['odd key'])", "odd"),
        ("States.ArrayLength($['with,comma'])", 1),
        ("States.ArrayLength($.list[?(@ > 3)])", 6),
        ("States.ArrayGetItem($['with,comma'], 0)", 5),
        ("States.Format( '{}' ,  States.ArrayLength( $.list ) )", "9"),
        ("States.MathAdd(States.MathAdd(1, 2), States.MathAdd(3, 4))", 10),
        ("States.Format('{}', $$.State.Name)", "A"),
    ],
)
def test_the_value_of_a_call(call: str, value: Any) -> None:
    data = {**DATA, "t": "<{}>"}
    if call == "States.JsonToString($)":
        assert json.loads(evaluate(call, data)) == data
    else:
        found = evaluate(call, data)
        assert json.dumps(found) == json.dumps(value)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("States.Format('{} {}', 1)", "fewer"),
        ("States.Format('{}', 1, 2)", "more"),
        ("States.Format('{', 1)", "unmatched"),
        ("States.Format(1)", "string"),
        ("States.StringToJson('{oops')", "JSON"),
        ("States.StringToJson('NaN')", "JSON"),
        ("States.StringToJson(1)", "string"),
        ("States.ArrayPartition($.list, 0)", "positive"),
        ("States.ArrayPartition($.name, 1)", "array"),
        ("States.ArrayContains($.int, 1)", "array"),
        ("States.ArrayRange(0, 1000, 1)", "1000"),
        ("States.ArrayRange(0, 1, 0)", "step"),
        ("States.ArrayRange('0', 1, 1)", "number"),
        ("States.ArrayGetItem($.list, 9)", "outside"),
        ("States.ArrayGetItem($.list, -1)", "outside"),
        ("States.ArrayLength($.object)", "array"),
        ("States.Base64Decode('***')", "Base64"),
        ("States.Hash('x', 'SHA-3')", "SHA-256"),
        ("States.JsonMerge($.object, $.object, true)", "shallow"),
        ("States.JsonMerge($.object, $.list, false)", "objects"),
        ("States.MathRandom(5, 5)", "less"),
        ("States.MathAdd(2147483647, 1)", "range"),
        ("States.MathAdd(true, 1)", "number"),
        ("States.StringSplit($.int, ',')", "string"),
    ],
)
def test_arguments_that_do_not_fit_fail_the_call(call: str, reason: str) -> None:
    assert reason in failure(call)


def test_what_is_hashed_or_encoded_has_10000_characters_at_most() -> None:
    assert evaluate("States.Base64Encode($.t)", {"t": "x" * 10_000})
    for call in ("States.Base64Encode($.t)", "States.Base64Decode($.t)", "States.Hash($.t, 'MD5')"):
        assert "10000" in failure(call, {"t": "x" * 10_001})


@pytest.mark.parametrize(
    "call",
    [
        "States.Nope(1)",
        "States.Format",
        "States.Format('a'",
        "States.Format('a') and more",
        "States.Format('a',)",
        "States.UUID(1)",
        "States.ArrayLength()",
        "States.ArrayLength($.a, $.b)",
        "States.MathAdd(1)",
        'States.Format("double")',
        "States.Format('{}', $.a[)",
        "States.Array(" * 11 + ")" * 11,
    ],
)
def test_what_is_no_call_is_refused_with_the_definition(call: str) -> None:
    with pytest.raises(InvalidDefinition, match="not a valid intrinsic function"):
        parse(machine_of({"Type": "Pass", "Parameters": {"v.$": call}}))


def test_calls_may_be_nested_ten_deep() -> None:
    value = evaluate("States.Array(" * 9 + "States.Array(1)" + ")" * 9)
    assert json.dumps(value) == "[" * 10 + "1" + "]" * 10


def test_a_path_that_finds_nothing_is_named() -> None:
    story = play(machine_of({"Type": "Pass", "Parameters": {"v.$": "States.Array($.no)"}}), {})
    assert story.error == "States.Runtime"
    assert "'$.no' specified for the field 'v.$'" in (story.cause or "")


def test_chance_comes_from_outside_unless_a_seed_is_given() -> None:
    first = evaluate("States.MathRandom(1, 1000000)")
    assert first == evaluate("States.MathRandom(1, 1000000)")
    assert 1 <= first < 1000000
    assert evaluate("States.MathRandom(0, 9999999, 5)") == evaluate(
        "States.MathRandom(0, 9999999, 5)"
    )
    identity = evaluate("States.UUID()")
    assert uuid.UUID(identity).version == 4


@given(json_values)
def test_json_survives_a_string(value: Any) -> None:
    assert evaluate("States.StringToJson(States.JsonToString($.v))", {"v": value}) == value


@given(st.text(max_size=200))
def test_text_survives_base64(text: str) -> None:
    encoded = evaluate("States.Base64Encode($.v)", {"v": text})
    assert base64.b64decode(encoded).decode() == text
    assert evaluate("States.Base64Decode($.v)", {"v": encoded}) == text


@given(st.lists(json_values, max_size=8), st.integers(1, 5))
def test_partitions_hold_everything_in_order(items: list[Any], size: int) -> None:
    parts = evaluate(f"States.ArrayPartition($.v, {size})", {"v": items})
    assert [item for part in parts for item in part] == items
    assert all(len(part) == size for part in parts[:-1])


@given(st.text(max_size=40))
def test_any_text_can_be_written_as_a_literal(text: str) -> None:
    written = text.translate({ord(mark): f"\\{mark}" for mark in "\\'{}"})
    assert evaluate(f"States.Format('{written}')") == text
    assert evaluate(f"States.ArrayGetItem(States.Array('{written}'), 0)") == text
