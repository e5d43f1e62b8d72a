"""Kinesis: tags of streams, by name and by ARN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.foundation.service_limits import EVENT_STREAM_TAGS_MAX

from .event_reading import ACCOUNT
from .refusals import refusal

Create = Callable[..., str]
INVALID = "InvalidArgumentException"


def tags_of(kinesis: Any, name: str) -> dict[str, str]:
    listed = kinesis.list_tags_for_stream(StreamName=name)
    assert not listed["HasMoreTags"]
    return {tag["Key"]: tag["Value"] for tag in listed["Tags"]}


def test_tags_come_and_go(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(Tags={"team": "news"})
    kinesis.add_tags_to_stream(StreamName=name, Tags={"stage": "test", "team": "sport"})
    assert tags_of(kinesis, name) == {"stage": "test", "team": "sport"}
    kinesis.remove_tags_from_stream(StreamName=name, TagKeys=["stage", "absent"])
    assert tags_of(kinesis, name) == {"team": "sport"}


def test_tags_of_a_resource_are_those_of_its_stream(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    arn = f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/{name}"
    kinesis.tag_resource(ResourceARN=arn, Tags={"a": "1", "b": "2"})
    kinesis.untag_resource(ResourceARN=arn, TagKeys=["a"])
    assert kinesis.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "b", "Value": "2"}]
    assert tags_of(kinesis, name) == {"b": "2"}


def test_tags_are_listed_in_pages(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(Tags=dict.fromkeys("cab", ""))
    page = kinesis.list_tags_for_stream(StreamName=name, Limit=2)
    assert ([tag["Key"] for tag in page["Tags"]], page["HasMoreTags"]) == (["a", "b"], True)
    page = kinesis.list_tags_for_stream(StreamName=name, Limit=2, ExclusiveStartTagKey="b")
    assert ([tag["Key"] for tag in page["Tags"]], page["HasMoreTags"]) == (["c"], False)


def test_a_stream_has_no_more_than_fifty_tags(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    most = {f"key{number}": "" for number in range(EVENT_STREAM_TAGS_MAX)}
    kinesis.add_tags_to_stream(StreamName=name, Tags=most)
    code, text = refusal(kinesis.add_tags_to_stream, StreamName=name, Tags={"one more": ""})
    assert code == INVALID
    assert text.startswith(f"Failed to add tags to stream {name} under account {ACCOUNT}")
    assert tags_of(kinesis, name) == most


def test_strange_characters_are_refused(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    text = (
        "Some tags contain invalid characters. Valid characters: "
        "Unicode letters, digits, white space, _ . / = + - % @."
    )
    for tags in ({"a;b": "c"}, {"a": "b;c"}):
        assert refusal(kinesis.add_tags_to_stream, StreamName=name, Tags=tags) == (INVALID, text)
    code, percent = refusal(kinesis.add_tags_to_stream, StreamName=name, Tags={"a": "5 %"})
    assert code == INVALID
    assert percent.startswith(f"Failed to add tags to stream {name} under account {ACCOUNT}")
    refused = refusal(kinesis.remove_tags_from_stream, StreamName=name, TagKeys=["a;b"])
    assert refused == (INVALID, text)
