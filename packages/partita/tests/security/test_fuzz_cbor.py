"""CBOR: what Java's SDK sends is decoded, and no body is expensive or fails the server."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from random import Random
from typing import Any

import cbor2
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.server.protocol.cbor import DEPTH_MAX, ITEMS_MAX, NotDecoded, decode, to_json
from testkit.attacks import corpus
from testkit.attacks.corpus import CBOR, Body, Case, head
from testkit.attacks.fuzzing import Signing, both_lengths, fuzz, spoilt
from testkit.servers.users import ADMINISTRATOR, People

TO_JSON_SECONDS_MAX = 0.1
"""Decoding takes 15 ms, but the machine may be busy."""
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def in_json(value: Any) -> Any:
    """Returns a value with its blobs in base64."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {name: in_json(one) for name, one in value.items()}
    return [in_json(one) for one in value] if isinstance(value, list) else value


@settings(max_examples=300)
@given(value=VALUES, is_indefinite=st.booleans())
def test_what_json_can_say_is_decoded(value: Any, is_indefinite: bool) -> None:
    encoded = cbor2.dumps(value, indefinite_containers=is_indefinite)
    assert decode(encoded) == in_json(value)


def as_jackson_writes(value: Any) -> bytes:
    """Maps and arrays without their length, long texts in parts, blobs whole, times behind tag 1:
    what the generator in Java's SDK does."""
    if isinstance(value, dict):
        members = (as_jackson_writes(name) + as_jackson_writes(one) for name, one in value.items())
        return b"\xbf" + b"".join(members) + b"\xff"
    if isinstance(value, list):
        return b"\x9f" + b"".join(map(as_jackson_writes, value)) + b"\xff"
    if isinstance(value, str) and len(value) > 3_900:
        text = value.encode()
        parts = [text[start : start + 3_900] for start in range(0, len(text), 3_900)]
        return b"\x7f" + b"".join(head(3, len(part)) + part for part in parts) + b"\xff"
    return bytes(cbor2.dumps(value))


def test_the_largest_request_of_javas_sdk_is_decoded_fast() -> None:
    record = {"Data": b"\x00\xff" * 10_000, "PartitionKey": "k" * 256, "ExplicitHashKey": "1" * 39}
    request = {"Records": [record] * 500, "StreamName": "s" * 128, "StreamARN": "a" * 5_000}
    encoded = as_jackson_writes(request)
    began = time.process_time()
    assert json.loads(to_json(encoded)) == in_json(request)
    assert time.process_time() - began < 10 * TO_JSON_SECONDS_MAX


def test_times_are_in_milliseconds() -> None:
    assert decode(b"\xa1\x61t\xc1\x1b" + (1_700_000_000_123).to_bytes(8, "big")) == {
        "t": 1_700_000_000.123
    }
    assert decode(b"\xc1\xfb\x40\x8f\x40\x00\x00\x00\x00\x00") == 1.0


@pytest.mark.parametrize("tag", [0, *range(2, 6), 21, 25, 28, 29, 30, 35, 36, 37, 256, 258, 260])
def test_no_tag_but_that_of_times_is_decoded(tag: int) -> None:
    for content in (b"\x00", b"\x80", b"\x60", b"\x41a", b"\x82\x01\x01"):
        with pytest.raises(NotDecoded):
            decode(b"\xa1\x61a" + head(6, tag) + content)
        with pytest.raises(NotDecoded):
            decode(head(6, tag) + content)


def test_depth_and_number_of_items_have_a_limit() -> None:
    for opened, closed in ((b"\x81", b""), (b"\x9f", b"\xff"), (b"\xa1\x61a", b"")):
        assert decode(opened * DEPTH_MAX + b"\x00" + closed * DEPTH_MAX) is not None
        deeper = DEPTH_MAX + 1
        with pytest.raises(NotDecoded):
            decode(opened * deeper + b"\x00" + closed * deeper)
    fits = ITEMS_MAX - 1
    assert len(decode(head(4, fits) + b"\x00" * fits)) == fits
    assert len(decode(b"\x9f" + b"\x00" * fits + b"\xff")) == fits
    assert decode(b"\x7f" + b"\x61a" * fits + b"\xff") == "a" * fits
    more = ITEMS_MAX
    for body in (
        head(4, more) + b"\x00" * more,
        b"\x9f" + b"\x00" * more + b"\xff",
        b"\x7f" + b"\x61a" * more + b"\xff",
        head(5, more // 2 + 1) + b"\x61a\x00" * (more // 2 + 1),
    ):
        with pytest.raises(NotDecoded):
            decode(body)


@pytest.mark.parametrize("size", [corpus.SMALL, corpus.LARGE, corpus.LARGEST])
def test_the_worst_is_refused_or_decoded_at_once(size: int) -> None:
    for name, body in corpus.cbor_bodies(size):
        began = time.process_time()
        decoded = to_json(body)
        assert time.process_time() - began < TO_JSON_SECONDS_MAX, name
        assert len(decoded) < 2 * size, name


REQUESTS: dict[str, Any] = {
    "PutRecords": {
        "StreamName": "no-such",
        "Records": [{"Data": b"abc", "PartitionKey": "p"}, {"Data": b"", "PartitionKey": "q"}],
    },
    "GetShardIterator": {
        "StreamName": "no-such",
        "ShardId": "shardId-000000000000",
        "ShardIteratorType": "AT_TIMESTAMP",
        "Timestamp": cbor2.CBORTag(1, 1_700_000_000_000),
    },
    "CreateStream": {"StreamName": "", "ShardCount": 1, "Tags": {"a": "b"}},
    "ListStreams": {},
}
WORDS = (
    *(b"\xd8\x1c", b"\xd8\x1d\x00", b"\xc2", b"\xc4\x82", b"\xd9\x01\x00", b"\xc1", b"\xd8\x23"),
    *(b"\x9f", b"\xbf", b"\x7f", b"\x5f", b"\xff", b"\x80", b"\xa0", b"\xf6", b"\xf7", b"\xf8\x20"),
    *(
        b"\x1b" + b"\xff" * 8,
        b"\x3b" + b"\xff" * 8,
        b"\x9b" + b"\xff" * 8,
        b"\x5b\x7f" + b"\xff" * 7,
    ),
    *(
        b"\xf9\x7e\x00",
        b"\xfb\x7f\xf0" + bytes(6),
        b"\x63\xed\xa0\x80",
        b"\x64Data",
        b"\x67Records",
    ),
)


def spoilt_case(random: Random) -> Case:
    operation = random.choice(tuple(REQUESTS))
    content = REQUESTS[operation]
    body = as_jackson_writes(content) if random.random() < 0.5 else cbor2.dumps(content)
    target = f"Kinesis_20131202.{operation}"
    return corpus.case("", "POST", "/", Body(CBOR, spoilt(random, body, WORDS)), target)


def test_whatever_the_bytes_json_comes_out_or_nothing() -> None:
    for number in range(20_000):
        decoded = to_json(spoilt_case(Random(number)).body)
        if decoded:
            orjson.loads(decoded)


@both_lengths
def test_no_cbor_fails_the_server(people: People, rounds: int) -> None:
    signing = Signing(people.add(policies=[ADMINISTRATOR]), "kinesis")
    assert people.server is not None
    fuzz(
        people.server.port,
        rounds,
        lambda random: signing.signed(spoilt_case(random)),
        lambda answer: answer.status in (200, 400),
    )
