"""The comparison itself: what it treats as equal, what as different, and when it is skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .answers import Answer, normalised
from .conftest import may_be_skipped
from .differences import Difference, _read
from .notation import send

LOCAL_ARN = "arn:aws:dynamodb:ddblocal:000000000000:table/Music"
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/Music"
LABEL = "2026-11-16T14:44:07.354"
SHARD = {
    "ShardId": "shardId-00000001794840247357-42daf811",
    "SequenceNumberRange": {"StartingSequenceNumber": "000000000000000007730"},
}
OTHER = {
    "ShardId": "shardId-00000001794840247393-00000002",
    "SequenceNumberRange": {"StartingSequenceNumber": "100000000000000000001"},
}
CLOSED = {
    **OTHER,
    "SequenceNumberRange": {
        **OTHER["SequenceNumberRange"],  # type: ignore[dict-item]
        "EndingSequenceNumber": "100000000000000000009",
    },
}


def answered(status: int = 200, **body: Any) -> Answer:
    return normalised(status, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"TableArn": ARN}, {"TableArn": LOCAL_ARN}),
        ({"StreamArn": f"{ARN}/stream/{LABEL}"}, {"StreamArn": f"{LOCAL_ARN}/stream/{LABEL}"}),
        ({"SequenceNumber": "1" * 21}, {"SequenceNumber": "0" * 21}),
        ({"CreationDateTime": 1794840247.354}, {"CreationDateTime": 1794840240.0}),
        ({"eventID": "0" * 32}, {"eventID": "0e487166-3f9c-4941-a74a-70346166f1ff"}),
        ({"Shards": [SHARD]}, {"Shards": [OTHER, SHARD, OTHER]}),
        (
            {"ShardIterator": f"{ARN}/stream/{LABEL}|1|AAAAAQ=="},
            {"ShardIterator": f"{LOCAL_ARN}/stream/{LABEL}|001|c2hhcmRJZA"},
        ),
    ],
)
def test_values_of_one_shape_are_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert answered(**one) == answered(**other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"TableArn": ARN}, {"TableArn": f"{ARN}2"}),
        ({"TableArn": ARN}, {"TableArn": "Music"}),
        ({"TableArn": ARN}, {}),
        ({"SequenceNumber": "1" * 21}, {"SequenceNumber": "1" * 20}),
        ({"SequenceNumber": "1" * 21}, {"SequenceNumber": None}),
        ({"CreationDateTime": 1794840247.354}, {"CreationDateTime": "2026-11-16"}),
        ({"eventID": "0" * 32}, {"eventID": ""}),
        ({"Shards": [SHARD]}, {"Shards": []}),
        ({"Shards": [SHARD]}, {"Shards": [OTHER, CLOSED]}),
        ({"Shards": [SHARD]}, {"Shards": [{**SHARD, "ParentShardId": OTHER["ShardId"]}]}),
        ({"ShardIterator": f"{ARN}/stream/{LABEL}|1|AA=="}, {"ShardIterator": "AA=="}),
    ],
)
def test_values_of_two_shapes_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert answered(**one) != answered(**other)


def test_an_error_of_another_namespace_differs() -> None:
    right = answered(400, __type="com.amazon.coral.validate#ValidationException", message="no")
    wrong = answered(
        400, __type="com.amazonaws.dynamodb.v20120810#ValidationException", message="no"
    )
    none = answered(400, __type="ValidationException", message="no")
    assert str(right) == "400 ValidationException: no"
    assert str(wrong) == "400 com.amazonaws.dynamodb.v20120810#ValidationException: no"
    assert str(none) == "400 #ValidationException: no"


def listed(local: str, partita: str, *more: str) -> Difference:
    lines = ["reason  it is so", "source  ours so", *more, f"local   {local}", f"partita {partita}"]
    (one,) = _read("\n".join(lines))
    return one


def test_a_variable_stands_for_the_same_on_both_sides() -> None:
    one = listed("400 X: $rest", "400 X: 1 error: $rest")
    step = send("PutItem", TableName="Music")
    assert one.meets("any", 1, step, "400 X: wrong")
    assert one.expects(step, "400 X: wrong", "400 X: 1 error: wrong")
    assert not one.expects(step, "400 X: wrong", "400 X: 1 error: other")
    assert one.unbound == set()


def test_a_variable_of_one_side_is_unbound() -> None:
    assert listed("200 $body", "400 X: no").unbound == {"body"}
    assert listed("400 X: no", "400 X: $what").unbound == {"what"}


def test_what_was_asked_is_a_text_of_the_request() -> None:
    one = listed("400 X: no table", "400 X: no table $asked")
    step = send("PutItem", TableName="Music", Item={"pk": {"S": "a"}})
    for text, is_expected in (("Music", True), ("a", True), ("pk", True), ("Musi", False)):
        assert one.expects(step, "400 X: no table", f"400 X: no table {text}") is is_expected
    assert one.unbound == set()


def test_a_case_may_name_its_requests() -> None:
    one = listed("400 X", "400 Y", "case    music: some", "case    music: others #2 #5")
    step = send("Scan", TableName="Music")
    assert [one.meets("music: some", number, step, "400 X") for number in (1, 2)] == [True, True]
    met = [number for number in range(1, 7) if one.meets("music: others", number, step, "400 X")]
    assert met == [2, 5]
    assert not one.meets("music: none", 2, step, "400 X")


def test_ci_does_not_skip_what_could_run(tmp_path: Path) -> None:
    for tool in ("java", "npm"):
        (tmp_path / tool).touch(mode=0o755)
    assert may_be_skipped({"PATH": str(tmp_path)})
    assert not may_be_skipped({"PATH": str(tmp_path), "CI": "true"})
    (tmp_path / "npm").unlink()
    assert may_be_skipped({"PATH": str(tmp_path), "CI": "true"})
