"""Real clients of real users against a server that verifies: the AWS CLI, the JavaScript SDK,
boto3's resources, our own client, `partita top` and curl-like pages."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import boto3
import pytest

from partita.client import Client
from partita.client.request_signing import Credentials
from partita.server.security.identities.user_directory import AccessKey
from testkit.servers.processes import run
from testkit.servers.users import People, statement

SECONDS_MAX = 120
NODE_MODULES = Path(
    os.environ.get("PARTITA_NODE_MODULES", Path(gettempdir()) / "partita-javascript-sdk")
)
SCRIPT = """
import { DynamoDBClient, ListTablesCommand, PutItemCommand, GetItemCommand,
} from "@aws-sdk/client-dynamodb";
const client = new DynamoDBClient({ maxAttempts: 1 });
const TableName = process.argv[2];
const Key = { pk: { S: "é" } };
await client.send(new PutItemCommand({ TableName, Item: { ...Key, n: { N: "1" } } }));
const { Item } = await client.send(new GetItemCommand({ TableName, Key }));
const stranger = new DynamoDBClient({ maxAttempts: 1,
  credentials: { accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey: "wrong" } });
let refused;
try { await stranger.send(new ListTablesCommand({})); } catch (error) { refused = error.name; }
console.log(JSON.stringify({ n: Item.n.N, refused }));
"""


def environment(people: People, key: AccessKey) -> dict[str, str]:
    assert people.server is not None
    rest = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **rest,
        "AWS_ACCESS_KEY_ID": key.id,
        "AWS_SECRET_ACCESS_KEY": key.secret,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_DYNAMODB": people.server.url,
        "AWS_ENDPOINT_URL_STS": people.server.url,
    }


@pytest.fixture(scope="module")
def table_name(admin: Any) -> str:
    admin.create_table(
        TableName="clients",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )
    return "clients"


@pytest.mark.skipif(
    not Path(sys.executable).with_name("aws").exists(), reason="the AWS CLI is not installed"
)
def test_the_aws_cli(people: People, administrator: AccessKey, table_name: str) -> None:
    aws = str(Path(sys.executable).with_name("aws"))

    def command(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [aws, *arguments, "--output", "json"],
            env={**environment(people, administrator), **changes},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )

    assert table_name in command("dynamodb", "list-tables").stdout
    identity = json.loads(command("sts", "get-caller-identity").stdout)
    assert identity["Arn"].endswith(f"user/{people.name_of(administrator)}")
    wrong = command("dynamodb", "list-tables", AWS_SECRET_ACCESS_KEY="wrong")
    assert "(InvalidSignatureException)" in wrong.stderr


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE_MODULES / "node_modules" / "@aws-sdk").is_dir(),
    reason="node or the SDK is not installed; tests/clients installs it",
)
def test_the_javascript_sdk(people: People, administrator: AccessKey, table_name: str) -> None:
    script = NODE_MODULES / f"signed-{os.getpid()}.mjs"
    script.write_text(SCRIPT)
    try:
        completed = subprocess.run(
            ["node", str(script), table_name],
            env=environment(people, administrator),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    finally:
        script.unlink()
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout) == {"n": "1", "refused": "InvalidSignatureException"}


def test_boto3_resources(people: People, administrator: AccessKey, table_name: str) -> None:
    assert people.server is not None
    session = boto3.Session(administrator.id, administrator.secret, region_name="us-east-1")
    table = session.resource("dynamodb", endpoint_url=people.server.url).Table(table_name)
    with table.batch_writer() as batch:
        for number in range(40):
            batch.put_item(Item={"pk": f"item {number}"})
    assert table.get_item(Key={"pk": "item 7"})["Item"] == {"pk": "item 7"}


def test_our_own_client(people: People, administrator: AccessKey, table_name: str) -> None:
    assert people.server is not None
    url = people.server.url

    async def ask() -> Any:
        credentials = Credentials(administrator.id, administrator.secret)
        client = Client(url, credentials=credentials)
        answer = await client.call("dynamodb", "DescribeTable", {"TableName": table_name})
        await client.close()
        return answer

    assert asyncio.run(ask())["Table"]["TableName"] == table_name


def test_the_commands_that_watch_a_server(people: People, table_name: str) -> None:
    assert people.server is not None
    watcher = people.add(statement("partita:*"))
    signed = environment(people, watcher)
    for command in (("top", "--once"), ("partitions", table_name)):
        shown = run(*command, "--endpoint", people.server.url, env=signed)
        assert shown.returncode == 0, shown.stderr
    other = environment(people, people.add(statement("dynamodb:*")))
    refused = run("partitions", table_name, "--endpoint", people.server.url, env=other)
    assert refused.returncode == 1 and "partita:GetPartitions" in refused.stderr
