"""BatchGetItem: up to 100 items of several tables, and its errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .indexes import index
from .refusals import BAD_CAPACITY, ENVELOPE, PATHS_INTO_KEYS, VALIDATION, refusal

MISMATCH = "The provided key element does not match the schema"


def key(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"key {number}"}}


def item(number: int) -> dict[str, Any]:
    return {
        **key(number),
        "n": {"N": str(number)},
        "m": {"M": {"x": {"S": "x"}, "y": {"S": "y"}}},
        "l": {"L": [{"M": {"a": {"S": "a"}, "b": {"S": "b"}}}]},
    }


@pytest.fixture(scope="module")
def tables(client: Any, module_table: Any) -> list[str]:
    """Two tables with the key pk and the items 0 to 9."""
    names = [module_table(), module_table()]
    for name in names:
        for number in range(10):
            client.put_item(TableName=name, Item=item(number))
    return names


@pytest.fixture
def notes(tables: list[str]) -> str:
    return tables[0]


def by_number(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda found: int(found["n"]["N"]))


def test_items_of_several_tables_are_found(client: Any, tables: list[str]) -> None:
    one, two = tables
    answer = client.batch_get_item(
        RequestItems={
            one: {"Keys": [key(1), key(2)]},
            two: {"Keys": [key(3)], "ConsistentRead": True},
        }
    )
    assert by_number(answer["Responses"][one]) == [item(1), item(2)]
    assert answer["Responses"][two] == [item(3)]
    assert answer["UnprocessedKeys"] == {}


def test_a_missing_item_is_left_out(client: Any, notes: str) -> None:
    answer = client.batch_get_item(RequestItems={notes: {"Keys": [key(1), key(77)]}})
    assert answer["Responses"] == {notes: [item(1)]}


def test_a_table_without_a_hit_is_there_and_empty(raw: Any, notes: str) -> None:
    # recorded
    answer = raw("BatchGetItem", {"RequestItems": {notes: {"Keys": [key(77)]}}})
    assert (answer.status, answer.body) == (200, {"Responses": {notes: []}, "UnprocessedKeys": {}})


def test_100_keys_are_read(client: Any, notes: str) -> None:
    keys = [key(number) for number in range(100)]
    answer = client.batch_get_item(RequestItems={notes: {"Keys": keys}})
    assert by_number(answer["Responses"][notes]) == [item(number) for number in range(10)]


def test_a_table_may_be_named_by_its_arn(client: Any, notes: str) -> None:
    arn = client.describe_table(TableName=notes)["Table"]["TableArn"]
    answer = client.batch_get_item(RequestItems={arn: {"Keys": [key(1)]}})
    assert list(answer["Responses"].values()) == [[item(1)]]


@pytest.mark.parametrize(
    ("projection", "expected"),
    [
        ({"ProjectionExpression": "n"}, {"n": {"N": "1"}}),
        ({"ProjectionExpression": "m.x"}, {"m": {"M": {"x": {"S": "x"}}}}),
        (
            {"ProjectionExpression": "m.x, m.y"},
            {"m": {"M": {"x": {"S": "x"}, "y": {"S": "y"}}}},
        ),
        (
            {"ProjectionExpression": "l[0].a, l[0].b"},
            {"l": {"L": [{"M": {"a": {"S": "a"}, "b": {"S": "b"}}}]}},
        ),
        (
            {"ProjectionExpression": "#n", "ExpressionAttributeNames": {"#n": "n"}},
            {"n": {"N": "1"}},
        ),
        # recorded: an item of which nothing is left stays
        ({"ProjectionExpression": "nothing"}, {}),
        ({"AttributesToGet": ["n"]}, {"n": {"N": "1"}}),
        ({"AttributesToGet": ["nothing"]}, {}),
    ],
)
def test_a_projection_returns_what_it_names(
    client: Any, notes: str, projection: dict[str, Any], expected: dict[str, Any]
) -> None:
    answer = client.batch_get_item(RequestItems={notes: {"Keys": [key(1)], **projection}})
    assert answer["Responses"][notes] == [expected]


# --- refusals ---

ENTRY = (
    "Value at 'RequestItems.{}.member.Keys' failed to satisfy constraint: Member must have length "
)


def test_no_request_items_are_refused(client: Any) -> None:
    # recorded
    assert refusal(client.batch_get_item, RequestItems={}) == (
        VALIDATION,
        ENVELOPE + "Value at 'RequestItems' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1",
    )


def test_request_items_are_required(raw: Any) -> None:
    # dynalite; boto3 does not send such a request
    answer = raw("BatchGetItem", {})
    assert (answer.status, answer.body) == (
        400,
        {
            "__type": "com.amazon.coral.validate#ValidationException",
            "message": ENVELOPE + "Value null at 'requestItems' failed to satisfy constraint: "
            "Member must not be null",
        },
    )


def test_no_keys_are_refused(client: Any, notes: str) -> None:
    # recorded
    assert refusal(client.batch_get_item, RequestItems={notes: {"Keys": []}}) == (
        VALIDATION,
        ENVELOPE + ENTRY.format(notes) + "greater than or equal to 1",
    )


def test_101_keys_are_refused(client: Any, notes: str) -> None:
    # recorded
    keys = [key(number) for number in range(101)]
    assert refusal(client.batch_get_item, RequestItems={notes: {"Keys": keys}}) == (
        VALIDATION,
        ENVELOPE + ENTRY.format(notes) + "less than or equal to 100",
    )


def test_101_keys_of_two_tables_are_refused(client: Any, tables: list[str]) -> None:
    # dynalite
    one, two = tables
    first, second = [key(number) for number in range(60)], [key(number) for number in range(41)]
    assert refusal(
        client.batch_get_item, RequestItems={one: {"Keys": first}, two: {"Keys": second}}
    ) == (VALIDATION, "Too many items requested for the BatchGetItem call")


def test_duplicate_keys_are_refused(client: Any, notes: str) -> None:
    # recorded
    assert refusal(client.batch_get_item, RequestItems={notes: {"Keys": [key(1), key(1)]}}) == (
        VALIDATION,
        "Provided list of item keys contains duplicates",
    )


@pytest.fixture(scope="module")
def indexed(client: Any, module_table: Any) -> str:
    """A table with an index on g, and one item."""
    name: str = module_table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("byG", "g")])
    client.put_item(TableName=name, Item={**key(1), "g": {"S": "g"}, "v": {"S": "v"}})
    return name


@pytest.mark.parametrize("path", PATHS_INTO_KEYS)
def test_a_projection_cannot_look_into_a_key(client: Any, indexed: str, path: str) -> None:
    asked = {"Keys": [key(1)], "ProjectionExpression": path}
    assert refusal(client.batch_get_item, RequestItems={indexed: asked}) == (
        VALIDATION,
        PATHS_INTO_KEYS[path],
    )


def test_a_key_of_another_type_is_refused_before_a_path_into_it(client: Any, indexed: str) -> None:
    asked = {"Keys": [{"pk": {"N": "1"}}], "ProjectionExpression": "pk.a"}
    assert refusal(client.batch_get_item, RequestItems={indexed: asked}) == (VALIDATION, MISMATCH)


@pytest.fixture(scope="module")
def numbered(client: Any, module_table: Any) -> str:
    """A number for a key, and the items 0 and 1."""
    name: str = module_table(pk="N")
    for number in ("0", "1"):
        client.put_item(TableName=name, Item={"pk": {"N": number}})
    return name


@pytest.mark.parametrize(
    "texts", [("1", "1.0"), ("01", "1"), ("1", "1e0", "10e-1"), ("0", "-0", "0.00")]
)
def test_one_number_in_several_forms_finds_its_item_once(
    client: Any, numbered: str, texts: tuple[str, ...]
) -> None:
    # recorded
    keys = [{"pk": {"N": text}} for text in texts]
    answer = client.batch_get_item(
        RequestItems={numbered: {"Keys": keys}}, ReturnConsumedCapacity="TOTAL"
    )
    (found,) = answer["Responses"][numbered]
    assert found == {"pk": {"N": "0" if "0" in texts else "1"}}
    assert answer["UnprocessedKeys"] == {}
    assert answer["ConsumedCapacity"][0]["CapacityUnits"] == 0.5


def test_one_number_in_several_forms_as_a_sort_key(client: Any, table: Any) -> None:
    name = table(sk="N")
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"N": "-1.5"}})
    keys = [{"pk": {"S": "a"}, "sk": {"N": text}} for text in ("-1.5", "-1.50", "7")]
    answer = client.batch_get_item(RequestItems={name: {"Keys": keys}})
    assert len(answer["Responses"][name]) == 1


def test_one_number_in_one_form_is_refused_twice(client: Any, numbered: str) -> None:
    keys = [{"pk": {"N": "1.0"}}, {"pk": {"N": "1"}}, {"pk": {"N": "1.0"}}]
    assert refusal(client.batch_get_item, RequestItems={numbered: {"Keys": keys}}) == (
        VALIDATION,
        "Provided list of item keys contains duplicates",
    )


def test_the_order_of_a_keys_attributes_does_not_hide_a_duplicate(client: Any, table: Any) -> None:
    keys = [
        {"pk": {"S": "a"}, "sk": {"S": "b"}},
        {"sk": {"S": "b"}, "pk": {"S": "a"}},
    ]
    assert refusal(client.batch_get_item, RequestItems={table(sk="S"): {"Keys": keys}}) == (
        VALIDATION,
        "Provided list of item keys contains duplicates",
    )


MIXED = (
    "Can not use both expression and non-expression parameters in the same request: "
    "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}"
)


def overlap(one: str, two: str) -> str:
    return (
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or "
        f"rewrite one of these paths; path one: [{one}], path two: [{two}]"
    )


BAD_ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "both kinds of projection": ({"AttributesToGet": ["a"], "ProjectionExpression": "a"}, MIXED),
    "an attribute twice": ({"ProjectionExpression": "a, a"}, overlap("a", "a")),
    "an attribute by two names": (
        {"ProjectionExpression": "#a, #b", "ExpressionAttributeNames": {"#a": "a", "#b": "a"}},
        overlap("a", "a"),
    ),
    "an undefined name": (
        {"ProjectionExpression": "#undef"},
        "Invalid ProjectionExpression: An expression attribute name used in the document path is "
        "not defined; attribute name: #undef",
    ),
    "an empty projection": (
        {"ProjectionExpression": ""},
        "Invalid ProjectionExpression: The expression can not be empty;",
    ),
    # dynalite
    "names without an expression": (
        {"ExpressionAttributeNames": {"#a": "a"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "an unused name": (
        {"ProjectionExpression": "a", "ExpressionAttributeNames": {"#b": "b"}},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}",
    ),
    "an attribute to get twice": (
        {"AttributesToGet": ["a", "a"]},
        "One or more parameter values were invalid: Duplicate value in attribute name: a",
    ),
    "a value of no type": (
        {"Keys": [{"pk": {}}]},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    "an attribute twice before a key twice": (
        {"Keys": [key(1), key(1)], "AttributesToGet": ["a", "a"]},
        "One or more parameter values were invalid: Duplicate value in attribute name: a",
    ),
    "a key twice before a missing table": (
        {"Keys": [key(1), key(1)]},
        "Provided list of item keys contains duplicates",
    ),
}


@pytest.mark.parametrize("case", BAD_ENTRIES)
def test_a_wrong_entry_is_refused_before_the_table_is_looked_up(client: Any, case: str) -> None:
    entry, text = BAD_ENTRIES[case]
    request = {"no_such_table": {"Keys": [key(1)], **entry}}
    assert refusal(client.batch_get_item, RequestItems=request) == (VALIDATION, text)


def test_one_wrong_entry_refuses_the_whole_batch(client: Any, tables: list[str]) -> None:
    # recorded
    one, two = tables
    request = {
        one: {"Keys": [key(1)]},
        two: {"Keys": [key(1)], "ProjectionExpression": "a, a"},
    }
    assert refusal(client.batch_get_item, RequestItems=request) == (VALIDATION, overlap("a", "a"))


def test_the_two_kinds_of_projection_do_not_mix_across_tables(
    client: Any, tables: list[str]
) -> None:
    # recorded
    one, two = tables
    request = {
        one: {"Keys": [key(1)], "AttributesToGet": ["n"]},
        two: {"Keys": [key(1)], "ProjectionExpression": "n"},
    }
    code, _ = refusal(client.batch_get_item, RequestItems=request)
    assert code == VALIDATION


KEY_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "no key": ({"a": {"S": "x"}}, MISMATCH),
    "an attribute too many": ({"pk": {"S": "x"}, "a": {"S": "x"}}, MISMATCH),
    "a number for a string": ({"pk": {"N": "1"}}, MISMATCH),
    # recorded
    "an empty key": (
        {"pk": {"S": ""}},
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk",
    ),
    # dynalite
    "a long key": (
        {"pk": {"S": "a" * 2049}},
        "One or more parameter values were invalid: "
        "Size of hashkey has exceeded the maximum size limit of2048 bytes",
    ),
}


@pytest.mark.parametrize("case", KEY_ERRORS)
def test_the_keys_must_fit_the_schema(client: Any, notes: str, case: str) -> None:
    wrong, text = KEY_ERRORS[case]
    request = {notes: {"Keys": [key(1), wrong]}}
    assert refusal(client.batch_get_item, RequestItems=request) == (VALIDATION, text)


def test_a_binary_key_cannot_be_empty(client: Any, table: Any) -> None:
    # recorded
    request = {table(pk="B"): {"Keys": [{"pk": {"B": b""}}]}}
    assert refusal(client.batch_get_item, RequestItems=request) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty binary value. Key: pk",
    )


def test_one_missing_table_refuses_the_whole_batch(client: Any, notes: str) -> None:
    request = {notes: {"Keys": [key(1)]}, "no_such_table": {"Keys": [key(1)]}}
    assert refusal(client.batch_get_item, RequestItems=request) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


BAD_NAME = {"bad!name": {"Keys": [{"pk": {"S": "a"}}]}}
BAD_MAP_KEYS = (
    f"Value '{json.dumps(BAD_NAME, separators=(',', ':'))}' at 'requestItems' failed to satisfy "
    "constraint: Map keys must satisfy constraint: [Member must have length less than or equal to "
    "255, Member must have length greater than or equal to 3, Member must satisfy regular "
    "expression pattern: [a-zA-Z0-9_.-]+]"
)


def test_a_bad_table_name_is_refused_with_the_whole_map(client: Any) -> None:
    # recorded
    assert refusal(client.batch_get_item, RequestItems=BAD_NAME) == (
        VALIDATION,
        ENVELOPE + BAD_MAP_KEYS,
    )


def test_an_unknown_capacity_to_return_comes_before_a_missing_table(client: Any) -> None:
    # recorded
    assert refusal(
        client.batch_get_item,
        RequestItems={"no_such_table": {"Keys": [key(1)]}},
        ReturnConsumedCapacity="BOGUS",
    ) == (VALIDATION, ENVELOPE + BAD_CAPACITY)


def test_a_bad_table_name_and_an_unknown_capacity_are_both_reported(client: Any) -> None:
    # recorded
    assert refusal(
        client.batch_get_item, RequestItems=BAD_NAME, ReturnConsumedCapacity="BOGUS"
    ) == (VALIDATION, f"2 validation errors detected: {BAD_MAP_KEYS}; {BAD_CAPACITY}")


# --- 16 MB ---


def test_what_does_not_fit_16_mb_is_left_for_the_next_batch(client: Any, table: Any) -> None:
    name = table()
    filler = {"S": "x" * 390_000}
    keys = [key(number) for number in range(45)]
    for number in range(45):
        client.put_item(TableName=name, Item={**key(number), "f": filler})
    request: Any = {name: {"Keys": keys, "ConsistentRead": True, "ProjectionExpression": "pk"}}
    found: list[str] = []
    rounds = 0
    while request:
        answer = client.batch_get_item(RequestItems=request)
        found += [entry["pk"]["S"] for entry in answer["Responses"][name]]
        request = answer["UnprocessedKeys"]
        if request:
            # The rest can be sent as it is.
            assert request[name]["ConsistentRead"] is True
            assert request[name]["ProjectionExpression"] == "pk"
        rounds += 1
    assert rounds == 2
    assert sorted(found) == sorted(wanted["pk"]["S"] for wanted in keys)
