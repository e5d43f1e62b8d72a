"""The shortest ways of GetItem and Query answer as the long ones do, or leave it to them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from partita.assembly.service_registry import READS, WRITES
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.operations.data_plane.fast_paths import get_plain_item, query_plain_range
from partita.database.operations.operation_context import PermittedRequest
from partita.database.storage.branch_engine import BranchEngine
from partita.errors import DynamoDBError
from partita.foundation.clock import system_clock
from partita.server.protocol import json_codec
from partita.server.protocol.request_validation import compile_validators
from partita.testing.manual_loop import ManualLoop

KEYS = {"strings": "S", "numbers": "N", "binaries": "B"}
VALIDATORS = compile_validators(["GetItem", "Query"])
TEXTS = ("", "a", "b", "AA==", "1", "01", "1e0", "\x00", "ä", "x" * 300, "x" * 1025, "x" * 2049)


LOOP = ManualLoop()


def _opened() -> EmbeddedDatabase:
    database = EmbeddedDatabase(
        BranchEngine(),
        call_soon=LOOP.call_soon,
        call_from_thread=LOOP.call_soon,
        call_later=LOOP.call_later,
        clock=system_clock,
    )
    for name, kind in KEYS.items():
        for sort in ({}, {"sk": kind}):
            table = name + "-sorted" * bool(sort)
            key = {"pk": kind, **sort}
            definition = {
                "TableName": table,
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    {"AttributeName": one, "AttributeType": kind} for one in key
                ],
                "KeySchema": [
                    {"AttributeName": one, "KeyType": role}
                    for one, role in zip(key, ("HASH", "RANGE"), strict=False)
                ],
            }
            database.write(WRITES["CreateTable"], PermittedRequest(definition), lambda answer: None)
            value = {"S": "a", "N": "1", "B": "AA=="}[kind]
            item = {one: {kind: value} for one in key} | {"more": {"S": "ä"}}
            put = {"TableName": table, "Item": item}
            database.write(WRITES["PutItem"], PermittedRequest(put), lambda answer: None)
            if kind == "S" and sort:
                for place in ("1", "b", "ä"):
                    put = {"TableName": table, "Item": {**item, "sk": {"S": place}}}
                    database.write(WRITES["PutItem"], PermittedRequest(put), lambda answer: None)
    LOOP.run_ready()
    return database


DATABASE = _opened()

values: st.SearchStrategy[Any] = st.one_of(
    st.dictionaries(st.sampled_from(["S", "N", "B", "X"]), st.sampled_from(TEXTS), max_size=2),
    st.sampled_from([None, 1, "a", [], {"S": 1}, {"S": None}, {"BOOL": True}, {"M": {}}]),
)
keys = st.dictionaries(st.sampled_from(["pk", "sk", "other"]), values, max_size=3)
likely_keys: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"pk": st.builds(dict, S=st.sampled_from(TEXTS))},
    optional={"sk": st.builds(dict, S=st.sampled_from(TEXTS))},
)
tables = st.sampled_from([*KEYS, *(f"{name}-sorted" for name in KEYS), "none", "", 1, None])
others = st.dictionaries(
    st.sampled_from(["ConsistentRead", "ReturnConsumedCapacity", "AttributesToGet", "Unknown"]),
    st.sampled_from([True, False, None, "TOTAL", "NONE", ["more"], 1]),
    max_size=2,
)
requests = st.builds(
    lambda table, key, more: {"TableName": table, "Key": key, **more},
    tables,
    st.one_of(likely_keys, keys),
    others,
)


conditions = st.sampled_from(
    [
        "pk = :p",
        ":p = pk",
        "#p = :p",
        "pk = :p AND sk = :s",
        "pk = :p AND sk > :s",
        "#p = :p AND begins_with(sk, :s)",
        "pk = :p AND sk BETWEEN :s AND :t",
        "pk = :p AND sk BETWEEN :s AND :s",
        "pk > :p",
        "pk = :p OR sk = :s",
        "sk = :s",
        "pk = :p AND pk = :p",
        "pk = :p AND more = :s",
        "pk.a = :p",
        "pk = ",
        "",
    ]
)
placeholders = st.one_of(
    st.dictionaries(st.sampled_from([":p", ":s", ":t", ":" + "x" * 300]), values, max_size=3),
    st.fixed_dictionaries(
        {":p": st.just({"S": "a"})},
        optional={
            name: st.one_of(
                st.builds(dict, S=st.sampled_from(TEXTS)),
                st.builds(dict, N=st.sampled_from(["1", "0", "01", "-1", "1.0", "\u0661", ""])),
            )
            for name in (":s", ":t")
        },
    ),
)
names = st.dictionaries(st.sampled_from(["#p", "#x"]), st.sampled_from(["pk", "more", ""]))
of_queries = st.fixed_dictionaries(
    {},
    optional={
        "ExpressionAttributeNames": names,
        "ScanIndexForward": st.sampled_from([True, False, None, 0]),
        "ConsistentRead": st.booleans(),
        "FilterExpression": st.sampled_from(
            ["more = :s", "attribute_exists(more)", "more > :t", "sk = :s", "#x = :s", "pk.a = :s"]
        ),
        "ProjectionExpression": st.sampled_from(["sk", "#x", "more, sk", "pk.a", "more, more", ""]),
        "Limit": st.just(1),
        "IndexName": st.just("none"),
    },
)
queries = st.builds(
    lambda table, condition, given, more: {
        "TableName": table,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": given,
        **more,
    },
    tables,
    conditions,
    placeholders,
    of_queries,
)


def _in_general(operation: str, body: bytes) -> bytes | str:
    try:
        request: dict[str, Any] = json_codec.decode(body)
        VALIDATORS[operation](request)
        return DATABASE.read(READS[operation], PermittedRequest(request))
    except DynamoDBError as error:
        return error.wire_code


@given(requests)
def test_what_is_answered_is_answered_as_always(request: dict[str, Any]) -> None:
    body = json.dumps(request).encode()
    plain = get_plain_item(DATABASE.reads, body)
    assert plain is None or plain == _in_general("GetItem", body)


@given(queries)
def test_so_is_a_query(request: dict[str, Any]) -> None:
    body = json.dumps(request).encode()
    plain = query_plain_range(DATABASE.reads, body)
    assert plain is None or plain == _in_general("Query", body)


@given(st.binary(max_size=40) | st.just(b'{"TableName":"strings","Key":{"pk":{"S":"\\ud800"}}}'))
def test_what_cannot_be_read_is_left_to_others(body: bytes) -> None:
    assert get_plain_item(DATABASE.reads, body) is None
    assert query_plain_range(DATABASE.reads, body) is None


def test_a_key_of_strings_is_answered() -> None:
    found = b'{"TableName":"strings","Key":{"pk":{"S":"a"}},"ConsistentRead":true}'
    assert (
        get_plain_item(DATABASE.reads, found)
        == '{"Item":{"pk":{"S":"a"},"more":{"S":"ä"}}}'.encode()
    )
    absent = b'{"TableName":"strings-sorted","Key":{"pk":{"S":"a"},"sk":{"S":"b"}}}'
    assert get_plain_item(DATABASE.reads, absent) != b"{}"
    absent = absent.replace(b'"b"', b'"c"')
    assert get_plain_item(DATABASE.reads, absent) == b"{}"


def test_a_range_of_strings_is_answered_in_both_directions() -> None:
    request = {
        "TableName": "strings-sorted",
        "KeyConditionExpression": "#p = :p AND sk >= :s",
        "ExpressionAttributeNames": {"#p": "pk"},
        "ExpressionAttributeValues": {":p": {"S": "a"}, ":s": {"S": "a"}},
    }
    for forward, expected in ((True, ["a", "b", "ä"]), (False, ["ä", "b", "a"])):
        body = json.dumps({**request, "ScanIndexForward": forward}).encode()
        answer = query_plain_range(DATABASE.reads, body)
        assert answer is not None
        found = json.loads(answer)
        assert [item["sk"]["S"] for item in found["Items"]] == expected
        assert (found["Count"], found["ScannedCount"]) == (3, 3)


def test_a_filter_and_a_projection_are_honoured() -> None:
    request = {
        "TableName": "strings-sorted",
        "KeyConditionExpression": "pk = :p",
        "FilterExpression": "begins_with(more, :m)",
        "ProjectionExpression": "#s",
        "ExpressionAttributeNames": {"#s": "sk"},
        "ExpressionAttributeValues": {":p": {"S": "a"}, ":m": {"S": "ä"}},
    }
    answer = query_plain_range(DATABASE.reads, json.dumps(request).encode())
    assert answer is not None
    assert json.loads(answer)["Items"] == [{"sk": {"S": place}} for place in ("1", "a", "b", "ä")]
    request["ExpressionAttributeValues"] = {":p": {"S": "a"}, ":m": {"S": "b"}}
    answer = query_plain_range(DATABASE.reads, json.dumps(request).encode())
    assert answer == b'{"Items":[],"Count":0,"ScannedCount":4}'


def test_a_query_of_more_than_a_page_is_left_to_others() -> None:
    database = _opened()
    for place in range(3):
        item = {"pk": {"S": "large"}, "sk": {"S": str(place)}, "text": {"S": "x" * 390_000}}
        put = {"TableName": "strings-sorted", "Item": item}
        database.write(WRITES["PutItem"], PermittedRequest(put), lambda answer: None)
    LOOP.run_ready()
    request = {
        "TableName": "strings-sorted",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "large"}},
    }
    assert query_plain_range(database.reads, json.dumps(request).encode()) is None
    assert b"LastEvaluatedKey" in database.read(READS["Query"], PermittedRequest(request))
