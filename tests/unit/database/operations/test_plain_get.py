"""The shortest way of GetItem answers as the long one does, or leaves the request to it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from partita.clock import system_clock
from partita.database.database import Database
from partita.database.operations.data_plane.plain_get import get_plain_item
from partita.database.storage.branch import BranchEngine
from partita.errors import DynamoDBError
from partita.registry import READS, WRITES
from partita.server.protocol import codec
from partita.server.protocol.validation import compile_validators
from partita.testing.loop import ManualLoop

KEYS = {"strings": "S", "numbers": "N", "binaries": "B"}
VALIDATE = compile_validators(["GetItem"])["GetItem"]
TEXTS = ("", "a", "b", "AA==", "1", "01", "1e0", "\x00", "ä", "x" * 300, "x" * 1025, "x" * 2049)


def _opened() -> Database:
    loop = ManualLoop()
    database = Database(
        BranchEngine(),
        call_soon=loop.call_soon,
        call_from_thread=loop.call_soon,
        call_later=loop.call_later,
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
            database.write(WRITES["CreateTable"], definition, lambda answer: None)
            value = {"S": "a", "N": "1", "B": "AA=="}[kind]
            item = {one: {kind: value} for one in key} | {"more": {"S": "ä"}}
            put = {"TableName": table, "Item": item}
            database.write(WRITES["PutItem"], put, lambda answer: None)
    loop.run_ready()
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


def _in_general(body: bytes) -> bytes | str:
    try:
        request: dict[str, Any] = codec.decode(body)
        VALIDATE(request)
        return DATABASE.read(READS["GetItem"], request)
    except DynamoDBError as error:
        return error.wire_code


@given(requests)
def test_what_is_answered_is_answered_as_always(request: dict[str, Any]) -> None:
    body = json.dumps(request).encode()
    plain = get_plain_item(DATABASE.reads, body)
    assert plain is None or plain == _in_general(body)


@given(st.binary(max_size=40) | st.just(b'{"TableName":"strings","Key":{"pk":{"S":"\\ud800"}}}'))
def test_what_cannot_be_read_is_left_to_others(body: bytes) -> None:
    assert get_plain_item(DATABASE.reads, body) is None


def test_a_key_of_strings_is_answered() -> None:
    found = b'{"TableName":"strings","Key":{"pk":{"S":"a"}},"ConsistentRead":true}'
    assert (
        get_plain_item(DATABASE.reads, found)
        == '{"Item":{"pk":{"S":"a"},"more":{"S":"ä"}}}'.encode()
    )
    absent = b'{"TableName":"strings-sorted","Key":{"pk":{"S":"a"},"sk":{"S":"b"}}}'
    assert get_plain_item(DATABASE.reads, absent) == b"{}"
