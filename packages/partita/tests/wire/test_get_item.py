"""GetItem: items, projections and errors."""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import VALIDATION, refusal

MISMATCH = "The provided key element does not match the schema"
KEY = {"pk": {"S": "whole"}, "sk": {"S": "1"}}


def numbered(*numbers: int) -> dict[str, Any]:
    return {"L": [{"N": str(number)} for number in numbers]}


WHOLE: dict[str, Any] = {
    **KEY,
    "s": {"S": "text"},
    "m": {"M": {"x": {"N": "1"}, "y": {"N": "2"}, "deep": {"M": {"z": {"S": "z"}}}}},
    "l": numbered(0, 1, 2, 3),
    "records": {
        "L": [
            {
                "M": {
                    "a": {"N": "1"},
                    "b": {"N": "2"},
                    "m": {"M": {"x": {"N": "3"}, "y": {"N": "4"}}},
                }
            },
            {
                "M": {
                    "a": {"N": "5"},
                    "n": {"L": [{"M": {"p": {"N": "6"}}}, {"M": {"q": {"N": "7"}}}]},
                }
            },
            {"M": {"c": {"N": "8"}}},
        ]
    },
    "a.b": {"S": "a name with a dot"},
}


@pytest.fixture(scope="module")
def music(client: Any, module_table: Any) -> str:
    """A table with the string keys pk and sk, an index on g, and the item WHOLE."""
    index = {
        "IndexName": "by_g",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    name: str = module_table(sk="S", attributes={"g": "S"}, GlobalSecondaryIndexes=[index])
    client.put_item(TableName=name, Item=WHOLE)
    return name


@pytest.mark.parametrize("consistent", [True, False])
def test_an_item_is_read_back(client: Any, music: str, consistent: bool) -> None:
    answer = client.get_item(TableName=music, Key=KEY, ConsistentRead=consistent)
    assert answer["Item"] == WHOLE


def test_a_missing_item_is_an_empty_answer(raw: Any, music: str) -> None:
    key = {"pk": {"S": "missing"}, "sk": {"S": "1"}}
    answer = raw("GetItem", {"TableName": music, "Key": key})
    assert (answer.status, answer.body) == (200, {})


def test_the_table_may_be_named_by_its_arn(client: Any, music: str) -> None:
    arn = client.describe_table(TableName=music)["Table"]["TableArn"]
    assert client.get_item(TableName=arn, Key=KEY)["Item"] == WHOLE


# --- projections ---

PROJECTED: dict[str, tuple[str, dict[str, Any]]] = {
    # recorded: keys are not added, elements come together in the order of their indexes, and
    # several paths into one element meet in it
    "one attribute": ("s", {"s": {"S": "text"}}),
    "a key": ("pk", {"pk": {"S": "whole"}}),
    "a map member": ("m.x", {"m": {"M": {"x": {"N": "1"}}}}),
    "two map members": ("m.x, m.y", {"m": {"M": {"x": {"N": "1"}, "y": {"N": "2"}}}}),
    "a deep map member": ("m.deep.z", {"m": {"M": {"deep": {"M": {"z": {"S": "z"}}}}}}),
    "an element": ("l[0]", {"l": numbered(0)}),
    "elements": ("l[2], l[0]", {"l": numbered(0, 2)}),
    "an element beyond the end": ("l[9]", {}),
    "elements and one beyond the end": ("l[9], l[3]", {"l": numbered(3)}),
    "attributes": ("s, l", {"s": {"S": "text"}, "l": numbered(0, 1, 2, 3)}),
    "two paths into one element": (
        "records[0].a, records[0].b",
        {"records": {"L": [{"M": {"a": {"N": "1"}, "b": {"N": "2"}}}]}},
    ),
    "two paths into a map in one element": (
        "records[0].m.x, records[0].m.y",
        {"records": {"L": [{"M": {"m": {"M": {"x": {"N": "3"}, "y": {"N": "4"}}}}}]}},
    ),
    "elements of an inner list": (
        "records[1].n[0].p, records[1].n[1].q",
        {
            "records": {
                "L": [{"M": {"n": {"L": [{"M": {"p": {"N": "6"}}}, {"M": {"q": {"N": "7"}}}]}}}]
            }
        },
    ),
    "elements asked for from the last": (
        "records[2].c, records[0].b, records[0].a",
        {"records": {"L": [{"M": {"a": {"N": "1"}, "b": {"N": "2"}}}, {"M": {"c": {"N": "8"}}}]}},
    ),
    # recorded: an item of which nothing is left is there, and empty
    "nothing": ("nothing", {}),
    "nothing of a map": ("m.nothing", {}),
    "a member of a string": ("s.x", {}),
    "an element of a map": ("m[0]", {}),
    "a member of a list": ("l.x", {}),
}


@pytest.mark.parametrize("case", PROJECTED)
def test_a_projection_returns_what_its_paths_name(client: Any, music: str, case: str) -> None:
    projection, expected = PROJECTED[case]
    answer = client.get_item(TableName=music, Key=KEY, ProjectionExpression=projection)
    assert answer["Item"] == expected


def test_a_projection_uses_names(client: Any, music: str) -> None:
    answer = client.get_item(
        TableName=music,
        Key=KEY,
        ProjectionExpression="#dotted, #m.#x",
        ExpressionAttributeNames={"#dotted": "a.b", "#m": "m", "#x": "x"},
    )
    assert answer["Item"] == {"a.b": WHOLE["a.b"], "m": {"M": {"x": {"N": "1"}}}}


def test_a_projection_of_a_missing_item_returns_no_item(client: Any, music: str) -> None:
    key = {"pk": {"S": "missing"}, "sk": {"S": "1"}}
    assert "Item" not in client.get_item(TableName=music, Key=key, ProjectionExpression="s")


def test_attributes_to_get_does_not_add_the_keys(client: Any, music: str) -> None:
    answer = client.get_item(TableName=music, Key=KEY, AttributesToGet=["s", "nothing"])
    assert answer["Item"] == {"s": {"S": "text"}}


def test_attributes_to_get_takes_a_dot_as_part_of_the_name(client: Any, music: str) -> None:
    answer = client.get_item(TableName=music, Key=KEY, AttributesToGet=["a.b", "m.x"])
    assert answer["Item"] == {"a.b": WHOLE["a.b"]}


def test_attributes_to_get_that_match_nothing_leave_an_empty_item(client: Any, music: str) -> None:
    # recorded
    assert client.get_item(TableName=music, Key=KEY, AttributesToGet=["zz"])["Item"] == {}


# --- refusals ---


def overlap(one: str, two: str) -> str:
    return (
        "Two document paths overlap with each other; must remove or rewrite one of these paths; "
        f"path one: [{one}], path two: [{two}]"
    )


BAD_PROJECTIONS: dict[str, tuple[str, str]] = {
    # recorded
    "twice": ("a, a", overlap("a", "a")),
    "twice by a name": ("a, #a", overlap("a", "a")),
    "twice nested": ("a.b, a.b", overlap("a, b", "a, b")),
    "whole, part": ("a, a.b", overlap("a", "a, b")),
    "part, whole": ("a.b, a", overlap("a, b", "a")),
    "list, element": ("l, l[0]", overlap("l", "l, [0]")),
    "whole, deep part": ("a, a.b.c", overlap("a", "a, b, c")),
    "an undefined name": (
        "#undef",
        "An expression attribute name used in the document path is not defined; "
        "attribute name: #undef",
    ),
    "garbage": ("!!! INVALID !!!", 'Syntax error; token: "!", near: "!!"'),
    "empty": ("", "The expression can not be empty;"),
    # dynalite
    "a reserved word": (
        "a.abORt",
        "Attribute name is a reserved keyword; reserved keyword: abORt",
    ),
    "a map and a list": (
        "a.b, a[1]",
        "Two document paths conflict with each other; must remove or rewrite one of these paths; "
        "path one: [a, b], path two: [a, [1]]",
    ),
    "an overlap before an earlier conflict": ("b[1], b.a, a.b, a", overlap("a, b", "a")),
    "a reserved word before an undefined name": (
        "#undef, abort",
        "Attribute name is a reserved keyword; reserved keyword: abort",
    ),
    "an undefined name before an overlap": (
        "a, a, #undef",
        "An expression attribute name used in the document path is not defined; "
        "attribute name: #undef",
    ),
}


@pytest.mark.parametrize("case", BAD_PROJECTIONS)
def test_a_wrong_projection_is_refused(client: Any, music: str, case: str) -> None:
    projection, text = BAD_PROJECTIONS[case]
    names = {"ExpressionAttributeNames": {"#a": "a"}} if "#a" in projection else {}
    for table in (music, "no_such_table"):
        assert refusal(
            client.get_item, TableName=table, Key=KEY, ProjectionExpression=projection, **names
        ) == (VALIDATION, "Invalid ProjectionExpression: " + text)


@pytest.mark.parametrize(
    "projection",
    [
        "whatever(stuff)",
        ":a",
        "abort,",
        "a,,b",
        "a..b",
        "a[b]",
        "a[",
        "a[1",
        "a[-1]",
        "(a.b).c",
        "(a)",
        "(a,b)",
        "a-b",
        "_a",
        "1a",
        "a b",
        "a.",
        ".a",
        '"a"',
    ],
)
def test_a_projection_is_a_list_of_paths(client: Any, music: str, projection: str) -> None:
    # dynalite
    code, text = refusal(client.get_item, TableName=music, Key=KEY, ProjectionExpression=projection)
    assert code == VALIDATION
    assert text.startswith("Invalid ProjectionExpression: Syntax error; token: ")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "both kinds of projection": (
        {"Key": KEY, "AttributesToGet": ["a"], "ProjectionExpression": "a"},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet} "
        "Expression parameters: {ProjectionExpression}",
    ),
    "names without an expression": (
        {"Key": KEY, "ExpressionAttributeNames": {"#a": "a"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "no names": (
        {"Key": KEY, "ProjectionExpression": "a", "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames must not be empty",
    ),
    "a name without #": (
        {"Key": KEY, "ProjectionExpression": "a", "ExpressionAttributeNames": {"b": "b"}},
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "b"',
    ),
    "an unused name": (
        {"Key": KEY, "ProjectionExpression": "a", "ExpressionAttributeNames": {"#b": "b"}},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}",
    ),
    "an attribute twice": (
        {"Key": KEY, "AttributesToGet": ["a", "a"]},
        "One or more parameter values were invalid: Duplicate value in attribute name: a",
    ),
    "a value of no type": (
        {"Key": {"pk": {}}},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    "a value of two types": (
        {"Key": {"pk": {"S": "a", "N": "1"}}},
        "Supplied AttributeValue has more than one datatypes set, "
        "must contain exactly one of the supported datatypes",
    ),
    # The order of the checks.
    "both kinds before names": (
        {
            "Key": {"pk": {}},
            "AttributesToGet": ["a", "a"],
            "ProjectionExpression": "",
            "ExpressionAttributeNames": {},
        },
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet} "
        "Expression parameters: {ProjectionExpression}",
    ),
    "names before the key's values": (
        {"Key": {"pk": {}}, "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "the key's values before an attribute twice": (
        {"Key": {"pk": {}}, "AttributesToGet": ["a", "a"]},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    "names before the projection": (
        {"Key": KEY, "ProjectionExpression": "", "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames must not be empty",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_parameters_are_refused_before_the_table_is_looked_up(client: Any, case: str) -> None:
    # dynalite
    request, text = REFUSED[case]
    assert refusal(client.get_item, TableName="no_such_table", **request) == (VALIDATION, text)


KEY_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "no sort key": ({"pk": {"S": "a"}}, MISMATCH),
    "no key": ({}, MISMATCH),
    "an attribute too many": ({**KEY, "s": {"S": "a"}}, MISMATCH),
    "another attribute": ({"pk": {"S": "a"}, "s": {"S": "a"}}, MISMATCH),
    "a number for a string": ({"pk": {"N": "1"}, "sk": {"S": "a"}}, MISMATCH),
    "a list for a string": ({"pk": {"L": []}, "sk": {"S": "a"}}, MISMATCH),
    "an empty partition key": (
        {"pk": {"S": ""}, "sk": {"S": "a"}},
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk",
    ),
    "an empty sort key": (
        {"pk": {"S": "a"}, "sk": {"S": ""}},
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: sk",
    ),
    # dynalite
    "a long partition key": (
        {"pk": {"S": "a" * 2049}, "sk": {"S": "a"}},
        "One or more parameter values were invalid: "
        "Size of hashkey has exceeded the maximum size limit of2048 bytes",
    ),
    "a long sort key": (
        {"pk": {"S": "a"}, "sk": {"S": "a" * 1025}},
        "One or more parameter values were invalid: "
        "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    ),
}


@pytest.mark.parametrize("case", KEY_ERRORS)
def test_the_key_must_fit_the_schema(client: Any, music: str, case: str) -> None:
    key, text = KEY_ERRORS[case]
    assert refusal(client.get_item, TableName=music, Key=key) == (VALIDATION, text)


def test_a_binary_key_cannot_be_empty(client: Any, table: Any) -> None:
    # recorded
    assert refusal(client.get_item, TableName=table(pk="B"), Key={"pk": {"B": b""}}) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty binary value. Key: pk",
    )


@pytest.mark.parametrize(
    ("projection", "named"),
    [("pk.a", "Key: pk"), ("sk[0]", "Key: sk"), ("g.a", "IndexKey: g"), ("g[1]", "IndexKey: g")],
)
def test_a_projection_cannot_look_into_a_key(
    client: Any, music: str, projection: str, named: str
) -> None:
    # dynalite
    assert refusal(client.get_item, TableName=music, Key=KEY, ProjectionExpression=projection) == (
        VALIDATION,
        "Key attributes must be scalars; list random access '[]' and map lookup '.' "
        f"are not allowed: {named}",
    )


def test_a_read_of_a_missing_table_finds_no_resource(client: Any) -> None:
    # recorded
    assert refusal(client.get_item, TableName="no_such_table", Key=KEY) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


def test_an_empty_request_lacks_its_table_name_and_its_key(client: Any) -> None:
    # dynalite; the order of several errors varies on AWS
    code, text = refusal(client.get_item)
    assert code == VALIDATION
    count, _, errors = text.partition(": ")
    assert count == "2 validation errors detected"
    assert set(errors.split("; ")) == {
        "Value null at 'tableName' failed to satisfy constraint: Member must not be null",
        "Value null at 'key' failed to satisfy constraint: Member must not be null",
    }


def test_an_unknown_capacity_to_return_is_refused(client: Any) -> None:
    assert refusal(
        client.get_item, TableName="no_such_table", Key=KEY, ReturnConsumedCapacity="BOGUS"
    ) == (
        VALIDATION,
        "1 validation error detected: Value 'BOGUS' at 'returnConsumedCapacity' failed to satisfy "
        "constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
    )


def test_no_attributes_to_get_is_refused(client: Any) -> None:
    # dynalite
    assert refusal(client.get_item, TableName="no_such_table", Key=KEY, AttributesToGet=[]) == (
        VALIDATION,
        "1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy "
        "constraint: Member must have length greater than or equal to 1",
    )
