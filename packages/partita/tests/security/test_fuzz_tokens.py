"""Tokens that were changed in any way: refused, or good for what they were good for before.

Over the wire, against a server that asks who everybody is.
"""

from __future__ import annotations

import base64
import json
import struct
from binascii import Error as Base64Error
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit.attacks.fuzzing import both_lengths, seeds
from testkit.servers.users import ACCOUNT, People, client_for, statement, table_arn

NAME = "fuzzed"
SELECT = f'SELECT sk FROM "{NAME}"."by_title"'
CHANGES_PER_SEED = 6
WORDS = ["", "|", "=", "A" * 2000, "é", "\x00", "9" * 400, "[]", "{}", "null", "-1", "../", "%00"]


def changed(chance: Random, token: str) -> str:
    """Changes a token: cuts, flips or lengthens it, or changes its content."""
    raw = decoded(token)
    if raw and chance.random() < 0.5:
        content = bytearray(raw)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(content))
            kind = chance.randrange(4)
            if kind == 0:
                content[place] ^= 1 << chance.randrange(8)
            elif kind == 1:
                del content[place:]
            elif kind == 2:
                content[place:place] = chance.choice(WORDS).encode()
            else:
                number = chance.choice([0, 1, 1 << 63, (1 << 64) - 1])
                content[place : place + 8] = struct.pack(">Q", number)
            if not content:
                break
        made = base64.urlsafe_b64encode(bytes(content)).decode()
        return made if chance.random() < 0.5 else made.replace("-", "+").replace("_", "/")
    place, end = sorted((chance.randrange(len(token) + 1), chance.randrange(len(token) + 1)))
    return token[:place] + chance.choice([*WORDS, token, token[place:end]]) + token[end:]


def rewritten(chance: Random, token: str) -> str:
    """Changes the members of a token that is unsealed JSON in base64."""
    try:
        content = json.loads(decoded(token))
    except ValueError:
        return changed(chance, token)
    values: list[Any] = [None, 0, -1, 1e300, 1 << 70, "", "x", "\x00", [], [1], {}, {"S": "x"}]
    filters: list[Any] = [
        {name: chance.choice([*values, "AT_TIMESTAMP", "AFTER_SHARD_ID"])}
        for name in ("Type", "ShardId", "Timestamp")
    ]
    if isinstance(content, dict) and content:
        for name in chance.sample(sorted(content), chance.randrange(1, len(content) + 1)):
            content[name] = chance.choice([*values, *filters, content[name]])
    else:
        content = chance.choice([*values, {"pk": {"S": "x"}, "sk": {"S": "y"}}, ["a", 1]])
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


def decoded(token: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(token.replace("+", "-").replace("/", "_"))
    except (Base64Error, ValueError):
        return b""


def attempt(call: Callable[..., Any], **request: Any) -> Any:
    """Returns the response, or None if the request is refused with an error of AWS."""
    try:
        return call(**request)
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 403, 404), error
        return None


@pytest.fixture(scope="module")
def filled(people: People, admin: Any) -> str:
    """A table with an index and a stream, with items of the user and more of somebody else."""
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    admin.create_table(
        TableName=NAME,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "title")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_title",
                "KeySchema": [{"AttributeName": "title", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    for number in range(12):
        owner = ("own", "foreign", "g")[number % 3]
        texts = {"pk": owner, "sk": f"{number:02}", "title": f"t{number % 4}"}
        item = {name: {"S": text} for name, text in texts.items()}
        admin.put_item(TableName=NAME, Item=item)
    return NAME


@pytest.fixture(scope="module")
def owner(people: People, filled: str) -> Any:
    """A client that may query the items whose partition key is `own`, and scan the index."""
    arn = table_arn(filled)
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["own"]}}
    rights = [
        statement(["dynamodb:Query", "dynamodb:PartiQLSelect"], arn, Condition=condition),
        statement("dynamodb:PartiQLSelect", f"{arn}/index/by_title"),
    ]
    return people.client(people.add(*rights))


@both_lengths
def test_a_changed_token_of_a_select_is_refused(owner: Any, rounds: int) -> None:
    token = owner.execute_statement(Statement=SELECT, Limit=2)["NextToken"]
    known = owner.execute_statement(Statement=SELECT, NextToken=token)["Items"]
    for seed in seeds(rounds):
        chance = Random(seed)
        for _ in range(CHANGES_PER_SEED):
            other = changed(chance, token)
            answer = attempt(owner.execute_statement, Statement=SELECT, NextToken=other)
            if answer is not None:
                assert decoded(other) == decoded(token), f"seed {seed}: {other!r}"
                assert answer["Items"] == known


@both_lengths
def test_a_page_that_begins_elsewhere_shows_nothing_of_others(owner: Any, rounds: int) -> None:
    query = {
        "TableName": NAME,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "own"}},
    }
    key = owner.query(**query, Limit=2)["LastEvaluatedKey"]
    for seed in seeds(rounds):
        chance = Random(seed)
        for _ in range(CHANGES_PER_SEED):
            start = json.loads(json.dumps(key))
            for _ in range(chance.randrange(1, 3)):
                name = chance.choice(["pk", "sk", "title", "", "x"])
                value = chance.choice(["own", "foreign", "g", "", "00", "own\x00", *WORDS])
                others: list[Any] = [{"N": value}, {"B": value.encode()}, {"NULL": True}, {}]
                start[name] = {"S": value} if chance.random() < 0.7 else chance.choice(others)
                if chance.random() < 0.2:
                    start.pop(chance.choice(list(start)), None)
            more = {"ScanIndexForward": chance.random() < 0.5}
            answer = attempt(owner.query, **query, **more, ExclusiveStartKey=start)
            for item in answer["Items"] if answer else ():
                assert item["pk"] == {"S": "own"}, f"seed {seed}: {start}"


@both_lengths
def test_a_changed_shard_iterator_shows_no_other_stream(
    people: People, administrator: Any, filled: str, rounds: int
) -> None:
    admin = people.client(administrator)
    other = "fuzzed-other"
    if other not in admin.list_tables()["TableNames"]:
        admin.create_table(
            TableName=other,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "secret", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "secret", "AttributeType": "S"}],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        )
        admin.put_item(TableName=other, Item={"secret": {"S": "s"}})
    secret_arn = admin.describe_table(TableName=other)["Table"]["LatestStreamArn"]
    arn = admin.describe_table(TableName=filled)["Table"]["LatestStreamArn"]
    reader = people.client(
        people.add(statement("dynamodb:*", f"{table_arn(filled)}/stream/*")), "dynamodbstreams"
    )
    shards = reader.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = reader.get_shard_iterator(
        StreamArn=arn, ShardId=shards[0]["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    stream, version, place = iterator.split("|")
    for seed in seeds(rounds):
        chance = Random(seed)
        for _ in range(CHANGES_PER_SEED):
            made = chance.choice(
                [
                    changed(chance, iterator),
                    f"{stream}|{version}|{changed(chance, place)}",
                    f"{changed(chance, stream)}|{version}|{place}",
                    f"{secret_arn}|{version}|{changed(chance, place)}",
                    f"{stream}|{secret_arn}|{version}|{place}",
                ]
            )
            answer = attempt(reader.get_records, ShardIterator=made)
            for record in answer["Records"] if answer else ():
                assert "pk" in record["dynamodb"]["Keys"], f"seed {seed}: {made!r}"


@both_lengths
def test_a_changed_session_token_is_refused(people: People, rounds: int) -> None:
    assert people.server is not None
    key = people.add(statement("dynamodb:ListTables"))
    given = people.client(key, "sts").get_session_token(DurationSeconds=900)["Credentials"]
    identity = (given["AccessKeyId"], given["SecretAccessKey"])
    for seed in seeds(rounds):
        chance = Random(seed)
        token = changed(chance, given["SessionToken"])
        if not token or not token.isprintable() or not token.isascii() or token != token.strip():
            continue
        client = client_for(people.server.url, *identity, token=token)
        if attempt(client.list_tables) is not None:
            same = decoded(token) == decoded(given["SessionToken"])
            assert same, f"seed {seed}: {token!r}"


@both_lengths
def test_any_token_of_a_list_is_taken_or_refused(
    people: People, administrator: Any, rounds: int
) -> None:
    """Covers the services whose tokens are names and positions in lists."""
    kinesis = people.client(administrator, "kinesis")
    machines = people.client(administrator, "stepfunctions")
    functions, scheduler = (people.client(administrator, one) for one in ("lambda", "scheduler"))
    admin = people.client(administrator)
    for name in ("fuzzed-a", "fuzzed-b"):
        if name not in kinesis.list_streams()["StreamNames"]:
            kinesis.create_stream(StreamName=name, ShardCount=3)
    known = [
        kinesis.list_streams(Limit=1)["NextToken"],
        kinesis.list_shards(StreamName="fuzzed-a", MaxResults=1)["NextToken"],
        kinesis.get_shard_iterator(
            StreamName="fuzzed-a",
            ShardId="shardId-000000000000",
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"],
        *(base64.b64encode(text.encode()).decode() for text in ("1", '["a","b"]', '"a"', "table/")),
    ]
    machine = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:none"
    calls: list[Callable[[str], Any]] = [
        lambda token: kinesis.list_streams(NextToken=token),
        lambda token: kinesis.list_shards(NextToken=token),
        lambda token: kinesis.get_records(ShardIterator=token),
        lambda token: machines.list_state_machines(nextToken=token),
        lambda token: machines.list_activities(nextToken=token),
        lambda token: machines.list_executions(stateMachineArn=machine, nextToken=token),
        lambda token: functions.list_functions(Marker=token),
        lambda token: functions.list_event_source_mappings(Marker=token),
        lambda token: scheduler.list_schedules(NextToken=token),
        lambda token: scheduler.list_schedule_groups(NextToken=token),
        lambda token: admin.list_contributor_insights(NextToken=token),
        lambda token: admin.list_exports(NextToken=token),
        lambda token: admin.list_imports(NextToken=token),
        lambda token: admin.list_tables(ExclusiveStartTableName=token),
        lambda token: admin.list_backups(ExclusiveStartBackupArn=token),
    ]
    for seed in seeds(rounds):
        chance = Random(seed)
        for call in chance.sample(calls, 6):
            change = chance.choice([changed, rewritten])
            attempt(call, token=change(chance, chance.choice(known)))
