"""Pagination tokens: sealed if they contain keys of items, and valid after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes
from testkit.servers.users import People, refusal, statement, table_arn

NAME = "tokens"
SELECT = f'SELECT sk FROM "{NAME}"'


def filled(client: Any, name: str = NAME) -> None:
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    for number in range(5):
        client.put_item(TableName=name, Item={"pk": {"S": f"secret{number}"}})


def test_a_token_outlives_its_server(tmp_path: Path) -> None:
    with processes.starting() as start:
        first = start("serve", "--port", "0", "--data", tmp_path)
        filled(first.client())
        page = first.client().execute_statement(Statement=SELECT, Limit=2)
        first.terminate()
        client = start("serve", "--port", "0", "--data", tmp_path).client()
        rest = client.execute_statement(Statement=SELECT, NextToken=page["NextToken"])
        assert len(page["Items"]) + len(rest["Items"]) == 5


def test_a_token_of_another_database_is_refused(tmp_path: Path) -> None:
    with processes.starting() as start:
        tokens = []
        for place in ("one", "two"):
            client = start("serve", "--port", "0", "--data", tmp_path / place).client()
            filled(client)
            tokens.append(client.execute_statement(Statement=SELECT, Limit=2)["NextToken"])
        answer = refusal(client.execute_statement, Statement=SELECT, NextToken=tokens[0])
        assert answer == ("ValidationException", "Invalid NextToken")


# Shard iterators hold no secret, and whoever makes one needs the right on the stream in it.


@pytest.fixture(scope="module")
def streams(people: People, admin: Any) -> tuple[str, str]:
    """The ARNs of a stream of the user and of one of somebody else."""
    arns = []
    for name in ("own-stream", "other-stream"):
        filled(admin, name)
        arns.append(admin.describe_table(TableName=name)["Table"]["LatestStreamArn"])
    return arns[0], arns[1]


def test_an_iterator_is_good_only_with_the_right_on_its_stream(
    people: People, administrator: Any, streams: tuple[str, str]
) -> None:
    own, other = streams
    rights = statement("dynamodb:*", [f"{table_arn('own-stream')}*"])
    reader = people.client(people.add(rights), "dynamodbstreams")
    admin = people.client(administrator, "dynamodbstreams")
    (shard, *_) = reader.describe_stream(StreamArn=own)["StreamDescription"]["Shards"]
    asked = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = reader.get_shard_iterator(StreamArn=own, **asked)["ShardIterator"]
    assert "Records" in reader.get_records(ShardIterator=iterator)
    (shard, *_) = admin.describe_stream(StreamArn=other)["StreamDescription"]["Shards"]
    asked["ShardId"] = shard["ShardId"]
    foreign = admin.get_shard_iterator(StreamArn=other, **asked)["ShardIterator"]
    place = foreign.partition("|")[2]
    forgeries = [
        foreign,
        f"{other}|{iterator.partition('|')[2]}",
        f"{other.replace('us-east-1', 'eu-west-1')}|{place}",
        f"{other.replace('arn:aws:', 'arn:aws:dynamodb:x:1:table/own-stream:')}|{place}",
        f"{own}|{other}|{place}",
        f"{other}/{own}|{place}",
        f"{own}/{other}|{place}",
        f"{other}:{own}|{place}",
        f"{other}\n|{place}",
    ]
    for forged in forgeries:
        code, _ = refusal(reader.get_records, ShardIterator=forged)
        assert code in ("AccessDeniedException", "ValidationException")
    # With the stream of one's own, another's place is one in one's own.
    try:
        answer = reader.get_records(ShardIterator=f"{own}|{place}")
    except reader.exceptions.ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    else:
        assert answer["Records"] == reader.get_records(ShardIterator=iterator)["Records"]
