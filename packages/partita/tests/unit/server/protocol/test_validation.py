"""Constraint violations: their order and words.

Texts marked "recorded" were kept by public conformance suites from the real service in 2026; the
others are dynalite's, recorded earlier.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import SerializationException, ValidationException
from partita.server.protocol import validation_texts
from partita.server.protocol.model_constraints import violations
from partita.server.protocol.request_validation import Validator, compile_validators
from partita.server.protocol.service_model import load

OPERATIONS = (
    *("CreateTable", "DescribeTable", "ListTables", "UpdateTable", "DeleteTable"),
    *("TagResource", "UntagResource", "ListTagsOfResource"),
    *("UpdateTimeToLive", "DescribeTimeToLive", "DescribeLimits", "DescribeEndpoints"),
    *("PutItem", "GetItem", "UpdateItem", "DeleteItem"),
    *("BatchGetItem", "BatchWriteItem", "Query", "Scan"),
    *("TransactGetItems", "TransactWriteItems"),
)
VALIDATORS: dict[str, Validator] = compile_validators(OPERATIONS)

ONE = "1 validation error detected: "
FAILED = "failed to satisfy constraint: "
NOT_NULL = FAILED + "Member must not be null"
PATTERN = FAILED + "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
CAPACITY_ENUM = "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
CAPACITY = f"at 'returnConsumedCapacity' {FAILED}{CAPACITY_ENUM}"
METRICS = (
    f"at 'returnItemCollectionMetrics' {FAILED}Member must satisfy enum value set: [SIZE, NONE]"
)
RETURN_VALUES = (
    "Failed to satisfy constraint: Member must satisfy enum value set: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
OLDER_RETURN_VALUES = (
    f"at 'returnValues' {FAILED}Member must satisfy enum value set: "
    "[ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
)
EMPTY_TABLE_NAME = (
    f"{ONE}Value at 'TableName' {FAILED}Member must have length greater than or equal to 1"
)
MAP_KEYS = (
    "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "
    "Member must have length greater than or equal to 3, "
    "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"
)
BAD = "INVALID"
NAMES = st.sampled_from(
    [
        "abc",
        "a",
        "a!",
        "TableName",
        "IndexName",
        "KeySchema",
        "AttributeName",
        "KeyType",
        "Keys",
        "Put",
    ]
)
HASH = {"AttributeName": "pk", "KeyType": "HASH"}
INDEX = {"KeySchema": [HASH], "Projection": {}}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


def refusal(operation: str, request: dict[str, Any]) -> str:
    with pytest.raises(ValidationException) as refused:
        VALIDATORS[operation](request)
    assert refused.value.message is not None
    return refused.value.message


RECORDED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a missing table name": (
        "PutItem",
        {"Item": {}},
        f"{ONE}Value null at 'tableName' {NOT_NULL}",
    ),
    "an empty table name is told alone": (
        "PutItem",
        {"TableName": "", "Item": {}, "ReturnValues": BAD},
        EMPTY_TABLE_NAME,
    ),
    "a long table name": (
        "PutItem",
        {"TableName": "a" * 256, "Item": {}},
        f"{ONE}Value '{'a' * 256}' at 'tableName' {FAILED}"
        "Member must have length less than or equal to 255",
    ),
    "a table name with other characters": (
        "PutItem",
        {"TableName": "bad table!@#", "Item": {}},
        f"{ONE}Value 'bad table!@#' at 'tableName' {PATTERN}",
    ),
    "three enums of PutItem": (
        "PutItem",
        {
            "TableName": "abc",
            "Item": {},
            "ReturnConsumedCapacity": BAD,
            "ReturnValues": BAD,
            "ReturnItemCollectionMetrics": BAD,
        },
        f"3 validation errors detected: Value 'INVALID' {CAPACITY}; {RETURN_VALUES}; "
        f"Value 'INVALID' {METRICS}",
    ),
    "UpdateItem stops at ReturnValues": (
        "UpdateItem",
        {"TableName": "abc", "Key": {}, "ReturnConsumedCapacity": BAD, "ReturnValues": BAD},
        ONE + RETURN_VALUES,
    ),
    "UpdateItem without a key is answered in the older words": (
        "UpdateItem",
        {"TableName": "", "ReturnConsumedCapacity": BAD, "ReturnValues": BAD},
        f"4 validation errors detected: Value 'INVALID' {CAPACITY}; Value '' at 'tableName' "
        f"{FAILED}Member must have length greater than or equal to 1; "
        f"Value 'INVALID' {OLDER_RETURN_VALUES}; Value null at 'key' {NOT_NULL}",
    ),
    "UpdateItem with a wrong operator and no key": (
        "UpdateItem",
        {"TableName": "abc", "ConditionalOperator": "XOR"},
        f"2 validation errors detected: Value 'XOR' at 'conditionalOperator' {FAILED}"
        f"Member must satisfy enum value set: [OR, AND]; Value null at 'key' {NOT_NULL}",
    ),
    "two enums of DeleteItem": (
        "DeleteItem",
        {"TableName": "abc", "Key": {}, "ReturnConsumedCapacity": BAD, "ReturnValues": BAD},
        f"2 validation errors detected: Value 'INVALID' {CAPACITY}; {RETURN_VALUES}",
    ),
    "DeleteItem with a value nested 62 times": (
        "DeleteItem",
        {"TableName": "abc", "Key": {"pk": nested(62)}, "ReturnValues": "BOGUS"},
        ONE + RETURN_VALUES,
    ),
    "DeleteItem with a value nested 63 times is answered in the older words": (
        "DeleteItem",
        {"TableName": "abc", "Key": {"pk": nested(63)}, "ReturnValues": "BOGUS"},
        f"{ONE}Value 'BOGUS' {OLDER_RETURN_VALUES}",
    ),
    "an empty batch": (
        "BatchGetItem",
        {"RequestItems": {}},
        f"{ONE}Value at 'RequestItems' {FAILED}Member must have length greater than or equal to 1",
    ),
    "a batch of 101 keys": (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [{}] * 101}}},
        f"{ONE}Value at 'RequestItems.abc.member.Keys' {FAILED}"
        "Member must have length less than or equal to 100",
    ),
    "a batch without keys": (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": []}}},
        f"{ONE}Value at 'RequestItems.abc.member.Keys' {FAILED}"
        "Member must have length greater than or equal to 1",
    ),
    "a bad table name in a batch of reads is shown with the batch as JSON": (
        "BatchGetItem",
        {
            "RequestItems": {"bad!name": {"Keys": [{"pk": {"S": "a"}}]}},
            "ReturnConsumedCapacity": "BOGUS",
        },
        '2 validation errors detected: Value \'{"bad!name":{"Keys":[{"pk":{"S":"a"}}]}}\' '
        f"at 'requestItems' {FAILED}{MAP_KEYS}; Value 'BOGUS' {CAPACITY}",
    ),
    "a batch of 26 writes": (
        "BatchWriteItem",
        {"RequestItems": {"abc": [{}] * 26}},
        f"{ONE}Value at 'RequestItems.abc.member' {FAILED}"
        "Member must have length less than or equal to 25",
    ),
    "a batch without writes": (
        "BatchWriteItem",
        {"RequestItems": {"abc": []}},
        f"{ONE}Value '{{abc=[]}}' at 'requestItems' {FAILED}Map value must satisfy constraint: "
        "[Member must have length less than or equal to 25, "
        "Member must have length greater than or equal to 1]",
    ),
    "wrong enums of a batch of writes beat a bad table name": (
        "BatchWriteItem",
        {
            "RequestItems": {"bad!name": [{}]},
            "ReturnConsumedCapacity": "BOGUS",
            "ReturnItemCollectionMetrics": "BOGUS2",
        },
        f"2 validation errors detected: Value 'BOGUS' {CAPACITY}; Value 'BOGUS2' {METRICS}",
    ),
    "a bad table name in a batch of writes is shown as Java prints the batch": (
        "BatchWriteItem",
        {"RequestItems": {"bad!name": [{"PutRequest": {"Item": {"pk": {"S": "x"}}}}]}},
        f"{ONE}Value '{{bad!name=[WriteRequest(putRequest=PutRequest(item={{pk=AttributeValue("
        "s=x, n=null, b=null, iNT=null, dECIMAL=null, dOUBLE=null, sS=null, nS=null, bS=null, "
        "iNTSET=null, dECIMALSET=null, dOUBLESET=null, m=null, l=null, nULL=null, bOOL=null)}, "
        f"workloadProfileName=null), deleteRequest=null)]}}' at 'requestItems' {FAILED}{MAP_KEYS}",
    ),
    "a bad table name in a transaction": (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {"TableName": "bad!name", "Item": {}}}]},
        f"{ONE}Value 'bad!name' at 'transactItems.1.member.put.tableName' {PATTERN}",
    ),
    "an empty transaction": (
        "TransactGetItems",
        {"TransactItems": []},
        f"{ONE}Value at 'TransactItems' {FAILED}Member must have length greater than or equal to 1",
    ),
    "a long token": (
        "TransactWriteItems",
        {"TransactItems": [{}], "ClientRequestToken": "x" * 37, "ReturnConsumedCapacity": BAD},
        f"{ONE}Value at 'ClientRequestToken' {FAILED}"
        "Member must have length less than or equal to 36",
    ),
    "a table without a name": (
        "CreateTable",
        {},
        "The parameter 'TableName' is required but was not present in the request",
    ),
    "a table with a short name": (
        "CreateTable",
        {"TableName": "ab", "KeySchema": [HASH], "AttributeDefinitions": []},
        f"{ONE}Value 'ab' at 'tableName' {FAILED}"
        "Member must have length greater than or equal to 3",
    ),
    "a key of three attributes": (
        "CreateTable",
        {"TableName": "abc", "KeySchema": [HASH] * 3, "AttributeDefinitions": []},
        f"{ONE}Value '[KeySchemaElement(attributeName=pk, keyType=HASH), "
        "KeySchemaElement(attributeName=pk, keyType=HASH), "
        "KeySchemaElement(attributeName=pk, keyType=HASH)]' at 'keySchema' "
        f"{FAILED}Member must have length less than or equal to 2",
    ),
    "a wrong attribute type": (
        "CreateTable",
        {
            "TableName": "abc",
            "KeySchema": [HASH],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": BAD}],
        },
        f"{ONE}Value 'INVALID' at 'attributeDefinitions.1.member.attributeType' {FAILED}"
        "Member must satisfy enum value set: [B, N, S]",
    ),
    "global indexes come before local ones": (
        "CreateTable",
        {
            "TableName": "abc",
            "KeySchema": [HASH],
            "AttributeDefinitions": [],
            "LocalSecondaryIndexes": [{"IndexName": "l1", **INDEX}],
            "GlobalSecondaryIndexes": [{"IndexName": "g1", **INDEX}],
        },
        f"2 validation errors detected: Value 'g1' at 'globalSecondaryIndexes.1.member.indexName' "
        f"{FAILED}Member must have length greater than or equal to 3; "
        f"Value 'l1' at 'localSecondaryIndexes.1.member.indexName' "
        f"{FAILED}Member must have length greater than or equal to 3",
    ),
    "a limit of zero in Query": (
        "Query",
        {"TableName": "abc", "Limit": 0},
        f"{ONE}Value at 'Limit' {FAILED}Member must have value greater than or equal to 1",
    ),
    "a limit of zero in Scan": (
        "Scan",
        {"TableName": "abc", "Limit": 0},
        f"{ONE}Value at 'Limit' {FAILED}Member must have value greater than or equal to 1",
    ),
    "a wrong operator beats a wrong Select in Query, without a count": (
        "Query",
        {"TableName": "abc", "Select": "BOGUS", "ConditionalOperator": "XOR"},
        "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]",
    ),
    "a name to start from in ListTables (dynalite)": (
        "ListTables",
        {"ExclusiveStartTableName": "a;", "Limit": 500},
        f"3 validation errors detected: Value 'a;' at 'exclusiveStartTableName' {PATTERN}; "
        f"Value 'a;' at 'exclusiveStartTableName' {FAILED}"
        "Member must have length greater than or equal to 3; "
        f"Value '500' at 'limit' {FAILED}Member must have value less than or equal to 100",
    ),
    "a resource without a name (dynalite)": ("TagResource", {}, "Invalid TableArn"),
    "a known resource without tags (dynalite)": (
        "TagResource",
        {"ResourceArn": "arn:x"},
        f"{ONE}Value null at 'tags' {NOT_NULL}",
    ),
    "a short name to describe": (
        "DescribeTable",
        {"TableName": "ab"},
        f"{ONE}Value 'ab' at 'tableName' {FAILED}Member must have length greater than or equal to "
        "3",
    ),
    "a short name to delete (dynalite)": (
        "DeleteTable",
        {"TableName": "ab"},
        "TableName must be at least 3 characters long and at most 255 characters long",
    ),
}


@pytest.mark.parametrize(
    ("operation", "request_", "message"), RECORDED.values(), ids=RECORDED.keys()
)
def test_the_recorded_answer_is_given(
    operation: str, request_: dict[str, Any], message: str
) -> None:
    assert refusal(operation, request_) == message


@pytest.mark.parametrize("operation", ["PutItem", "DescribeTable", "BatchWriteItem"])
def test_a_table_may_be_named_by_its_arn(operation: str) -> None:
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/abc"
    VALIDATORS[operation](
        {"TableName": arn, "Item": {}}
        if operation != "BatchWriteItem"
        else {"RequestItems": {arn: [{}]}}
    )


def test_a_global_index_may_have_a_key_of_many_attributes() -> None:
    VALIDATORS["CreateTable"](
        {
            "TableName": "abc",
            "KeySchema": [HASH],
            "AttributeDefinitions": [],
            "GlobalSecondaryIndexes": [
                {"IndexName": "ggg", "KeySchema": [HASH] * 8, "Projection": {}}
            ],
        }
    )


def test_members_of_a_structure_are_named_with_it() -> None:
    # dynalite compared the violations as a set: their order is not known.
    message = refusal("UpdateTimeToLive", {"TableName": "abc", "TimeToLiveSpecification": {}})
    count, _, listed = message.partition(" detected: ")
    assert count == "2 validation errors"
    assert set(listed.split("; ")) == {
        f"Value null at 'timeToLiveSpecification.enabled' {NOT_NULL}",
        f"Value null at 'timeToLiveSpecification.attributeName' {NOT_NULL}",
    }


def test_no_more_than_ten_violations_are_listed() -> None:
    message = refusal("TransactGetItems", {"TransactItems": [{}] * 20})
    assert message.startswith("10 validation errors detected: ")
    assert message.count("Member must not be null") == 10


def test_a_null_member_is_an_absent_member() -> None:
    request = {"TableName": "abc", "Key": {"pk": {"S": "a", "N": None}}, "ConsistentRead": None}
    VALIDATORS["GetItem"](request)
    assert request == {"TableName": "abc", "Key": {"pk": {"S": "a"}}}


@pytest.mark.parametrize("operation", ["CreateTable", "UpdateTable"])
def test_a_wrong_table_class_is_told_when_nothing_else_is_wrong(operation: str) -> None:
    request: dict[str, Any] = {
        "TableName": "abc",
        "KeySchema": [HASH],
        "AttributeDefinitions": [],
        "TableClass": "BOGUS",
    }
    assert refusal(operation, request).startswith("Invalid table-class parameter provided.")
    request["BillingMode"] = BAD
    assert "table-class" not in refusal(operation, request)


LARGE: dict[str, tuple[str, dict[str, Any]]] = {
    "twenty thousand tables without writes": (
        "BatchWriteItem",
        {"RequestItems": {f"t{number:05}": [] for number in range(20_000)}},
    ),
    "a bad name behind twenty thousand tables": (
        "BatchGetItem",
        {"RequestItems": {f"t{number:05}": {"Keys": [{}]} for number in range(20_000)} | {"!": {}}},
    ),
    "twenty thousand wrong types": (
        "CreateTable",
        {
            "TableName": "abc",
            "KeySchema": [HASH],
            "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": BAD}] * 20_000,
        },
    ),
    "names of a megabyte": (
        "BatchGetItem",
        {"RequestItems": {f"{number}" + "x" * 1_000_000: {"Keys": [{}]} for number in range(10)}},
    ),
    "a path of a megabyte": (
        "BatchWriteItem",
        {"RequestItems": {"x" * 1_000_000: [{"PutRequest": {}}] * 26}},
    ),
    "a string of ten megabytes": ("PutItem", {"TableName": "!" * 10_000_000, "Item": {}}),
    "a value nested 190 times beside a bad name": (
        "BatchGetItem",
        {"RequestItems": {"!": {"Keys": [{"pk": nested(190)}]}}},
    ),
}


@pytest.mark.parametrize(("operation", "request_"), LARGE.values(), ids=LARGE.keys())
def test_a_large_request_costs_little_to_refuse(operation: str, request_: dict[str, Any]) -> None:
    started = process_time()
    message = refusal(operation, request_)
    assert process_time() - started < 1
    assert len(message) < 200_000


def test_unknown_members_are_taken_out() -> None:
    request: dict[str, Any] = {
        "TableName": "abc",
        "Key": {"pk": {"S": "a", "X": 1}, "sk": {"L": [{"Y": [], "N": "1"}]}},
        "Colour": ["red", None],
    }
    VALIDATORS["GetItem"](request)
    assert request == {
        "TableName": "abc",
        "Key": {"pk": {"S": "a"}, "sk": {"L": [{"N": "1"}]}},
    }


AMENDED = validation_texts.amend(load())
MEMBERS = st.recursive(
    st.sampled_from(["", "ab", "abc", "a!", "x" * 300, "arn:x", "HASH", "ALL_OLD", "INVALID"])
    | st.integers(-1, 1_000)
    | st.booleans()
    | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


@given(st.sampled_from(OPERATIONS), st.data())
def test_there_are_words_for_everything_that_is_refused(
    operation: str, data: st.DataObject
) -> None:
    name = AMENDED.inputs[operation]
    assert name is not None
    shape = AMENDED.shapes[name]
    request = data.draw(st.dictionaries(st.sampled_from(list(shape.members) or ["X"]), MEMBERS))
    try:
        VALIDATORS[operation](request)
    except SerializationException:
        return
    except ValidationException as refused:
        assert refused.message
        return
    assert not list(violations(AMENDED, shape, request, ""))
