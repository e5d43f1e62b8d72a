"""Filter patterns, in the syntax of Lambda's event filtering."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.errors import PartitaError
from partita_services.functions.mappings.event_filters import compile_filters

RECORD = {
    "eventName": "MODIFY",
    "dynamodb": {
        "Keys": {"pk": {"S": "order#17"}},
        "NewImage": {
            "pk": {"S": "order#17"},
            "status": {"S": "Shipped"},
            "total": {"N": "42.50"},
            "note": {"S": ""},
            "gift": {"BOOL": True},
            "gone": {"NULL": True},
            "colours": {"SS": ["red", "green"]},
            "teams": {"L": [{"S": "Sales"}, {"S": "Support"}, {"N": "7"}]},
            "none": {"L": []},
            "sizes": {"NS": ["1", "40"]},
        },
        "SizeBytes": 120,
    },
    "userIdentity": None,
}


def matches(*patterns: Any) -> bool:
    compiled = compile_filters([json.dumps(pattern) for pattern in patterns])
    assert compiled is not None
    return compiled(RECORD)


def image(**attributes: Any) -> dict[str, Any]:
    return {"dynamodb": {"NewImage": attributes}}


@pytest.mark.parametrize(
    "pattern",
    [
        {"eventName": ["MODIFY"]},
        {"eventName": ["INSERT", "MODIFY"]},
        image(status={"S": ["Shipped"]}),
        image(status={"S": [{"prefix": "Sh"}]}),
        image(status={"S": [{"suffix": "ped"}]}),
        image(status={"S": [{"equals-ignore-case": "SHIPPED"}]}),
        image(status={"S": [{"anything-but": ["Open", "Lost"]}]}),
        image(status={"S": [{"anything-but": "Open"}]}),
        image(status={"S": [{"anything-but": {"prefix": "O"}}]}),
        image(status={"S": [{"exists": True}]}),
        image(absent={"S": [{"exists": False}]}),
        {"dynamodb": {"OldImage": {"status": {"S": [{"exists": False}]}}}},
        image(note={"S": [""]}),
        image(gift={"BOOL": [True]}),
        image(colours={"SS": ["green"]}),
        image(teams={"L": {"S": ["Support"]}}),
        image(teams={"L": {"S": [{"exists": True}]}}),
        image(teams={"L": {"N": [{"numeric": [">", 6]}]}}),
        image(teams=[{"exists": False}]),
        image(sizes={"NS": [{"numeric": [">", 9]}]}),
        image(none={"L": [{"exists": False}]}),
        image(total={"N": ["42.50"]}),
        image(total={"N": [{"numeric": [">", 42, "<=", 42.5]}]}),
        image(total={"N": [{"numeric": ["=", 42.5]}]}),
        {"dynamodb": {"SizeBytes": [{"numeric": [">=", 120]}]}},
        {"dynamodb": {"SizeBytes": [120]}},
        {"userIdentity": [None]},
        {"$or": [{"eventName": ["INSERT"]}, image(status={"S": ["Shipped"]})]},
        {"eventName": ["MODIFY"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "order#"}]}}}},
    ],
)
def test_what_matches(pattern: Any) -> None:
    assert matches(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        {"eventName": ["INSERT"]},
        {"eventName": ["modify"]},
        image(status={"S": [{"prefix": "ship"}]}),
        image(status={"S": [{"suffix": "Ship"}]}),
        image(status={"S": [{"equals-ignore-case": "ship"}]}),
        image(status={"S": [{"anything-but": ["Shipped"]}]}),
        image(status={"S": [{"anything-but": {"suffix": "ped"}}]}),
        image(absent={"S": [{"anything-but": ["x"]}]}),
        image(status={"S": [{"exists": False}]}),
        image(absent={"S": [{"exists": True}]}),
        image(absent={"S": ["x"]}),
        image(gift={"BOOL": [1]}),
        image(gift={"BOOL": [{"numeric": ["=", 1]}]}),
        image(colours={"SS": ["blue"]}),
        image(teams={"L": {"S": ["Marketing"]}}),
        image(teams=[{"exists": True}]),
        image(teams={"L": [{"exists": True}]}),
        image(teams=[{"anything-but": "Sales"}]),
        image(total={"N": [{"numeric": [">", 42.5]}]}),
        image(status={"S": [{"numeric": [">", 0]}]}),
        {"userIdentity": {"type": ["Service"]}},
        {"eventName": ["MODIFY"], "dynamodb": {"SizeBytes": [1]}},
        {"$or": [{"eventName": ["INSERT"]}, {"eventName": ["REMOVE"]}]},
    ],
)
def test_what_does_not_match(pattern: Any) -> None:
    assert not matches(pattern)


def test_one_of_several_patterns_will_do() -> None:
    assert matches({"eventName": ["REMOVE"]}, {"eventName": ["MODIFY"]})
    assert compile_filters([]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"eventName": "INSERT"}',
        '{"eventName": []}',
        '{"eventName": {}}',
        '{"eventName": [{"like": "x"}]}',
        '{"eventName": [{"prefix": 1}]}',
        '{"eventName": [{"prefix": "a", "suffix": "b"}]}',
        '{"eventName": [{"exists": "yes"}]}',
        '{"n": [{"numeric": []}]}',
        '{"n": [{"numeric": [">"]}]}',
        '{"n": [{"numeric": ["~", 1]}]}',
        '{"n": [{"numeric": [">", "1"]}]}',
        '{"n": [{"numeric": [">", 1e999]}]}',
        '{"$or": []}',
        '{"$or": [[]]}',
        '{"a": [' + "9" * 5000 + "]}",
        '{"a":' * 101 + '["x"]' + "}" * 101,
        '{"a":' * 600 + '["x"]' + "}" * 600,
        '{"a":[' + '{"anything-but":' * 150 + '"x"' + "}" * 150 + "]}",
        "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(PartitaError, match="filter pattern"):
        compile_filters([text])


def test_a_pattern_may_nest_as_deep_as_items_do() -> None:
    levels = 90
    found = compile_filters(['{"a":' * levels + '["x"]' + "}" * levels])
    assert found is not None
    record: Any = "x"
    for _ in range(levels):
        record = {"a": record}
    assert found(record)
    assert not found({})


def test_a_value_without_its_list_is_told_what_it_lacks() -> None:
    with pytest.raises(
        PartitaError, match=r'eventName takes a list of rules, such as \["INSERT"\]'
    ):
        compile_filters(['{"eventName": "INSERT"}'])
