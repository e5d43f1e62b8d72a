"""The AWS SDK for JavaScript v3: the document client over every kind of operation."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.packaging.javascript_sdk import installed

SCRIPT_SECONDS_MAX = 120

SCRIPT = """
import { DynamoDBClient, CreateTableCommand, DeleteTableCommand, DescribeTableCommand,
  waitUntilTableExists, waitUntilTableNotExists, paginateListTables,
} from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand, GetCommand, UpdateCommand, DeleteCommand,
  QueryCommand, BatchWriteCommand, BatchGetCommand, TransactWriteCommand, TransactGetCommand,
  paginateScan,
} from "@aws-sdk/lib-dynamodb";

const TableName = process.argv[2];
const client = new DynamoDBClient({ maxAttempts: 1 });
const documents = DynamoDBDocumentClient.from(client, { marshallOptions: {
  removeUndefinedValues: true } });
const say = {};
const send = (Command, input) => documents.send(new Command({ TableName, ...input }));

await client.send(new CreateTableCommand({
  TableName,
  BillingMode: "PAY_PER_REQUEST",
  KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }, { AttributeName: "sk", KeyType: "RANGE" }],
  AttributeDefinitions: ["pk", "sk", "g"].map((AttributeName) =>
    ({ AttributeName, AttributeType: AttributeName === "sk" ? "N" : "S" })),
  GlobalSecondaryIndexes: [{ IndexName: "by_g", Projection: { ProjectionType: "ALL" },
    KeySchema: [{ AttributeName: "g", KeyType: "HASH" }] }],
}));
await waitUntilTableExists({ client, maxWaitTime: 20, minDelay: 1, maxDelay: 1 }, { TableName });

const item = { pk: "p", sk: 1, g: "x", text: "é", list: [1, "two", null], map: { deep: true },
  set: new Set(["a", "b"]), bytes: new Uint8Array([0, 255]), empty: "" };
await send(PutCommand, { Item: item });
const found = (await send(GetCommand, { Key: { pk: "p", sk: 1 }, ConsistentRead: true })).Item;
say.found = { ...found, set: [...found.set].sort(), bytes: [...found.bytes] };

say.updated = (await send(UpdateCommand, {
  Key: { pk: "p", sk: 1 },
  UpdateExpression: "SET #t = :t, #m.deep = :f ADD hits :one",
  ExpressionAttributeNames: { "#t": "text", "#m": "map" },
  ExpressionAttributeValues: { ":t": "new", ":f": false, ":one": 1 },
  ReturnValues: "UPDATED_NEW",
})).Attributes;

const requests = Array.from({ length: 25 }, (_, n) =>
  ({ PutRequest: { Item: { pk: "q", sk: n, g: n % 2 ? "odd" : "even" } } }));
await documents.send(new BatchWriteCommand({ RequestItems: { [TableName]: requests } }));
const batch = await documents.send(new BatchGetCommand({ RequestItems: { [TableName]: {
  Keys: [{ pk: "q", sk: 3 }, { pk: "q", sk: 4 }, { pk: "q", sk: 99 }] } } }));
say.batch = batch.Responses[TableName].length;

say.query = (await send(QueryCommand, {
  KeyConditionExpression: "pk = :p AND sk BETWEEN :a AND :b",
  ExpressionAttributeValues: { ":p": "q", ":a": 5, ":b": 8 }, ScanIndexForward: false,
})).Items.map(({ sk }) => sk);
say.index = (await send(QueryCommand, {
  IndexName: "by_g", KeyConditionExpression: "g = :g",
  ExpressionAttributeValues: { ":g": "odd" }, Select: "COUNT",
})).Count;
say.scanned = 0;
for await (const page of paginateScan({ client: documents, pageSize: 4 }, { TableName })) {
  say.scanned += page.Items.length;
}

await documents.send(new TransactWriteCommand({ TransactItems: [
  { Put: { TableName, Item: { pk: "t", sk: 1 } } },
  { Delete: { TableName, Key: { pk: "q", sk: 0 } } },
] }));
try {
  await documents.send(new TransactWriteCommand({ TransactItems: [
    { Put: { TableName, Item: { pk: "t", sk: 2 } } },
    { ConditionCheck: { TableName, Key: { pk: "t", sk: 1 },
      ConditionExpression: "attribute_not_exists(pk)" } },
  ] }));
} catch (error) {
  say.cancelled = [error.name, error.CancellationReasons.map(({ Code }) => Code)];
}
const got = await documents.send(new TransactGetCommand({ TransactItems: [1, 2].map((sk) =>
  ({ Get: { TableName, Key: { pk: "t", sk } } })) }));
say.transaction = got.Responses.map(({ Item }) => Item !== undefined);

try {
  await send(PutCommand, { Item: item, ConditionExpression: "attribute_not_exists(pk)",
    ReturnValuesOnConditionCheckFailure: "ALL_OLD" });
} catch (error) {
  say.refused = [error.name, error.message, error.Item.text.S, error.$metadata.httpStatusCode];
}
await send(DeleteCommand, { Key: { pk: "p", sk: 1 } });
say.count = (await client.send(new DescribeTableCommand({ TableName }))).Table.ItemCount;
say.listed = false;
for await (const page of paginateListTables({ client }, { Limit: 1 })) {
  say.listed ||= page.TableNames.includes(TableName);
}
await client.send(new DeleteTableCommand({ TableName }));
await waitUntilTableNotExists({ client, maxWaitTime: 20, minDelay: 1, maxDelay: 1 },
  { TableName });
console.log(JSON.stringify(say));
"""


@pytest.fixture(scope="module")
def folder() -> Path:
    return installed()


def test_the_document_client(
    folder: Path, environment: dict[str, str], names: Iterator[str]
) -> None:
    script = folder / f"script-{os.getpid()}.mjs"
    script.write_text(SCRIPT)
    try:
        completed = subprocess.run(
            ["node", str(script), next(names)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS_MAX,
            check=False,
        )
    finally:
        script.unlink()
    assert completed.returncode == 0, completed.stderr
    said: dict[str, Any] = json.loads(completed.stdout)
    assert said == {
        "found": {
            "pk": "p",
            "sk": 1,
            "g": "x",
            "text": "é",
            "list": [1, "two", None],
            "map": {"deep": True},
            "set": ["a", "b"],
            "bytes": [0, 255],
            "empty": "",
        },
        "updated": {"text": "new", "map": {"deep": False}, "hits": 1},
        "batch": 2,
        "query": [8, 7, 6, 5],
        "index": 12,
        "scanned": 26,
        "cancelled": ["TransactionCanceledException", ["None", "ConditionalCheckFailed"]],
        "transaction": [True, False],
        "refused": [
            "ConditionalCheckFailedException",
            "The conditional request failed",
            "new",
            400,
        ],
        "count": 25,
        "listed": True,
    }
