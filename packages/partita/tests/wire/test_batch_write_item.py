"""BatchWriteItem: up to 25 puts and deletes in several tables, and its errors."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .refusals import BAD_CAPACITY, BAD_RETURNS, ENVELOPE, INVALID, VALIDATION, refusal

MISMATCH = "The provided key element does not match the schema"


def put(pk: str, **attributes: Any) -> dict[str, Any]:
    return {"PutRequest": {"Item": {"pk": {"S": pk}, **attributes}}}


def delete(pk: str) -> dict[str, Any]:
    return {"DeleteRequest": {"Key": {"pk": {"S": pk}}}}


@pytest.fixture(scope="module")
def tables(module_table: Any) -> list[str]:
    """Two tables with the key pk, the string index key g and the binary index key b."""
    indexes = [
        {
            "IndexName": f"by_{key}",
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
        for key in ("g", "b")
    ]
    attributes = {"g": "S", "b": "B"}
    return [module_table(attributes=attributes, GlobalSecondaryIndexes=indexes) for _ in range(2)]


@pytest.fixture
def notes(tables: list[str]) -> str:
    return tables[0]


def stored(client: Any, table: str, pk: str) -> Any:
    key = {"pk": {"S": pk}}
    return client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")


def test_a_batch_answers_that_nothing_is_left(raw: Any, notes: str) -> None:
    # recorded: UnprocessedItems is always there
    answer = raw("BatchWriteItem", {"RequestItems": {notes: [put("answer")]}})
    assert (answer.status, answer.body) == (200, {"UnprocessedItems": {}})


def test_puts_and_deletes_go_to_several_tables(client: Any, tables: list[str]) -> None:
    one, two = tables
    client.put_item(TableName=one, Item={"pk": {"S": "to delete"}})
    client.batch_write_item(
        RequestItems={one: [put("mixed"), delete("to delete")], two: [put("mixed", a={"N": "1"})]}
    )
    assert stored(client, one, "to delete") is None
    assert stored(client, one, "mixed") == {"pk": {"S": "mixed"}}
    assert stored(client, two, "mixed") == {"pk": {"S": "mixed"}, "a": {"N": "1"}}


def test_a_put_replaces_the_whole_item(client: Any, notes: str) -> None:
    client.put_item(TableName=notes, Item={"pk": {"S": "replaced"}, "a": {"N": "1"}})
    client.batch_write_item(RequestItems={notes: [put("replaced", c={"N": "2"})]})
    assert stored(client, notes, "replaced") == {"pk": {"S": "replaced"}, "c": {"N": "2"}}


def test_deleting_a_missing_item_succeeds(client: Any, notes: str) -> None:
    answer = client.batch_write_item(RequestItems={notes: [delete("never there")]})
    assert answer["UnprocessedItems"] == {}


def test_25_requests_are_written(client: Any, notes: str) -> None:
    requests = [put(f"25 {number}") for number in range(25)]
    client.batch_write_item(RequestItems={notes: requests})
    assert all(stored(client, notes, f"25 {number}") for number in range(25))


def test_25_items_of_400_kb_are_written(client: Any, notes: str) -> None:
    requests = [put(f"big {number:02}", f={"S": "x" * 409_590}) for number in range(25)]
    assert client.batch_write_item(RequestItems={notes: requests})["UnprocessedItems"] == {}
    client.batch_write_item(RequestItems={notes: [delete(f"big {n:02}") for n in range(25)]})


def test_texts_full_of_commas_are_written(client: Any, notes: str) -> None:
    """They look like very many values until they are decoded."""
    text = {"S": "[{," * 130_000}
    client.batch_write_item(RequestItems={notes: [put(f"csv {one}", v=text) for one in range(3)]})
    assert stored(client, notes, "csv 2")["v"] == text


def test_a_table_may_be_named_by_its_arn(client: Any, notes: str) -> None:
    arn = client.describe_table(TableName=notes)["Table"]["TableArn"]
    client.batch_write_item(RequestItems={arn: [put("by arn")]})
    assert stored(client, notes, "by arn")


# --- refusals: the whole batch, before anything is written ---


def test_no_request_items_are_refused(client: Any) -> None:
    # recorded: two wordings are in use
    code, text = refusal(client.batch_write_item, RequestItems={})
    assert code == VALIDATION
    assert text in {
        "The requestItems parameter is required for BatchWriteItem",
        ENVELOPE + "Value at 'RequestItems' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1",
    }


def test_26_requests_are_refused(client: Any, notes: str) -> None:
    # recorded: two wordings are in use
    requests = [put(f"26 {number}") for number in range(26)]
    code, text = refusal(client.batch_write_item, RequestItems={notes: requests})
    assert code == VALIDATION
    assert re.fullmatch(
        rf"1 validation error detected: (?:Value '\{{{notes}=\[.+\]\}}' at 'requestItems' failed "
        r"to satisfy constraint: Map value must satisfy constraint: \[Member must have length less "
        r"than or equal to 25, Member must have length greater than or equal to 1\]|"
        rf"Value at 'RequestItems\.{notes}\.member' failed to satisfy constraint: "
        r"Member must have length less than or equal to 25)",
        text,
        re.DOTALL,
    )
    assert stored(client, notes, "26 0") is None


def test_26_requests_in_two_tables_are_refused(client: Any, tables: list[str]) -> None:
    # dynalite
    one, two = tables
    request = {
        one: [put(f"13 {number}") for number in range(13)],
        two: [put(f"13 {number}") for number in range(13)],
    }
    assert refusal(client.batch_write_item, RequestItems=request) == (
        VALIDATION,
        "Too many items requested for the BatchWriteItem call",
    )
    assert stored(client, one, "13 0") is None


def test_an_empty_list_of_requests_is_refused(client: Any, notes: str) -> None:
    # recorded
    assert refusal(client.batch_write_item, RequestItems={notes: []}) == (
        VALIDATION,
        f"{ENVELOPE}Value '{{{notes}=[]}}' at 'requestItems' failed to satisfy constraint: "
        "Map value must satisfy constraint: [Member must have length less than or equal to 25, "
        "Member must have length greater than or equal to 1]",
    )


@pytest.mark.parametrize(
    "pair",
    [
        [put("twice"), put("twice", a={"N": "1"})],
        [put("twice"), delete("twice")],
        [delete("twice"), delete("twice")],
    ],
    ids=["puts", "put and delete", "deletes"],
)
def test_two_requests_for_one_item_are_refused(
    client: Any, notes: str, pair: list[dict[str, Any]]
) -> None:
    # recorded
    assert refusal(client.batch_write_item, RequestItems={notes: [put("twice's peer"), *pair]}) == (
        VALIDATION,
        "Provided list of item keys contains duplicates",
    )
    assert stored(client, notes, "twice's peer") is None


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"PutRequest": {"Item": {"pk": {"S": "x"}}}, "DeleteRequest": {"Key": {"pk": {"S": "x"}}}},
    ],
    ids=["neither", "both"],
)
def test_a_request_is_a_put_or_a_delete(client: Any, notes: str, request_: dict[str, Any]) -> None:
    # dynalite: the service's words are those for a value of two types
    assert refusal(client.batch_write_item, RequestItems={notes: [request_]}) == (
        VALIDATION,
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the "
        "supported datatypes",
    )


@pytest.mark.parametrize(
    ("request_", "path"),
    [({"PutRequest": {}}, "putRequest.item"), ({"DeleteRequest": {}}, "deleteRequest.key")],
)
def test_a_missing_member_is_named_with_its_place(
    client: Any, notes: str, request_: dict[str, Any], path: str
) -> None:
    # dynalite
    assert refusal(client.batch_write_item, RequestItems={notes: [request_]}) == (
        VALIDATION,
        f"{ENVELOPE}Value null at 'requestItems.{notes}.member.1.member.{path}' failed to satisfy "
        "constraint: Member must not be null",
    )


EMPTY_KEY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
    "contain an empty string value. Key: pk"
)
EMPTY_INDEX_KEY = (
    "One or more parameter values are not valid. A value specified for a secondary index key is "
    "not supported. The AttributeValue for a key attribute cannot contain an empty {} value. "
    "IndexName: {}, IndexKey: {}"
)
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "a put without its key": ({"PutRequest": {"Item": {"a": {"S": "x"}}}}, MISMATCH),
    "a delete without its key": ({"DeleteRequest": {"Key": {"a": {"S": "x"}}}}, MISMATCH),
    "a put with a number as key": ({"PutRequest": {"Item": {"pk": {"N": "1"}}}}, MISMATCH),
    "a put with a list as key": ({"PutRequest": {"Item": {"pk": {"L": []}}}}, MISMATCH),
    "a delete with a number as key": ({"DeleteRequest": {"Key": {"pk": {"N": "1"}}}}, MISMATCH),
    "a put with an empty key": (put(""), EMPTY_KEY),
    "a delete with an empty key": (delete(""), EMPTY_KEY),
    "a number as index key": (
        put("x", g={"N": "1"}),
        INVALID + "Type mismatch for Index Key g Expected: S Actual: N IndexName: by_g",
    ),
    "a list as index key": (
        put("x", g={"L": []}),
        INVALID + "Type mismatch for Index Key g Expected: S Actual: L IndexName: by_g",
    ),
    "an empty index key": (
        put("x", g={"S": ""}),
        EMPTY_INDEX_KEY.format("string", "by_g", "g"),
    ),
    "an empty binary index key": (
        put("x", b={"B": b""}),
        EMPTY_INDEX_KEY.format("binary", "by_b", "b"),
    ),
    # dynalite
    "a delete with an attribute too many": (
        {"DeleteRequest": {"Key": {"pk": {"S": "x"}, "a": {"S": "x"}}}},
        MISMATCH,
    ),
    "a long key": (
        put("a" * 2049),
        INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes",
    ),
    "an item that is too large": (
        put("x", f={"S": "x" * 409_600}),
        "Item size has exceeded the maximum allowed size",
    ),
    # recorded: the older wording of the values' errors
    "no number": (
        put("x", n={"N": ""}),
        "The parameter cannot be converted to a numeric value",
    ),
    "duplicates in a set": (
        put("x", s={"SS": ["b", "a", "b"]}),
        INVALID + "Input collection [b, a, b] contains duplicates.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_wrong_request_refuses_the_whole_batch(client: Any, notes: str, case: str) -> None:
    wrong, text = WRONG[case]
    assert refusal(client.batch_write_item, RequestItems={notes: [put("peer"), wrong]}) == (
        VALIDATION,
        text,
    )
    assert stored(client, notes, "peer") is None


@pytest.mark.parametrize("case", ["an item that is too large", "no number", "duplicates in a set"])
def test_the_items_are_checked_before_the_table_is_looked_up(client: Any, case: str) -> None:
    # dynalite
    wrong, text = WRONG[case]
    assert refusal(client.batch_write_item, RequestItems={"no_such_table": [wrong]}) == (
        VALIDATION,
        text,
    )


def test_the_table_is_looked_up_before_duplicates(client: Any) -> None:
    # dynalite
    request = {"no_such_table": [put("x"), put("x")]}
    assert refusal(client.batch_write_item, RequestItems=request) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


@pytest.mark.parametrize("kind", ["put", "delete"])
def test_a_binary_key_cannot_be_empty(client: Any, table: Any, kind: str) -> None:
    # recorded
    key = {"pk": {"B": b""}}
    request = {"put": {"PutRequest": {"Item": key}}, "delete": {"DeleteRequest": {"Key": key}}}
    assert refusal(client.batch_write_item, RequestItems={table(pk="B"): [request[kind]]}) == (
        VALIDATION,
        EMPTY_KEY.replace("string", "binary"),
    )


def test_one_missing_table_refuses_the_whole_batch(client: Any, notes: str) -> None:
    request = {notes: [put("with a missing table")], "no_such_table": [put("x")]}
    assert refusal(client.batch_write_item, RequestItems=request) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )
    assert stored(client, notes, "with a missing table") is None


# --- members and their constraints (recorded) ---


@pytest.mark.parametrize(("more", "text"), BAD_RETURNS.values(), ids=BAD_RETURNS)
def test_an_unknown_enum_value_comes_before_a_missing_table(
    client: Any, more: dict[str, Any], text: str
) -> None:
    request = {"no_such_table": [put("x")]}
    assert refusal(client.batch_write_item, RequestItems=request, **more) == (VALIDATION, text)


def test_an_unknown_capacity_to_return_hides_a_bad_table_name(client: Any) -> None:
    assert refusal(
        client.batch_write_item,
        RequestItems={"bad!name": [put("x")]},
        ReturnConsumedCapacity="BOGUS",
    ) == (VALIDATION, ENVELOPE + BAD_CAPACITY)


def test_a_bad_table_name_is_refused_with_the_whole_map(client: Any) -> None:
    code, text = refusal(client.batch_write_item, RequestItems={"bad!name": [put("x")]})
    assert code == VALIDATION
    assert re.fullmatch(
        r"1 validation error detected: Value '\{bad!name=\[WriteRequest\(putRequest=PutRequest\("
        r"item=\{pk=.+\}.*\)\]\}' at 'requestItems' failed to satisfy constraint: Map keys must "
        r"satisfy constraint: \[Member must have length less than or equal to 255, Member must "
        r"have length greater than or equal to 3, Member must satisfy regular expression pattern: "
        r"\[a-zA-Z0-9_.-\]\+\]",
        text,
    )
