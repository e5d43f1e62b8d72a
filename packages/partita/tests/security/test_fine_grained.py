"""Fine-grained access: who may see which items and attributes, by whatever request they try."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from testkit.servers.users import ACCOUNT, People, as_text, policy, refusal, statement, table_arn

DENIED = "AccessDeniedException"
INDEX = {
    "IndexName": "by_title",
    "KeySchema": [{"AttributeName": "title", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
OWN = {"pk": {"S": "own"}, "sk": {"S": "1"}}
FOREIGN = {"pk": {"S": "foreign"}, "sk": {"S": "1"}}
HIDDEN = {"salary": {"N": "100"}, "title": {"S": "t"}, "open": {"S": "o"}}

Call = Callable[[Any, str], Any]


@pytest.fixture(scope="module")
def books(admin: Any) -> str:
    """A table with an item of the user and one of somebody else."""
    name = "fine-grained"
    admin.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk", "title")
        ],
        GlobalSecondaryIndexes=[INDEX],
    )
    for key in (OWN, FOREIGN):
        admin.put_item(TableName=name, Item={**key, **HIDDEN})
    return name


def leading(*values: str) -> dict[str, Any]:
    return {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": list(values)}}


@pytest.fixture(scope="module")
def owner(people: People, books: str) -> Any:
    """A client that may do anything with the items whose partition key is `own`."""
    arn = table_arn(books)
    actions = ["dynamodb:*Item", "dynamodb:Query", "dynamodb:PartiQL*"]
    return people.client(people.add(statement(actions, arn, Condition=leading("own"))))


def values(**texts: str) -> dict[str, Any]:
    return {f":{name}": {"S": text} for name, text in texts.items()}


BY_KEY: dict[str, Call] = {
    "GetItem": lambda client, t: lambda key: client.get_item(TableName=t, Key=key),
    "PutItem": lambda client, t: lambda key: client.put_item(TableName=t, Item={**key, **HIDDEN}),
    "UpdateItem": lambda client, t: lambda key: client.update_item(TableName=t, Key=key),
    "DeleteItem": lambda client, t: (
        lambda key: client.delete_item(TableName=t, Key={**key, "sk": {"S": "none"}})
    ),
    "BatchGetItem": lambda client, t: (
        lambda key: client.batch_get_item(RequestItems={t: {"Keys": [key]}})
    ),
    "BatchGetItem beside one's own": lambda client, t: (
        lambda key: client.batch_get_item(
            RequestItems={t: {"Keys": [{**OWN, "sk": {"S": "2"}}, key]}}
        )
    ),
    "BatchGetItem by ARN": lambda client, t: (
        lambda key: client.batch_get_item(RequestItems={table_arn(t): {"Keys": [key]}})
    ),
    "BatchWriteItem": lambda client, t: (
        lambda key: client.batch_write_item(
            RequestItems={t: [{"PutRequest": {"Item": {**key, **HIDDEN}}}]}
        )
    ),
    "BatchWriteItem delete": lambda client, t: (
        lambda key: client.batch_write_item(
            RequestItems={t: [{"DeleteRequest": {"Key": {**key, "sk": {"S": "none"}}}}]}
        )
    ),
    "TransactGetItems": lambda client, t: (
        lambda key: client.transact_get_items(TransactItems=[{"Get": {"TableName": t, "Key": key}}])
    ),
    "TransactWriteItems": lambda client, t: (
        lambda key: client.transact_write_items(
            TransactItems=[{"Put": {"TableName": t, "Item": {**key, **HIDDEN}}}]
        )
    ),
    "ConditionCheck": lambda client, t: (
        lambda key: client.transact_write_items(
            TransactItems=[
                {
                    "ConditionCheck": {
                        "TableName": t,
                        "Key": key,
                        "ConditionExpression": "attribute_exists(pk)",
                    }
                }
            ]
        )
    ),
    "Query": lambda client, t: (
        lambda key: client.query(
            TableName=t,
            KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": key["pk"]},
        )
    ),
    "Query with names": lambda client, t: (
        lambda key: client.query(
            TableName=t,
            KeyConditionExpression="(#p = :p) AND begins_with(sk, :s)",
            ExpressionAttributeNames={"#p": "pk"},
            ExpressionAttributeValues={":p": key["pk"], ":s": {"S": "1"}},
        )
    ),
    "Query of old": lambda client, t: (
        lambda key: client.query(
            TableName=t,
            KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [key["pk"]]}},
        )
    ),
    "SELECT": lambda client, t: (
        lambda key: client.execute_statement(
            Statement=f'SELECT * FROM "{t}" WHERE pk = ?', Parameters=[key["pk"]]
        )
    ),
    "SELECT of several": lambda client, t: (
        lambda key: client.execute_statement(
            Statement=f'SELECT * FROM "{t}" WHERE pk IN {sorted({"own", key["pk"]["S"]})}'
        )
    ),
    "UPDATE": lambda client, t: (
        lambda key: client.execute_statement(
            Statement=f"UPDATE \"{t}\" SET seen = 1 WHERE pk = '{key['pk']['S']}' AND sk = '1'"
        )
    ),
    "INSERT": lambda client, t: (
        lambda key: client.execute_statement(
            Statement=f"INSERT INTO \"{t}\" VALUE {{'pk': ?, 'sk': ?}}",
            Parameters=[key["pk"], {"S": f"{id(client)}"}],
        )
    ),
    "DELETE": lambda client, t: (
        lambda key: client.execute_statement(
            Statement=f"DELETE FROM \"{t}\" WHERE pk = '{key['pk']['S']}' AND sk = 'none'"
        )
    ),
    "BatchExecuteStatement": lambda client, t: (
        lambda key: client.batch_execute_statement(
            Statements=[
                {"Statement": f"SELECT * FROM \"{t}\" WHERE pk = '{key['pk']['S']}' AND sk = '1'"}
            ]
        )
    ),
    "ExecuteTransaction": lambda client, t: (
        lambda key: client.execute_transaction(
            TransactStatements=[
                {"Statement": f"SELECT * FROM \"{t}\" WHERE pk = '{key['pk']['S']}' AND sk = '1'"}
            ]
        )
    ),
}


@pytest.mark.parametrize("way", BY_KEY)
def test_leading_keys_open_ones_own_items_and_no_others(owner: Any, books: str, way: str) -> None:
    call = BY_KEY[way](owner, books)
    call(OWN)
    code, text = refusal(call, key=FOREIGN)
    assert code == DENIED
    assert f" on resource: {table_arn(books)} because no identity-based policy allows" in text


def test_a_number_has_one_spelling(people: People, admin: Any) -> None:
    admin.create_table(
        TableName="numbers",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "n", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "n", "AttributeType": "N"}],
    )
    denied = statement(
        "*",
        effect="Deny",
        Condition={"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": "1"}},
    )
    client = people.client(people.add(statement("*"), denied))
    for spelling in ("1", "1.0", "01", "1e0", "10e-1", "+1"):
        asked = {"TableName": "numbers", "Key": {"n": {"N": spelling}}}
        assert refusal(client.get_item, **asked)[0] == DENIED
    assert client.get_item(TableName="numbers", Key={"n": {"N": "2"}})


# Attributes that a policy hides

VISIBLE = ["pk", "sk", "open"]


@pytest.fixture(scope="module")
def clerk(people: People, books: str) -> Any:
    """A client that may read and write some attributes, but not whole items, as in the developer
    guide.
    """
    condition = {
        "ForAllValues:StringEquals": {"dynamodb:Attributes": VISIBLE},
        "StringEqualsIfExists": {
            "dynamodb:Select": "SPECIFIC_ATTRIBUTES",
            "dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"],
        },
    }
    arn = table_arn(books)
    actions = [
        *("dynamodb:*Item", "dynamodb:Query", "dynamodb:Scan", "dynamodb:PartiQL*"),
    ]
    everything = [arn, f"{arn}/index/*"]
    return people.client(people.add(statement(actions, everything, Condition=condition)))


SEEN: dict[str, Call] = {
    "GetItem": lambda client, t: client.get_item(
        TableName=t, Key=OWN, ProjectionExpression="#o", ExpressionAttributeNames={"#o": "open"}
    ),
    "GetItem of old": lambda client, t: client.get_item(
        TableName=t, Key=OWN, AttributesToGet=["open", "pk"]
    ),
    "Scan": lambda client, t: client.scan(TableName=t, ProjectionExpression="pk, sk"),
    "UpdateItem": lambda client, t: client.update_item(
        TableName=t,
        Key={**OWN, "sk": {"S": "u"}},
        UpdateExpression="SET #o = :o",
        ExpressionAttributeNames={"#o": "open"},
        ExpressionAttributeValues=values(o="x"),
        ReturnValues="UPDATED_NEW",
    ),
    "SELECT": lambda client, t: client.execute_statement(
        Statement=f'SELECT "open" FROM "{t}" WHERE pk = \'own\''
    ),
    "UPDATE": lambda client, t: client.execute_statement(
        Statement=f"UPDATE \"{t}\" SET \"open\" = 'y' WHERE pk = 'own' AND sk = '1'"
    ),
}
PROBES: dict[str, Call] = {
    "the whole item": lambda client, t: client.get_item(TableName=t, Key=OWN),
    "the hidden one": lambda client, t: client.get_item(
        TableName=t, Key=OWN, ProjectionExpression="salary"
    ),
    "by another name": lambda client, t: client.get_item(
        TableName=t, Key=OWN, ProjectionExpression="#x", ExpressionAttributeNames={"#x": "salary"}
    ),
    "a part of it": lambda client, t: client.get_item(
        TableName=t, Key=OWN, ProjectionExpression="pk, salary.a[0]"
    ),
    "of old": lambda client, t: client.get_item(TableName=t, Key=OWN, AttributesToGet=["salary"]),
    "in a batch": lambda client, t: client.batch_get_item(
        RequestItems={t: {"Keys": [OWN], "ProjectionExpression": "salary"}}
    ),
    "whole in a batch": lambda client, t: client.batch_get_item(RequestItems={t: {"Keys": [OWN]}}),
    "in a transaction": lambda client, t: client.transact_get_items(
        TransactItems=[{"Get": {"TableName": t, "Key": OWN, "ProjectionExpression": "salary"}}]
    ),
    "a scan of all": lambda client, t: client.scan(TableName=t),
    "a filter as an oracle": lambda client, t: client.scan(
        TableName=t,
        ProjectionExpression="pk",
        FilterExpression="salary > :s",
        ExpressionAttributeValues={":s": {"N": "50"}},
    ),
    "a filter of old": lambda client, t: client.scan(
        TableName=t,
        AttributesToGet=["pk"],
        ScanFilter={"salary": {"ComparisonOperator": "NOT_NULL"}},
    ),
    "a filter by size": lambda client, t: client.scan(
        TableName=t,
        ProjectionExpression="pk",
        FilterExpression="size(salary) > :s",
        ExpressionAttributeValues={":s": {"N": "50"}},
    ),
    "counting with a filter": lambda client, t: client.query(
        TableName=t,
        Select="COUNT",
        KeyConditionExpression="pk = :p",
        FilterExpression="attribute_exists(salary)",
        ExpressionAttributeValues=values(p="own"),
    ),
    "a condition as an oracle": lambda client, t: client.put_item(
        TableName=t,
        Item=OWN,
        ConditionExpression="salary = :s",
        ExpressionAttributeValues={":s": {"N": "1"}},
    ),
    "an expectation of old": lambda client, t: client.delete_item(
        TableName=t, Key=OWN, Expected={"salary": {"Value": {"N": "1"}}}
    ),
    "a condition check": lambda client, t: client.transact_write_items(
        TransactItems=[
            {
                "ConditionCheck": {
                    "TableName": t,
                    "Key": OWN,
                    "ConditionExpression": "attribute_exists(salary)",
                }
            }
        ]
    ),
    "an update that copies": lambda client, t: client.update_item(
        TableName=t,
        Key=OWN,
        UpdateExpression="SET #o = salary",
        ExpressionAttributeNames={"#o": "open"},
    ),
    "an update that falls back": lambda client, t: client.update_item(
        TableName=t,
        Key=OWN,
        UpdateExpression="SET #o = if_not_exists(salary, :o)",
        ExpressionAttributeNames={"#o": "open"},
        ExpressionAttributeValues=values(o="x"),
    ),
    "an update of old": lambda client, t: client.update_item(
        TableName=t, Key=OWN, AttributeUpdates={"salary": {"Action": "DELETE"}}
    ),
    "all old values": lambda client, t: client.put_item(
        TableName=t, Item=OWN, ReturnValues="ALL_OLD"
    ),
    "all new values": lambda client, t: client.update_item(
        TableName=t, Key=OWN, ReturnValues="ALL_NEW"
    ),
    "the item of a condition that fails": lambda client, t: client.put_item(
        TableName=t,
        Item=OWN,
        ConditionExpression="attribute_not_exists(pk)",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    ),
    "the same in a transaction": lambda client, t: client.transact_write_items(
        TransactItems=[
            {
                "Put": {
                    "TableName": t,
                    "Item": OWN,
                    "ConditionExpression": "attribute_not_exists(pk)",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            }
        ]
    ),
    "an index": lambda client, t: client.query(
        TableName=t,
        IndexName="by_title",
        KeyConditionExpression="title = :t",
        ExpressionAttributeValues=values(t="t"),
    ),
    "the key of an index": lambda client, t: client.query(
        TableName=t,
        IndexName="by_title",
        ProjectionExpression="pk",
        KeyConditionExpression="title = :t",
        ExpressionAttributeValues=values(t="t"),
    ),
    "the key of an index behind a page": lambda client, t: client.scan(
        TableName=t, IndexName="by_title", ProjectionExpression="pk", Limit=1
    ),
    "the key of an index behind a count": lambda client, t: client.scan(
        TableName=t, IndexName="by_title", Select="COUNT", Limit=1
    ),
    "the key of an index where a page begins": lambda client, t: client.scan(
        TableName=t,
        ProjectionExpression="pk",
        ExclusiveStartKey={**OWN, "title": {"S": "t"}},
    ),
    "the key of an index behind a page of a statement": lambda client, t: client.execute_statement(
        Statement=f'SELECT pk FROM "{t}"."by_title"', Limit=1
    ),
    "writing it": lambda client, t: client.put_item(
        TableName=t, Item={**OWN, "salary": {"N": "1000"}}
    ),
    "writing it in a batch": lambda client, t: client.batch_write_item(
        RequestItems={t: [{"PutRequest": {"Item": {**OWN, "salary": {"N": "1000"}}}}]}
    ),
    "SELECT *": lambda client, t: client.execute_statement(
        Statement=f"SELECT * FROM \"{t}\" WHERE pk = 'own'"
    ),
    "SELECT the hidden one": lambda client, t: client.execute_statement(
        Statement=f"SELECT salary FROM \"{t}\" WHERE pk = 'own'"
    ),
    "SELECT in quotes": lambda client, t: client.execute_statement(
        Statement=f'SELECT "salary" FROM "{t}" WHERE pk = \'own\''
    ),
    "WHERE as an oracle": lambda client, t: client.execute_statement(
        Statement=f"SELECT pk FROM \"{t}\" WHERE pk = 'own' AND salary > 50"
    ),
    "WHERE of an UPDATE": lambda client, t: client.execute_statement(
        Statement=f"UPDATE \"{t}\" SET \"open\" = 'z' WHERE pk='own' AND sk='1' AND salary = 1"
    ),
    "SET of the hidden one": lambda client, t: client.execute_statement(
        Statement=f"UPDATE \"{t}\" SET \"open\" = salary WHERE pk='own' AND sk='1'"
    ),
    "RETURNING all": lambda client, t: client.execute_statement(
        Statement=f"DELETE FROM \"{t}\" WHERE pk='own' AND sk='1' RETURNING ALL OLD *"
    ),
    "an item that a statement finds": lambda client, t: client.execute_statement(
        Statement=f"UPDATE \"{t}\" SET \"open\"='z' WHERE pk='own' AND sk='1' AND \"open\"='no'",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    ),
    "EXISTS": lambda client, t: client.execute_transaction(
        TransactStatements=[
            {
                "Statement": f"EXISTS(SELECT pk FROM \"{t}\" WHERE pk='own' AND sk='1' "
                "AND salary > 50)"
            },
            {"Statement": f"UPDATE \"{t}\" SET \"open\" = 'z' WHERE pk='own' AND sk='2'"},
        ]
    ),
    "an index in a statement": lambda client, t: client.execute_statement(
        Statement=f'SELECT pk FROM "{t}"."by_title" WHERE title = \'t\''
    ),
    "an order": lambda client, t: client.execute_statement(
        Statement=f"SELECT pk FROM \"{t}\" WHERE pk = 'own' ORDER BY title"
    ),
}


READS: dict[str, Call] = {
    "Query": lambda client, t: client.query(
        TableName=t,
        ProjectionExpression="pk",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues=values(p="own"),
    ),
    "Query by Select": lambda client, t: client.query(
        TableName=t,
        Select="SPECIFIC_ATTRIBUTES",
        AttributesToGet=["pk"],
        KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [OWN["pk"]]}},
    ),
    "Scan": lambda client, t: client.scan(TableName=t, ProjectionExpression="pk"),
    "SELECT": lambda client, t: client.execute_statement(Statement=f'SELECT pk FROM "{t}"'),
    "SELECT of a partition": lambda client, t: client.execute_statement(
        Statement=f"SELECT pk FROM \"{t}\" WHERE pk = 'own'"
    ),
}


@pytest.mark.parametrize("way", READS)
def test_what_reads_pages_names_all_keys_that_may_end_them(
    people: People, books: str, way: str
) -> None:
    """(Developer guide: "you must specify the names of all of the primary key and index key
    attributes for the table and any secondary indexes")"""
    for visible, is_allowed in ((["pk"], False), (["pk", "sk"], True)):
        condition = {"ForAllValues:StringEquals": {"dynamodb:Attributes": visible}}
        client = people.client(people.add(statement("*", Condition=condition)))
        if is_allowed:
            READS[way](client, books)
        else:
            assert refusal(READS[way], client=client, t=books)[0] == DENIED


@pytest.mark.parametrize("way", SEEN)
def test_attributes_that_are_allowed_can_be_used(clerk: Any, books: str, way: str) -> None:
    SEEN[way](clerk, books)


@pytest.mark.parametrize("way", PROBES)
def test_a_hidden_attribute_tells_nothing(clerk: Any, books: str, way: str) -> None:
    assert refusal(lambda: PROBES[way](clerk, books))[0] == DENIED


# Other keys


def test_an_index_is_a_resource_of_its_own(people: People, books: str) -> None:
    arn = table_arn(books)
    client = people.client(people.add(statement("dynamodb:*", f"{arn}/index/*")))
    asked = {
        "TableName": books,
        "KeyConditionExpression": "title = :t",
        "ExpressionAttributeValues": values(t="t"),
    }
    assert client.query(**asked, IndexName="by_title")["Count"] == 2
    assert client.scan(TableName=books, IndexName="by_title")
    assert refusal(client.scan, TableName=books)[0] == DENIED
    select = 'SELECT pk FROM "{}"."by_title" WHERE title = \'t\''
    assert client.execute_statement(Statement=select.format(books))["Items"]
    plain = f'SELECT pk FROM "{books}"'
    assert refusal(client.execute_statement, Statement=plain)[0] == DENIED


def test_a_right_on_the_table_is_none_on_its_index(people: People, books: str) -> None:
    client = people.client(people.add(statement("dynamodb:*", table_arn(books))))
    assert client.scan(TableName=books)
    code, text = refusal(client.scan, TableName=books, IndexName="by_title")
    assert code == DENIED and f"{table_arn(books)}/index/by_title" in text


def test_full_table_scans_of_statements(people: People, books: str) -> None:
    no_scans = statement(
        "dynamodb:PartiQLSelect",
        effect="Deny",
        Condition={"Bool": {"dynamodb:FullTableScan": ["true"]}},
    )
    client = people.client(people.add(statement("*"), no_scans))
    by_key = f"SELECT * FROM \"{books}\" WHERE pk = 'own'"
    assert client.execute_statement(Statement=by_key)
    for text in (
        f'SELECT * FROM "{books}"',
        f"SELECT * FROM \"{books}\" WHERE sk = '1'",
        f"SELECT * FROM \"{books}\" WHERE pk = 'own' OR sk = '1'",
        f"SELECT * FROM \"{books}\" WHERE pk > 'a'",
    ):
        code, message = refusal(client.execute_statement, Statement=text)
        assert code == DENIED
        assert message.endswith("with an explicit deny in an identity-based policy")


def test_enclosing_operations(people: People, books: str) -> None:
    only_in_transactions = statement(
        "dynamodb:PutItem",
        Condition={
            "ForAnyValue:StringEquals": {"dynamodb:EnclosingOperation": ["TransactWriteItems"]}
        },
    )
    client = people.client(people.add(only_in_transactions))
    put = {"TableName": books, "Item": {**OWN, "sk": {"S": "t"}}}
    assert client.transact_write_items(TransactItems=[{"Put": put}])
    assert refusal(client.put_item, **put)[0] == DENIED


def test_values_that_are_returned(people: People, books: str) -> None:
    quiet = statement(
        "dynamodb:*",
        Condition={
            "StringEqualsIfExists": {
                "dynamodb:ReturnValues": "NONE",
                "dynamodb:ReturnConsumedCapacity": "NONE",
            }
        },
    )
    client = people.client(people.add(quiet))
    put = {"TableName": books, "Item": {**OWN, "sk": {"S": "r"}}}
    assert client.put_item(**put)
    assert client.put_item(**put, ReturnValues="NONE")
    assert refusal(client.put_item, **put, ReturnValues="ALL_OLD")[0] == DENIED
    assert refusal(client.put_item, **put, ReturnConsumedCapacity="TOTAL")[0] == DENIED


def test_keys_of_several_attributes(people: People, admin: Any) -> None:
    admin.create_table(
        TableName="matches",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("id", "cup", "region")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_cup",
                "KeySchema": [
                    {"AttributeName": "cup", "KeyType": "HASH"},
                    {"AttributeName": "region", "KeyType": "HASH"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    condition = {
        "ForAllValues:StringEquals": {
            "dynamodb:FirstPartitionKeyValues": ["winter"],
            "dynamodb:SecondPartitionKeyValues": ["east"],
        }
    }
    client = people.client(people.add(statement("dynamodb:Query", Condition=condition)))

    def ask(cup: str, region: str) -> Any:
        return client.query(
            TableName="matches",
            IndexName="by_cup",
            KeyConditionExpression="cup = :c AND #r = :r",
            ExpressionAttributeNames={"#r": "region"},
            ExpressionAttributeValues=values(c=cup, r=region),
        )

    assert ask("winter", "east")["Count"] == 0
    assert refusal(lambda: ask("winter", "west"))[0] == DENIED
    assert refusal(lambda: ask("summer", "east"))[0] == DENIED


def test_tags_of_the_resource_and_of_the_request(people: People, admin: Any, books: str) -> None:
    tagged = {"StringEquals": {"aws:ResourceTag/team": "${aws:username}"}}
    key = people.add(
        statement("dynamodb:GetItem", Condition=tagged),
        statement(
            "dynamodb:TagResource",
            Condition={"ForAllValues:StringEquals": {"aws:TagKeys": ["team"]}},
        ),
    )
    client = people.client(key)
    asked = {"TableName": books, "Key": OWN}
    arn = table_arn(books)
    assert refusal(client.get_item, **asked)[0] == DENIED
    other = [{"Key": "cost", "Value": "x"}]
    assert refusal(client.tag_resource, ResourceArn=arn, Tags=other)[0] == DENIED
    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "team", "Value": people.name_of(key)}])
    assert "Item" in client.get_item(**asked)


def test_addresses_and_transport(people: People, books: str) -> None:
    near = statement("dynamodb:Scan", Condition={"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}})
    far = statement("dynamodb:GetItem", Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})
    plain = statement(
        "dynamodb:Query", effect="Deny", Condition={"Bool": {"aws:SecureTransport": "false"}}
    )
    client = people.client(people.add(near, far, plain, statement("dynamodb:Query")))
    assert client.scan(TableName=books)
    assert refusal(client.get_item, TableName=books, Key=OWN)[0] == DENIED
    asked = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": values(p="own")}
    assert refusal(client.query, TableName=books, **asked)[0] == DENIED


def test_an_answer_that_is_cached_is_not_for_everybody(
    people: People, admin: Any, owner: Any, books: str
) -> None:
    asked = {"TableName": books, "Key": FOREIGN}
    for _ in range(3):
        assert "Item" in admin.get_item(**asked)
    assert refusal(owner.get_item, **asked)[0] == DENIED


# Policies of resources


def test_the_policy_of_a_table_opens_it_to_those_whom_it_names(
    people: People, admin: Any, table: Any
) -> None:
    name = table()
    arn = table_arn(name)
    named, other = people.add(statement("s3:*")), people.add(statement("s3:*"))
    grant = {
        **statement(["dynamodb:Scan", "dynamodb:PutItem"], [arn, f"{arn}/index/*"]),
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/{people.name_of(named)}"},
    }
    admin.put_resource_policy(ResourceArn=arn, Policy=as_text(policy(grant)))
    assert people.client(named).scan(TableName=name)
    assert refusal(people.client(named).delete_table, TableName=name)[0] == DENIED
    assert refusal(people.client(other).scan, TableName=name)[0] == DENIED
    denial = {**grant, "Effect": "Deny", "Principal": "*", "Action": "dynamodb:Scan"}
    admin.put_resource_policy(ResourceArn=arn, Policy=as_text(policy(grant, denial)))
    for client in (people.client(named), admin):
        code, text = refusal(client.scan, TableName=name)
        assert code == DENIED
        assert text.endswith("with an explicit deny in a resource-based policy")
    admin.delete_resource_policy(ResourceArn=arn)
    assert admin.scan(TableName=name)
    assert refusal(people.client(named).scan, TableName=name)[0] == DENIED


def test_the_policy_of_a_stream_is_not_that_of_its_table(
    people: People, admin: Any, administrator: Any, table: Any
) -> None:
    name = table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    stream = admin.describe_table(TableName=name)["Table"]["LatestStreamArn"]
    key = people.add(statement("s3:*"))
    user = {"AWS": f"arn:aws:iam::{ACCOUNT}:user/{people.name_of(key)}"}
    grant = {**statement("dynamodb:*", "*"), "Principal": user}
    streams = people.client(key, "dynamodbstreams")
    admin.put_resource_policy(ResourceArn=table_arn(name), Policy=as_text(policy(grant)))
    assert people.client(key).scan(TableName=name)
    assert refusal(streams.describe_stream, StreamArn=stream)[0] == DENIED
    admin.put_resource_policy(ResourceArn=stream, Policy=as_text(policy(grant)))
    (shard,) = streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"][:1]
    iterator = streams.get_shard_iterator(
        StreamArn=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    assert streams.get_records(ShardIterator=iterator)["Records"] == []
    admin.delete_resource_policy(ResourceArn=stream)
    assert refusal(streams.get_records, ShardIterator=iterator)[0] == DENIED


# Pages


def test_pages_need_rights_too(people: People) -> None:
    assert people.server is not None
    url = people.server.url
    watcher = people.add(statement("partita:GetMetrics"))

    def fetch(path: str, name: str = "", password: str = "") -> int:
        request = Request(url + path)
        if name:
            pair = base64.b64encode(f"{name}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {pair}")
        try:
            with urlopen(request) as answer:
                return int(answer.status)
        except HTTPError as error:
            error.close()
            return error.code

    assert fetch("/health") == fetch("/") == 200
    assert fetch("/metrics") == 401
    assert fetch("/metrics", watcher.id, "wrong") == 401
    assert fetch("/metrics", "nobody", "wrong") == 401
    assert fetch("/metrics", watcher.id, watcher.secret) == 200
    assert fetch("/partitions?table=x", watcher.id, watcher.secret) == 403
    assert fetch("/no-such-page", watcher.id, watcher.secret) == 403


def test_of_a_batch_only_the_statements_that_are_not_allowed_are_refused(
    people: People, admin: Any, table: Callable[..., str]
) -> None:
    mine, other = table(), table()
    for name in (mine, other):
        admin.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    key = people.add(statement("dynamodb:PartiQLSelect", table_arn(mine)))
    asked = [
        {"Statement": f"SELECT * FROM {name} WHERE pk = 'a' AND sk = 'b'"} for name in (mine, other)
    ]
    answers = people.client(key).batch_execute_statement(Statements=asked)["Responses"]
    assert answers[0]["Item"]["pk"] == {"S": "a"}
    assert answers[1]["Error"]["Code"] == "AccessDenied"
    assert f"table/{other}" in answers[1]["Error"]["Message"] and "Item" not in answers[1]
    whole = refusal(people.client(key).batch_execute_statement, Statements=asked[1:])
    assert whole[0] == "AccessDeniedException"
