"""Creates the tables, candidates, and some votes for them."""

from __future__ import annotations

from zlib import crc32

import boto3

SHARDS = 10
dynamodb = boto3.client("dynamodb")
dynamodb.create_table(
    TableName="candidates",
    AttributeDefinitions=[
        {"AttributeName": "name", "AttributeType": "S"},
        {"AttributeName": "slot", "AttributeType": "N"},
        {"AttributeName": "votes", "AttributeType": "N"},
    ],
    KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
    GlobalSecondaryIndexes=[
        {
            "IndexName": "by-votes",
            "KeySchema": [
                {"AttributeName": "slot", "KeyType": "HASH"},
                {"AttributeName": "votes", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    BillingMode="PAY_PER_REQUEST",
)
dynamodb.create_table(
    TableName="results",
    AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}],
    KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
    BillingMode="PAY_PER_REQUEST",
)
for number in range(100):
    name = f"candidate {number}"
    dynamodb.update_item(
        TableName="candidates",
        Key={"name": {"S": name}},
        UpdateExpression="SET slot = :slot ADD votes :votes",
        ExpressionAttributeValues={
            ":slot": {"N": str(crc32(name.encode()) % SHARDS)},
            ":votes": {"N": str(number * 7 % 100)},
        },
    )
