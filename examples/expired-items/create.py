"""Creates the table of sessions, with some that have expired and one that is deleted."""

from __future__ import annotations

import time

import boto3

dynamodb = boto3.client("dynamodb")
dynamodb.create_table(
    TableName="sessions",
    AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    BillingMode="PAY_PER_REQUEST",
    StreamSpecification={"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"},
)
dynamodb.update_time_to_live(
    TableName="sessions",
    TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
)
now = int(time.time())
for number in range(30):
    expires = now - 60 if number < 20 else now + 3600
    item = {"id": {"S": str(number)}, "expires": {"N": str(expires)}, "user": {"S": "somebody"}}
    dynamodb.put_item(TableName="sessions", Item=item)
dynamodb.delete_item(TableName="sessions", Key={"id": {"S": "25"}})
