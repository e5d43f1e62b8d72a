"""ListStreams: which streams there are, of open, changed and deleted tables."""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import VALIDATION
from .stream_reading import NO_SUCH_ARN, arn_of, refusal, with_stream


def arns(streams: Any, **request: Any) -> list[str]:
    found: list[str] = []
    while True:
        page = streams.list_streams(**request)
        found += [stream["StreamArn"] for stream in page["Streams"]]
        if "LastEvaluatedStreamArn" not in page:
            return found
        request["ExclusiveStartStreamArn"] = page["LastEvaluatedStreamArn"]


def test_a_table_has_the_stream_that_its_description_names(
    client: Any, streams: Any, table: Any
) -> None:
    name = table(**with_stream())
    description = client.describe_table(TableName=name)["Table"]
    assert streams.list_streams(TableName=name)["Streams"] == [
        {
            "StreamArn": description["LatestStreamArn"],
            "TableName": name,
            "StreamLabel": description["LatestStreamLabel"],
        }
    ]


def test_a_table_without_a_stream_has_none(streams: Any, table: Any) -> None:
    assert arns(streams, TableName=table()) == []
    assert arns(streams, TableName="no_such_table") == []


def test_the_streams_of_all_tables_are_listed_page_by_page(
    client: Any, streams: Any, table: Any
) -> None:
    mine = {arn_of(client, table(**with_stream())) for _ in range(3)}
    listed = arns(streams, Limit=1)
    assert mine <= set(listed)
    assert len(listed) == len(set(listed))
    assert listed == arns(streams)


def test_only_names_that_are_equal_count(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    longer = table(TableName=f"{name}_longer", **with_stream())
    assert arns(streams, TableName=name) == [arn_of(client, name)]
    assert arns(streams, TableName=longer) == [arn_of(client, longer)]


def test_a_stream_that_was_switched_off_is_still_listed(
    client: Any, streams: Any, table: Any
) -> None:
    name = table(**with_stream())
    first = arn_of(client, name)
    client.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
    assert arns(streams, TableName=name) == [first]
    client.update_table(TableName=name, **with_stream("KEYS_ONLY"))
    second = arn_of(client, name)
    assert second != first
    assert arns(streams, TableName=name) == [first, second]


def test_the_stream_of_a_deleted_table_is_still_listed(
    client: Any, streams: Any, table: Any
) -> None:
    name = table(**with_stream())
    arn = arn_of(client, name)
    client.delete_table(TableName=name)
    assert arns(streams, TableName=name) == [arn]


@pytest.mark.parametrize("limit", [0, 101])
def test_a_page_has_between_1_and_100_streams(streams: Any, limit: int) -> None:
    assert refusal(streams.list_streams, Limit=limit)[0] == VALIDATION


def test_a_page_does_not_begin_after_what_is_no_arn(streams: Any) -> None:
    # Alternator's tests, on AWS; DynamoDB Local does not mind.
    request = {"ExclusiveStartStreamArn": "no arn, but long enough to be one, if it were"}
    assert refusal(streams.list_streams, **request)[0] == VALIDATION
    assert refusal(streams.list_streams, ExclusiveStartStreamArn="short")[0] == VALIDATION


def test_a_page_may_begin_after_a_stream_that_is_gone(
    client: Any, streams: Any, table: Any
) -> None:
    arn = arn_of(client, table(**with_stream()))
    assert arn in arns(streams, ExclusiveStartStreamArn=NO_SUCH_ARN)
